// SPDX-License-Identifier: Apache-2.0
// Purpose: the plugin: its options, and the pass that clang runs last, at each level of
// optimization. It sees the stores as they will be, after vectorization and merging.
// Thread safety: one unit at a time.
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include "dsm/compiler/instrumentation.h"

namespace tombolo::dsm::compiler {

namespace {

namespace cl = llvm::cl;

cl::opt<Variant> variant(
    "tombolo-stores", cl::desc("Which stores are recorded"), cl::init(Variant::fixed),
    cl::values(clEnumValN(Variant::fixed, "static", "those that may be in a span, by analysis"),
               clEnumValN(Variant::full, "full", "each, with a check when the program runs"),
               clEnumValN(Variant::page, "page", "none")));
cl::opt<std::string> report_to("tombolo-report",
                               cl::desc("A file to which a line of JSON is added; -: text"));
cl::list<std::string> begins("tombolo-begins", cl::desc("A function that begins a span"));
cl::list<std::string> ends("tombolo-ends", cl::desc("A function that ends a span"));

std::vector<std::string> names(const cl::list<std::string>& list) {
  return {list.begin(), list.end()};
}

void write(const Report& report, const llvm::Module& module) {
  if (report_to == "-") {
    llvm::errs() << report.text(module.getSourceFileName());
    return;
  }
  std::error_code error;
  // Compilers that run at once add whole lines.
  llvm::raw_fd_ostream out(report_to, error, llvm::sys::fs::OF_Append);
  if (!error) {
    out << report.json(module.getSourceFileName());
    out.close();
    error = out.error();
    out.clear_error();  // else the stream ends the compiler, without the path
  }
  if (error) module.getContext().emitError("tombolo: " + report_to + ": " + error.message());
}

struct StorePass : llvm::PassInfoMixin<StorePass> {
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    auto& of_functions =
        analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    Report report;
    const SpanCalls calls(names(begins), names(ends));
    const bool changed = Instrumentation(module, of_functions, variant, calls, report).run();
    if (!report_to.empty()) write(report, module);
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

}  // namespace

}  // namespace tombolo::dsm::compiler

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  using tombolo::dsm::compiler::run_last;
  using tombolo::dsm::compiler::StorePass;
  return {LLVM_PLUGIN_API_VERSION, "tombolo-stores", "1",
          [](llvm::PassBuilder& builder) { run_last(builder, [] { return StorePass(); }); }};
}
