// What the ir_*.cpp files share: the LLVM objects behind Ir. The only header here that includes LLVM.
#pragma once
#include <map>

#include "codegen/cpu/ir.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace gaf::cpu {

struct Ir::State {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::IRBuilder<> b{context};
  std::map<std::string, llvm::Function*> functions;

  llvm::Type* scalar(Elem e);
  llvm::Type* type(Type t);
};

}  // namespace gaf::cpu
