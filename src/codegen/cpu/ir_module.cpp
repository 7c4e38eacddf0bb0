// The module, its functions, and the way to machine code: a TargetMachine for the CPU that the target names, no IR
// passes (the emitter writes final form), code generator level Less, loop strength reduction off (the slowest pass, and
// it undoes the emitter's addresses; it is a process-wide option of LLVM, which is ours alone: hidden in this library).
#include <mutex>

#include "base/error.h"
#include "codegen/cpu/ir.h"
#include "codegen/cpu/ir_state.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"

namespace gaf::cpu {

namespace {

const llvm::Triple& triple() {
  static const llvm::Triple t("x86_64-unknown-linux-gnu");
  return t;
}

const llvm::Target* target() {
  static std::once_flag once;
  static const llvm::Target* found = nullptr;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    static const char* const options[] = {"gaf", "-disable-lsr"};
    llvm::cl::ParseCommandLineOptions(2, options);
    std::string error;
#if LLVM_VERSION_MAJOR >= 22
    found = llvm::TargetRegistry::lookupTarget(triple(), error);
#else
    found = llvm::TargetRegistry::lookupTarget(triple().str(), error);
#endif
    GAF_CHECK(found) << "no x86-64 code generator in LLVM: " << error;
  });
  return found;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const std::string& cpu) {
  llvm::TargetOptions options;
#if LLVM_VERSION_MAJOR >= 21
  const llvm::Triple& name = triple();
#else
  const std::string name = triple().str();
#endif
  auto* m = target()->createTargetMachine(name, cpu, "", options, llvm::Reloc::PIC_, std::nullopt,
                                          llvm::CodeGenOptLevel::Less);
  GAF_CHECK(m) << "LLVM makes no machine for cpu " << cpu;
  return std::unique_ptr<llvm::TargetMachine>(m);
}

}  // namespace

const char* llvm_version() { return LLVM_VERSION_STRING; }

Ir::Ir(const std::string& module_name, const std::string& cpu, bool fma) : s_(std::make_unique<State>()) {
  s_->machine = make_machine(cpu);
#if LLVM_VERSION_MAJOR >= 23
  const llvm::MCSubtargetInfo& facts = s_->machine->getMCSubtargetInfo();
#else
  const llvm::MCSubtargetInfo& facts = *s_->machine->getMCSubtargetInfo();
#endif
  auto has = [&](const char* feature) { return facts.checkFeatures(feature); };
  machine_ = {cpu,          fma && has("+fma"),       has("+avx2"), has("+avx512bw,+avx512vl"),
              has("+f16c"), has("+avx512f,+avx512vl")};
  s_->module = std::make_unique<llvm::Module>(module_name, s_->context);
  s_->module->setRtLibUseGOT();  // what is called lies far away
  s_->module->setDataLayout(s_->machine->createDataLayout());
#if LLVM_VERSION_MAJOR >= 21
  s_->module->setTargetTriple(triple());
#else
  s_->module->setTargetTriple(triple().str());
#endif
}
Ir::~Ir() = default;

// ---- functions ----
Vals Ir::begin(const std::string& name, const std::vector<Param>& params, bool exported, std::optional<Elem> result) {
  std::vector<llvm::Type*> types;
  for (const Param& p : params) types.push_back(s_->scalar(p.e));
  llvm::Type* r = result ? s_->scalar(*result) : llvm::Type::getVoidTy(s_->context);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(r, types, false),
                                   exported ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage, name,
                                   *s_->module);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  if (!exported) f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr("target-cpu", s_->machine->getTargetCPU());
  Vals args;
  for (unsigned i = 0; i < params.size(); i++) {
    if (params[i].noalias) f->addParamAttr(i, llvm::Attribute::NoAlias);
    if (params[i].e == Elem::ptr) f->addParamAttr(i, llvm::Attribute::NonNull);
    args.push_back(f->getArg(i));
  }
  s_->functions[name] = f;
  s_->b.SetInsertPoint(llvm::BasicBlock::Create(s_->context, "entry", f));
  return args;
}
Val Ir::call(const std::string& callee, const Vals& args) { return s_->b.CreateCall(s_->functions.at(callee), args); }
void Ir::call_and_return(const std::string& callee, const Vals& args) {
  call(callee, args);
  ret();
}
void Ir::ret(Val v) {
  if (v)
    s_->b.CreateRet(v);
  else
    s_->b.CreateRetVoid();
}

// ---- the end ----
void Ir::check() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  const bool broken = llvm::verifyModule(*s_->module, &os);
  GAF_CHECK(!broken) << "LLVM's verifier: " << text;
}
std::string Ir::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  s_->module->print(os, nullptr);
  return text;
}

namespace {
void emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind,
          llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream os(out);
  llvm::legacy::PassManager passes;
  const bool cannot = machine.addPassesToEmitFile(passes, os, nullptr, kind, /*DisableVerify=*/true);
  GAF_CHECK(!cannot) << "LLVM writes no such file";
  passes.run(module);
}
}  // namespace

std::vector<uint8_t> Ir::object() {
  llvm::SmallVector<char, 0> out;
  emit(*s_->module, *s_->machine, llvm::CodeGenFileType::ObjectFile, out);
  return {out.begin(), out.end()};
}
std::string Ir::assembly() {
  llvm::SmallVector<char, 0> out;
  emit(*s_->module, *s_->machine, llvm::CodeGenFileType::AssemblyFile, out);
  return {out.begin(), out.end()};
}

}  // namespace gaf::cpu
