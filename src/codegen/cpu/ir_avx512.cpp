// Instructions of AVX-512 that LLVM IR has no operation for: estimates of reciprocals, scaling by powers of two,
// tables.
#include <numeric>

#include "codegen/cpu/ir.h"
#include "codegen/cpu/ir_state.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace gaf::cpu {

// An instruction has at least `least` lanes and at most 16: wider vectors are halved, narrower ones padded.
Val Ir::in_registers(const Vals& args, int least, const std::function<Val(const Vals&)>& f) {
  const int n = type(args[0]).lanes;
  auto lanes = [&](int from, int count) {
    std::vector<int> mask;
    for (int i = from; i < from + count; i++) mask.push_back(i < n ? i : -1);
    Vals out;
    for (Val a : args) out.push_back(shuffle(a, nullptr, mask));
    return out;
  };
  std::vector<int> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  if (n > 16) return shuffle(in_registers(lanes(0, n / 2), least, f), in_registers(lanes(n / 2, n / 2), least, f), all);
  return n < least ? shuffle(f(lanes(0, least)), nullptr, all) : f(args);
}

Val Ir::reciprocal(Val a) {
  return in_registers({a}, 4, [&](const Vals& v) {
    const Type t = type(v[0]);
    const llvm::Intrinsic::ID id = t.lanes == 4   ? llvm::Intrinsic::x86_avx512_rcp14_ps_128
                                   : t.lanes == 8 ? llvm::Intrinsic::x86_avx512_rcp14_ps_256
                                                  : llvm::Intrinsic::x86_avx512_rcp14_ps_512;
    return s_->b.CreateIntrinsic(id, {}, {v[0], num(t, 0), inum({t.lanes == 16 ? Elem::i16 : Elem::i8, 1}, -1)});
  });
}

Val Ir::scale(Val a, Val exponent) {
  return in_registers({a, exponent}, 16, [&](const Vals& v) {
    return s_->b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                 {v[0], v[1], num(type(v[0]), 0), inum({Elem::i16, 1}, -1), s_->b.getInt32(4)});
  });
}

Val Ir::lookup(std::span<const double, 16> table, Val index) {
  std::vector<llvm::Constant*> numbers;
  for (double x : table) numbers.push_back(llvm::ConstantFP::get(s_->scalar(Elem::f32), x));
  return in_registers({index}, 16, [&](const Vals& v) {
    return s_->b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                 {llvm::ConstantVector::get(numbers), v[0]});
  });
}

}  // namespace gaf::cpu
