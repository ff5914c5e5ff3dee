// SPDX-License-Identifier: Apache-2.0
// Purpose: see library_stores.h.
// Thread safety: see library_stores.h.
#include "dsm/compiler/analysis/library_stores.h"

namespace tombolo::dsm::compiler {

namespace {

// How the number of bytes is found. `first` and `second` of a row are numbers of arguments, or a
// constant.
enum class Length {
  argument,          // the argument `first`, times `second`
  product,           // the argument `first` times the argument `second`
  constant,          // `first`
  string,            // that of the string `first`, with its end
  appended,          // at the end of the destination: that of the string `first`
  appended_at_most,  // likewise, and at most `second` of it, and an end
  result,            // the result, if it is above 0, times `first`
  result_product,    // the result times the argument `first`
  printed,           // the result and the string's end, at most the argument `first`
  printed_without_limit,
  line,  // the string that is there, if the result is not null
};

struct Row {
  const char* name;
  unsigned destination;
  Length length;
  unsigned first;
  unsigned second;
};

constexpr unsigned wide = sizeof(wchar_t);

constexpr Row rows[] = {
    {"memcpy", 0, Length::argument, 2, 1},
    {"memmove", 0, Length::argument, 2, 1},
    {"memset", 0, Length::argument, 2, 1},
    {"mempcpy", 0, Length::argument, 2, 1},
    {"explicit_bzero", 0, Length::argument, 1, 1},
    {"bzero", 0, Length::argument, 1, 1},
    {"bcopy", 1, Length::argument, 2, 1},
    {"__memcpy_chk", 0, Length::argument, 2, 1},
    {"__memmove_chk", 0, Length::argument, 2, 1},
    {"__memset_chk", 0, Length::argument, 2, 1},
    {"__mempcpy_chk", 0, Length::argument, 2, 1},
    {"wmemcpy", 0, Length::argument, 2, wide},
    {"wmemmove", 0, Length::argument, 2, wide},
    {"wmemset", 0, Length::argument, 2, wide},
    {"strcpy", 0, Length::string, 1, 0},
    {"stpcpy", 0, Length::string, 1, 0},
    {"__strcpy_chk", 0, Length::string, 1, 0},
    {"__stpcpy_chk", 0, Length::string, 1, 0},
    {"strncpy", 0, Length::argument, 2, 1},
    {"stpncpy", 0, Length::argument, 2, 1},
    {"__strncpy_chk", 0, Length::argument, 2, 1},
    {"strcat", 0, Length::appended, 1, 0},
    {"__strcat_chk", 0, Length::appended, 1, 0},
    {"strncat", 0, Length::appended_at_most, 1, 2},
    {"__strncat_chk", 0, Length::appended_at_most, 1, 2},
    {"sprintf", 0, Length::printed_without_limit, 0, 0},
    {"vsprintf", 0, Length::printed_without_limit, 0, 0},
    {"__sprintf_chk", 0, Length::printed_without_limit, 0, 0},
    {"__vsprintf_chk", 0, Length::printed_without_limit, 0, 0},
    {"snprintf", 0, Length::printed, 1, 0},
    {"vsnprintf", 0, Length::printed, 1, 0},
    {"__snprintf_chk", 0, Length::printed, 1, 0},
    {"__vsnprintf_chk", 0, Length::printed, 1, 0},
    {"fgets", 0, Length::line, 0, 0},
    {"fread", 0, Length::result_product, 1, 0},
    {"read", 1, Length::result, 1, 0},
    {"pread", 1, Length::result, 1, 0},
    {"pread64", 1, Length::result, 1, 0},
    {"recv", 1, Length::result, 1, 0},
    {"qsort", 0, Length::product, 1, 2},
    {"frexp", 1, Length::constant, 4, 0},
    {"frexpf", 1, Length::constant, 4, 0},
    {"modf", 1, Length::constant, 8, 0},
    {"modff", 1, Length::constant, 4, 0},
    {"sincos", 1, Length::constant, 8, 0},
    {"sincos", 2, Length::constant, 8, 0},
    {"sincosf", 1, Length::constant, 4, 0},
    {"sincosf", 2, Length::constant, 4, 0},
    {"strtol", 1, Length::constant, 8, 0},
    {"strtoul", 1, Length::constant, 8, 0},
    {"strtoll", 1, Length::constant, 8, 0},
    {"strtoull", 1, Length::constant, 8, 0},
    {"strtod", 1, Length::constant, 8, 0},
    {"strtof", 1, Length::constant, 8, 0},
};

bool needs_result(Length length) {
  return length == Length::result || length == Length::result_product ||
         length == Length::printed || length == Length::printed_without_limit ||
         length == Length::line;
}

// ---- Lengths as IR ------------------------------------------------------------------------------

class Lengths {
 public:
  Lengths(llvm::IRBuilderBase& builder, llvm::CallBase& call, const Row& row)
      : builder_(builder), call_(call), row_(row) {}

  ByteRange range() {
    llvm::Value* destination = call_.getArgOperand(row_.destination);
    if (row_.length == Length::appended || row_.length == Length::appended_at_most)
      destination =
          builder_.CreateGEP(builder_.getInt8Ty(), bytes_of(destination), length_of(destination));
    return {.address = destination, .bytes = bytes()};
  }

