// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "svp/language/program.h"

namespace tombolo::svp::language {
namespace {

Object& object_of(svp_family& family, const svp_site& site, const char* operation) {
  if (family.object == nullptr)
    stop_at(site, fmt::format("{}({}): it has not been created since its last sync", operation,
                              site.name));
  return *static_cast<Object*>(family.object);
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception of C++";
  }
}

}  // namespace

void stop_at(const svp_site& site, const std::string& why) {
  std::fprintf(stderr, "tombolo: %s:%d: %s\n", site.file, site.line, why.c_str());
  std::abort();
}

void keep(svp_family& family, const Exit& exit) {
  family.value = exit.value;
  std::free(family.failure);
  family.failure = exit.error == nullptr ? nullptr : ::strdup(message_of(exit.error).c_str());
}

void stop_not_free(const svp_family& family, const svp_site& site) {
  if (family.count == 0)
    stop_at(site, fmt::format("create({}): this memory holds no variable of type family; a family "
                              "is a local variable, or an element of a local array",
                              site.name));
  stop_at(site, fmt::format("create({0}): it was created on line {1} and has not been synced",
                            site.name, family.site->line));
}

void check_range(const Range& range, const svp_site& site) {
  if (range.step == 0)
    stop_at(site, fmt::format("create({}): from {} to {} with step 0", site.name, range.start,
                              range.limit));
  if (static_cast<std::int64_t>(range.block) < 0)
    stop_at(site, fmt::format("create({}): a block of {} threads", site.name,
                              static_cast<std::int64_t>(range.block)));
}

void check_written(const svp_site& site, bool is_missing, const char* name) {
  if (is_missing)
    stop_at(site,
            fmt::format("sync({}): its last thread ended without a write to shared '{}', which "
                        "the creator reads here",
                        site.name, name));
}

}  // namespace tombolo::svp::language

using namespace tombolo::svp;

extern "C" {

void svp_leave_all(svp_family* first) {
  for (unsigned long n = 0; n < first->count; ++n) {
    svp_family& family = first[n];
    std::free(family.failure);
    if (family.object == nullptr) continue;
    if (std::uncaught_exceptions() == 0)
      language::stop_at(*family.site,
                        fmt::format("{}: created here, and not synced before the end of "
                                    "its scope",
                                    family.site->name));
    static_cast<language::Object*>(family.object)->drop(family);
  }
}

svp_exit svp_sync(svp_family* family, const svp_site* site) {
  return language::object_of(*family, *site, "sync").sync(*family, *site);
}

void svp_kill(svp_family* family, const svp_site* site) {
  language::object_of(*family, *site, "kill").kill();
}

void svp_break(long value, const svp_site* site) {
  if (this_family() == nullptr) language::stop_at(*site, "break: outside of all families");
  break_family(value);
}

const void* svp_read_again(svp_end* end, const svp_site* site) {
  if (end->missing != 0)
    language::stop_at(*site, fmt::format("read of shared '{}': the thread before this one ended "
                                         "without a write to it",
                                         site->name));
  return end->operations->read(end->channel);
}

const void* svp_read(svp_end* end, const svp_site* site) {
  if (end->written != 0)
    language::stop_at(*site,
                      fmt::format("read of shared '{}' after its write: this thread would see "
                                  "the value of the one before it",
                                  site->name));
  return svp_read_again(end, site);
}

void* svp_write(svp_end* end, void* value, const svp_site* site) {
  if (end->written != 0)
    language::stop_at(*site,
                      fmt::format("a second write to shared '{}' by one thread", site->name));
  end->operations->write(end->channel, value);
  end->written = 1;
  return value;
}

long svp_break_value(const svp_family* family) {
  return family->object == nullptr && family->reason == SVP_BROKEN ? family->value : 0;
}

const char* svp_failure(const svp_family* family) {
  return family->failure == nullptr ? "" : family->failure;
}

void svp_checkpoint(void) { checkpoint(); }

}  // extern "C"
