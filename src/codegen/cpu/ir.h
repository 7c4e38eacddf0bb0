// The thin layer over LLVM: values, vectors, memory, blocks, functions, and the making of the object. Everything that
// knows kernel IR (emitter.h) is written against this header, which includes no LLVM header: those cost 10-20 s a file
// to compile, so only ir_*.cpp pay. Knows nothing of kernel IR.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llvm {
class BasicBlock;
class Instruction;
class Value;
}  // namespace llvm

namespace gaf::cpu {

using Val = llvm::Value*;
using Vals = std::vector<Val>;
using Block = llvm::BasicBlock*;

enum class Elem : uint8_t { i1, i8, i16, i32, i64, f32, f64, ptr };
struct Type {
  Elem e = Elem::f32;
  int lanes = 1;  // 1: a scalar
  friend bool operator==(Type, Type) = default;
};
constexpr int bytes(Elem e) {
  return e == Elem::i1 || e == Elem::i8 ? 1 : e == Elem::i16 ? 2 : e == Elem::i32 || e == Elem::f32 ? 4 : 8;
}

enum class Cache : uint8_t { l1, l2 };
enum class Pred : uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  ult,
  ule,
  uno
};  // signed or ordered; ult, ule: unsigned integers; ne on floats: true for NaN

// What the code of a module may use.
struct Machine {
  std::string cpu;            // LLVM's name: "haswell"
  bool fma = true;            // else products are rounded before the sum
  bool native_mask32 = true;  // masked loads and stores of 4 and 8 byte elements are instructions
  bool native_mask8 = false;  // the same for 1 and 2 byte elements
  bool half_convert = true;   // f16 <-> f32 are instructions
  bool avx512 = false;        // what stands under "AVX-512" below
};

class Ir {
 public:
  Ir(const std::string& module_name, const std::string& cpu, bool fma);
  ~Ir();
  const Machine& machine() const { return machine_; }

  // ---- functions ----
  struct Param {
    Elem e;
    bool noalias = false;
  };
  Vals begin(const std::string& name, const std::vector<Param>& params, bool exported, std::optional<Elem> result = {});
  void call_and_return(const std::string& callee, const Vals& args);
  Val call(const std::string& callee, const Vals& args);
  void ret(Val v = nullptr);

  // ---- constants ----
  Val num(Type t, double v);  // of an integer type: v converted
  Val inum(Type t, int64_t v);
  Val i64(int64_t v) { return inum({Elem::i64, 1}, v); }
  Val ilist(Elem e, std::span<const int64_t> v);
  Val undef(Type t);
  Val table(std::span<const uint32_t> words);  // pointer to a constant array
  std::optional<int64_t> constant(Val v) const;

  // ---- integers ----
  Val add(Val a, Val b);
  Val sub(Val a, Val b);
  Val mul(Val a, Val b);
  Val sdiv(Val a, Val b);
  Val udiv(Val a, Val b);
  Val urem(Val a, Val b);
  Val and_(Val a, Val b);
  Val or_(Val a, Val b);
  Val xor_(Val a, Val b);
  Val not_(Val a);
  Val shl(Val a, Val b);
  Val lshr(Val a, Val b);
  Val ashr(Val a, Val b);
  Val shl(Val a, int n);
  Val lshr(Val a, int n);
  Val ashr(Val a, int n);
  Val icmp(Pred p, Val a, Val b);
  Val smin(Val a, Val b);
  Val smax(Val a, Val b);

  // ---- floats ----
  Val fadd(Val a, Val b);
  Val fsub(Val a, Val b);
  Val fmul(Val a, Val b);
  Val fdiv(Val a, Val b);
  Val frem(Val a, Val b);
  Val fma(Val a, Val b, Val c);
  Val fneg(Val a);
  Val fabs(Val a);
  Val sqrt(Val a);
  Val copysign(Val magnitude, Val sign);
  Val floor(Val a);
  Val ceil(Val a);
  Val trunc(Val a);
  Val rint(Val a);  // rint: half to even
  Val fcmp(Pred p, Val a, Val b);

  // ---- AVX-512, of f32 (ir_avx512.cpp) ----
  Val reciprocal(Val a);                                     // within 2^-14 of it, for a normal result
  Val scale(Val a, Val exponent);                            // a * 2^exponent for whole numbers, rounded once
  Val lookup(std::span<const double, 16> table, Val index);  // the low four bits of i32 lanes

  // ---- conversions, keeping lanes ----
  Val narrow(Val a, Elem e);
  Val zext(Val a, Elem e);
  Val sext(Val a, Elem e);
  Val bitcast(Val a, Elem e);
  Val from_int(Val a, Elem e, bool is_signed);
  Val to_int(Val a, Elem e, bool is_signed);  // saturates, NaN gives 0
  Val fext(Val a);
  Val fnarrow(Val a);  // f32 <-> f64
  Val half_to_f32(Val bits);
  Val f32_to_half(Val a);  // only where half_convert

  // ---- lanes ----
  Type type(Val v) const;
  Val select(Val c, Val a, Val b);
  Val splat(Val v, int lanes);
  Val extract(Val v, int i);
  Val insert(Val v, Val x, int i);
  Val shuffle(Val a, Val b, std::span<const int> mask);  // b may be null; -1: any
  Val any(Val b1);                                       // is one lane set

  // ---- memory; offsets in bytes ----
  Val offset(Val p, Val bytes);
  Val offset(Val p, int64_t bytes);
  Val load(Type t, Val p, int64_t align);
  void store(Val v, Val p, int64_t align);
  Val masked_load(Type t, Val p, int64_t align, Val mask, Val other);
  void masked_store(Val v, Val p, int64_t align, Val mask);
  Val gather(Type t, Val base, Val index, Val mask);  // lanes base[index]; the others are 0
  void prefetch(Val p, Cache to);                     // a hint; p need not be valid
  Val local(Type t);                                  // a slot of the function's frame, 64-byte aligned

  // ---- control ----
  Block block(const char* name);
  void enter(Block b);
  Block here() const;
  void br(Block b);
  void br(Val cond, Block yes, Block no);
  void loop_br(Val cond, Block again, Block out);  // a latch: never unrolled behind us
  Val phi(Type t);
  void incoming(Val phi, Val v, Block from);
  // A place to which code can be added later: behind what was last put there.
  struct Mark {
    Block block = nullptr;
    llvm::Instruction* last = nullptr;
  };
  Mark mark() const;
  Val at(Mark& m, const std::function<Val()>& f);

  // ---- the end ----
  void check() const;  // InternalError with the text of the fault
  std::string text() const;
  std::vector<uint8_t> object();
  std::string assembly();

 private:
  Val in_registers(const Vals& args, int least, const std::function<Val(const Vals&)>& f);
  struct State;
  std::unique_ptr<State> s_;
  Machine machine_;
};

const char* llvm_version();

}  // namespace gaf::cpu