 private:
  llvm::Value* bytes() {
    switch (row_.length) {
      case Length::argument:
        return builder_.CreateMul(argument(row_.first), number(row_.second));
      case Length::product:
        return builder_.CreateMul(argument(row_.first), argument(row_.second));
      case Length::constant:
        return number(row_.first);
      case Length::string:
      case Length::appended:
        return with_end(length_of(call_.getArgOperand(row_.first)));
      case Length::appended_at_most:
        return with_end(length_up_to(argument(row_.second)));
      default:
        return bytes_of_result();
    }
  }

  llvm::Value* bytes_of_result() {
    switch (row_.length) {
      case Length::result:
        return builder_.CreateMul(result(), number(row_.first));
      case Length::result_product:
        return builder_.CreateMul(result(), argument(row_.first));
      case Length::printed:
        return printed(argument(row_.first));
      case Length::printed_without_limit:
        return printed(number(~std::uint64_t{0}));
      default:
        return line();
    }
  }

  // The result, and 0 where it tells of an error.
  llvm::Value* result() {
    llvm::Value* value = builder_.CreateSExtOrTrunc(&call_, builder_.getInt64Ty());
    return builder_.CreateSelect(builder_.CreateICmpSGT(value, number(0)), value, number(0));
  }

  llvm::Value* printed(llvm::Value* limit) {
    llvm::Value* negative =
        builder_.CreateICmpSLT(&call_, llvm::ConstantInt::get(call_.getType(), 0));
    return builder_.CreateSelect(negative, number(0), least(with_end(result()), limit));
  }

  // Of a null pointer strlen is not called: the string is then an empty one of our own.
  llvm::Value* line() {
    llvm::Value* none = builder_.CreateIsNull(&call_);
    llvm::Value* empty = builder_.CreateGlobalStringPtr("");
    llvm::Value* there = builder_.CreateSelect(none, empty, bytes_of(&call_));
    return builder_.CreateSelect(none, number(0), with_end(length_of(there)));
  }

  llvm::Value* number(std::uint64_t value) { return builder_.getInt64(value); }
  llvm::Value* argument(unsigned index) {
    return builder_.CreateZExtOrTrunc(call_.getArgOperand(index), builder_.getInt64Ty());
  }
  llvm::Value* with_end(llvm::Value* length) { return builder_.CreateAdd(length, number(1)); }
  llvm::Value* least(llvm::Value* a, llvm::Value* b) {
    return builder_.CreateSelect(builder_.CreateICmpULT(a, b), a, b);
  }
  llvm::Value* bytes_of(llvm::Value* address) {
    return builder_.CreatePointerBitCastOrAddrSpaceCast(address,
                                                        byte_pointer(builder_.getContext()));
  }
  llvm::Value* length_of(llvm::Value* string) {
    return builder_.CreateCall(library("strlen", {}), {bytes_of(string)});
  }
  llvm::Value* length_up_to(llvm::Value* limit) {
    llvm::Value* source = bytes_of(call_.getArgOperand(row_.first));
    return builder_.CreateCall(library("strnlen", {builder_.getInt64Ty()}), {source, limit});
  }
  llvm::FunctionCallee library(const char* name, std::vector<llvm::Type*> further) {
    further.insert(further.begin(), byte_pointer(builder_.getContext()));
    auto* type = llvm::FunctionType::get(builder_.getInt64Ty(), further, false);
    return call_.getModule()->getOrInsertFunction(name, type);
  }

  llvm::IRBuilderBase& builder_;
  llvm::CallBase& call_;
  const Row& row_;
};

// A function of the program may have the same name and other arguments.
bool fits(const llvm::CallBase& call, const Row& row) {
  const auto is_pointer = [&](unsigned at) {
    return at < call.arg_size() && call.getArgOperand(at)->getType()->isPointerTy();
  };
  const auto is_number = [&](unsigned at) {
    return at < call.arg_size() && call.getArgOperand(at)->getType()->isIntegerTy();
  };
  if (!is_pointer(row.destination)) return false;
  switch (row.length) {
    case Length::argument:
    case Length::printed:
      return is_number(row.first);
    case Length::result_product:
      return is_number(row.first) && call.getType()->isIntegerTy();
    case Length::product:
      return is_number(row.first) && is_number(row.second);
    case Length::string:
    case Length::appended:
      return is_pointer(row.first);
    case Length::appended_at_most:
      return is_pointer(row.first) && is_number(row.second);
    case Length::result:
    case Length::printed_without_limit:
      return call.getType()->isIntegerTy();
    case Length::line:
      return call.getType()->isPointerTy();
    case Length::constant:
      return true;
  }
  return false;
}

}  // namespace

std::vector<Store> library_stores(llvm::CallBase& call) {
  const auto* callee =
      llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
  std::vector<Store> stores;
  if (callee == nullptr || !callee->isDeclaration()) return stores;
  for (const Row& row : rows) {
    if (callee->getName() != row.name || !fits(call, row)) continue;
    const MakeRanges ranges = [&call, &row](llvm::IRBuilderBase& builder) {
      return std::vector<ByteRange>{Lengths(builder, call, row).range()};
    };
    stores.push_back({.instruction = &call,
                      .address = call.getArgOperand(row.destination),
                      .ranges = ranges,
                      .after = needs_result(row.length)});
  }
  return stores;
}

}  // namespace tombolo::dsm::compiler
