// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton_field.h"

#include <algorithm>

#include "base/random.h"
#include "experiments/common/library.h"

namespace tombolo::experiments {
namespace {

constexpr std::uint32_t part_width = 32;  // a line of the cache

constexpr std::size_t variables = 256;  // of a page: a stack frame or two, say
constexpr std::size_t page_size = 4096;

// Nine loads of a byte with extension (3 cycles on a P54C), eight additions, the rule's table, and
// the loop around them.
constexpr std::int64_t cell_cycles = 9 * 3 + 8 + 3 + 3;

// Vichniac's twisted majority: of nine cells, 4 or more than 5 living ones make a living one.
std::uint8_t rule(const std::uint8_t* above, const std::uint8_t* line, const std::uint8_t* below) {
  unsigned sum = 0;
  for (int k = -1; k <= 1; ++k) sum += static_cast<unsigned>(above[k] + line[k] + below[k]);
  return static_cast<std::uint8_t>(sum == 4 || sum > 5);
}

std::vector<std::uint8_t> first_line(const AutomatonField& field, std::uint32_t line) {
  Random random = Random::stream(field.seed, line);
  std::vector<std::uint8_t> bytes(field.bytes_in_line);
  for (std::uint32_t c = 1; c <= field.cells_in_line(); ++c)
    bytes[c] = static_cast<std::uint8_t>(random.next() >> 63);
  return bytes;
}

void wrap(std::vector<std::uint8_t>& line) {
  line.front() = line[line.size() - 2];
  line.back() = line[1];
}

}  // namespace

std::uint32_t AutomatonField::lines_of(machine::Home process) const {
  return lines / processes + (process < lines % processes ? 1 : 0);
}

std::uint32_t AutomatonField::first_line_of(machine::Home process) const {
  return lines / processes * process + std::min(process, lines % processes);
}

std::uint64_t AutomatonField::place(int array, std::uint32_t line) const {
  const std::uint64_t lines_of_array = lines_of(0) + 2;
  return (static_cast<std::uint64_t>(array) * lines_of_array + line) * bytes_in_line;
}

AutomatonLines automaton_serial(const AutomatonField& field, int steps) {
  AutomatonLines now;
  for (std::uint32_t line = 0; line < field.lines; ++line) now.push_back(first_line(field, line));
  AutomatonLines next = now;
  for (int s = 0; s < steps; ++s) {
    for (auto& line : now) wrap(line);
    for (std::uint32_t line = 0; line < field.lines; ++line) {
      const auto& above = now[(line + field.lines - 1) % field.lines];
      const auto& below = now[(line + 1) % field.lines];
      for (std::uint32_t c = 1; c <= field.cells_in_line(); ++c)
        next[line][c] = rule(&above[c], &now[line][c], &below[c]);
    }
    std::swap(now, next);
  }
  return now;
}

AutomatonStepper::AutomatonStepper(scc::detail::Base& core, const AutomatonField& field)
    : core_(core), field_(field), lines_(field.lines_of(core.self())) {
  // As many pages as a way of the second level has.
  const scc::Parameters::Caches& caches = core.cpu().chip().parameters().caches;
  const auto pages = static_cast<std::size_t>(caches.l2_bytes / caches.ways) / page_size;
  Random random = Random::stream(field.seed, core.self());
  for (std::byte*& page : variables_)
    page = core.allocate(pages * page_size) + random.below(pages) * page_size;
  for (auto& row : rows_) row.resize(field.bytes_in_line);
}

void AutomatonStepper::read(int array, std::uint32_t line, std::uint32_t at, void* to,
                            std::size_t bytes) {
  require(core_.read({core_.self(), field_.place(array, line) + at}, to, bytes));
}

void AutomatonStepper::write(int array, std::uint32_t line, std::uint32_t at, const void* from,
                             std::size_t bytes) {
  require(core_.write({core_.self(), field_.place(array, line) + at}, from, bytes));
}

void AutomatonStepper::initialize() {
  scc::Chip& chip = core_.cpu().chip();
  const std::uint32_t first = field_.first_line_of(core_.self());
  for (std::uint32_t line = 0; line < lines_; ++line) {
    std::vector<std::uint8_t> bytes = first_line(field_, first + line);
    wrap(bytes);
    chip.poke(core_.cpu().id(), chip.public_memory() + field_.place(0, line + 1), bytes.data(),
              bytes.size());
  }
}

void AutomatonStepper::tell(Progress& progress, int steps) {
  progress_ = &progress;
  lines_in_all_steps_ = static_cast<double>(steps) * lines_;
}

// As in the one-sided kernel of 000 appendix B.3.2.
void AutomatonStepper::step(int from, AutomatonExchange& exchange) {
  const int to = 1 - from;
  timed(exchange_, [&] { exchange.open(to); });
  timed(computation_, [&] {
    simulate(from, 1, 1);
    if (lines_ > 1) simulate(from, lines_, 1);
  });
  timed(exchange_, [&] { exchange.send(to); });
  timed(computation_, [&] {
    if (lines_ > 2) simulate(from, 2, lines_ - 2);
  });
  timed(exchange_, [&] { exchange.close(to); });
}

void AutomatonStepper::simulate(int from, std::uint32_t first, std::uint32_t lines) {
  for (std::uint32_t line = first - 1; line <= first + lines; ++line) refresh_ends(from, line);
  for (std::uint32_t line = first; line < first + lines; ++line) {
    next_line(from, line);
    if (progress_ != nullptr) progress_->at(++lines_done_ / lines_in_all_steps_);
  }
}

void AutomatonStepper::refresh_ends(int array, std::uint32_t line) {
  const std::uint32_t last = field_.bytes_in_line - 1;
  std::uint8_t cell = 0;
  read(array, line, last - 1, &cell, 1);
  write(array, line, 0, &cell, 1);
  read(array, line, 1, &cell, 1);
  write(array, line, last, &cell, 1);
}

void AutomatonStepper::use_variables() {
  for (const std::byte* page : variables_) {
    core_.touch_read(page, variables);
    core_.touch_write(page, variables);
  }
}

void AutomatonStepper::load_part(int from, std::uint32_t line, std::uint32_t part) {
  for (std::uint32_t r = 0; r < rows_.size(); ++r)
    read(from, line - 1 + r, part, &rows_[r][part], part_width);
}

void AutomatonStepper::next_line(int from, std::uint32_t line) {
  const simulator::Duration cell_time = core_.cpu().timing().core.cycles(cell_cycles);
  const std::uint32_t bytes = field_.bytes_in_line;
  use_variables();
  load_part(from, line, 0);
  for (std::uint32_t part = 0; part < bytes; part += part_width) {
    if (part + part_width < bytes) load_part(from, line, part + part_width);
    for (std::uint32_t c = std::max(part, 1u); c < std::min(part + part_width, bytes - 1); ++c) {
      const std::uint8_t cell = rule(&rows_[0][c], &rows_[1][c], &rows_[2][c]);
      core_.cpu().compute(cell_time);
      write(1 - from, line, c, &cell, 1);
    }
  }
}

std::uint64_t AutomatonStepper::wrong_cells(int array, const AutomatonLines& expected) {
  std::uint64_t wrong = 0;
  std::vector<std::uint8_t> line(field_.bytes_in_line);
  const std::uint32_t first = field_.first_line_of(core_.self());
  for (std::uint32_t l = 0; l < lines_; ++l) {
    read(array, l + 1, 0, line.data(), line.size());
    for (std::uint32_t c = 1; c <= field_.cells_in_line(); ++c)
      if (line[c] != expected[first + l][c]) ++wrong;
  }
  return wrong;
}

}  // namespace tombolo::experiments
