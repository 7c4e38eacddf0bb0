// Ir's instructions: one call of LLVM's IRBuilder each. Never sets fast-math flags: contraction is spelled out by
// fma(), and NaN, infinities and signed zeros keep their meaning.
#include "codegen/cpu/ir.h"
#include "codegen/cpu/ir_state.h"
#include "llvm/IR/Intrinsics.h"

namespace gaf::cpu {

namespace {
bool is_zero(Val v) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->isZero();
}
bool is_one(Val v) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->isOne();
}
llvm::Type* with_lanes(llvm::Type* scalar, Val like) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return v ? llvm::FixedVectorType::get(scalar, v->getNumElements()) : scalar;
}
}  // namespace

llvm::Type* Ir::State::scalar(Elem e) {
  switch (e) {
    case Elem::i1: return llvm::Type::getInt1Ty(context);
    case Elem::i8: return llvm::Type::getInt8Ty(context);
    case Elem::i16: return llvm::Type::getInt16Ty(context);
    case Elem::i32: return llvm::Type::getInt32Ty(context);
    case Elem::i64: return llvm::Type::getInt64Ty(context);
    case Elem::f32: return llvm::Type::getFloatTy(context);
    case Elem::f64: return llvm::Type::getDoubleTy(context);
    case Elem::ptr: break;
  }
  return llvm::PointerType::getUnqual(context);
}
llvm::Type* Ir::State::type(Type t) {
  return t.lanes == 1 ? scalar(t.e) : llvm::FixedVectorType::get(scalar(t.e), static_cast<unsigned>(t.lanes));
}

// ---- constants ----
Val Ir::num(Type t, double v) {
  if (t.e == Elem::f32 || t.e == Elem::f64) return llvm::ConstantFP::get(s_->type(t), v);
  return inum(t, static_cast<int64_t>(v));
}
Val Ir::inum(Type t, int64_t v) {
  llvm::Type* type = s_->type(t);
  const unsigned bits = type->getScalarSizeInBits();
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(v) & mask);
}
Val Ir::ilist(Elem e, std::span<const int64_t> v) {
  std::vector<llvm::Constant*> c;
  for (int64_t x : v) c.push_back(llvm::cast<llvm::Constant>(inum({e, 1}, x)));
  return v.size() == 1 ? c[0] : llvm::ConstantVector::get(c);
}
Val Ir::undef(Type t) { return llvm::PoisonValue::get(s_->type(t)); }
Val Ir::table(std::span<const uint32_t> words) {
  auto* data = llvm::ConstantDataArray::get(s_->context, llvm::ArrayRef<uint32_t>(words.data(), words.size()));
  auto* g = new llvm::GlobalVariable(*s_->module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
  g->setAlignment(llvm::Align(64));
  return g;
}
std::optional<int64_t> Ir::constant(Val v) const {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) return c->getSExtValue();
  return std::nullopt;
}

// ---- integers ----
Val Ir::add(Val a, Val b) { return is_zero(a) ? b : is_zero(b) ? a : s_->b.CreateAdd(a, b); }
Val Ir::sub(Val a, Val b) { return is_zero(b) ? a : s_->b.CreateSub(a, b); }
Val Ir::mul(Val a, Val b) { return is_one(a) ? b : is_one(b) ? a : s_->b.CreateMul(a, b); }
Val Ir::sdiv(Val a, Val b) { return s_->b.CreateSDiv(a, b); }
Val Ir::udiv(Val a, Val b) { return is_one(b) ? a : s_->b.CreateUDiv(a, b); }
Val Ir::urem(Val a, Val b) { return s_->b.CreateURem(a, b); }
Val Ir::and_(Val a, Val b) { return s_->b.CreateAnd(a, b); }
Val Ir::or_(Val a, Val b) { return s_->b.CreateOr(a, b); }
Val Ir::xor_(Val a, Val b) { return s_->b.CreateXor(a, b); }
Val Ir::not_(Val a) { return s_->b.CreateNot(a); }
Val Ir::shl(Val a, Val b) { return s_->b.CreateShl(a, b); }
Val Ir::lshr(Val a, Val b) { return s_->b.CreateLShr(a, b); }
Val Ir::ashr(Val a, Val b) { return s_->b.CreateAShr(a, b); }
Val Ir::shl(Val a, int n) { return s_->b.CreateShl(a, static_cast<uint64_t>(n)); }
Val Ir::lshr(Val a, int n) { return s_->b.CreateLShr(a, static_cast<uint64_t>(n)); }
Val Ir::ashr(Val a, int n) { return s_->b.CreateAShr(a, static_cast<uint64_t>(n)); }
Val Ir::icmp(Pred p, Val a, Val b) {
  using P = llvm::CmpInst;
  static constexpr llvm::CmpInst::Predicate kPred[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT, P::ICMP_SLE,
                                                       P::ICMP_SGT, P::ICMP_SGE, P::ICMP_ULT, P::ICMP_ULE};
  return s_->b.CreateICmp(kPred[static_cast<int>(p)], a, b);
}
Val Ir::smin(Val a, Val b) { return select(icmp(Pred::lt, a, b), a, b); }
Val Ir::smax(Val a, Val b) { return select(icmp(Pred::gt, a, b), a, b); }

// ---- floats ----
Val Ir::fadd(Val a, Val b) { return s_->b.CreateFAdd(a, b); }
Val Ir::fsub(Val a, Val b) { return s_->b.CreateFSub(a, b); }
Val Ir::fmul(Val a, Val b) { return s_->b.CreateFMul(a, b); }
Val Ir::fdiv(Val a, Val b) { return s_->b.CreateFDiv(a, b); }
Val Ir::frem(Val a, Val b) { return s_->b.CreateFRem(a, b); }
// llvm.fma without the instruction would be a call of libm per lane, so there the product is rounded.
Val Ir::fma(Val a, Val b, Val c) {
  if (!machine_.fma) return fadd(fmul(a, b), c);
  return s_->b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}
Val Ir::fneg(Val a) { return s_->b.CreateFNeg(a); }
Val Ir::fabs(Val a) { return s_->b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a); }
Val Ir::sqrt(Val a) { return s_->b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a); }
Val Ir::copysign(Val m, Val s) { return s_->b.CreateIntrinsic(llvm::Intrinsic::copysign, {m->getType()}, {m, s}); }
Val Ir::floor(Val a) { return s_->b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a); }
Val Ir::ceil(Val a) { return s_->b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a); }
Val Ir::trunc(Val a) { return s_->b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a); }
Val Ir::rint(Val a) { return s_->b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a); }
Val Ir::fcmp(Pred p, Val a, Val b) {
  using P = llvm::CmpInst;
  switch (p) {
    case Pred::eq: return s_->b.CreateFCmp(P::FCMP_OEQ, a, b);
    case Pred::ne: return s_->b.CreateFCmp(P::FCMP_UNE, a, b);
    case Pred::lt: return s_->b.CreateFCmp(P::FCMP_OLT, a, b);
    case Pred::le: return s_->b.CreateFCmp(P::FCMP_OLE, a, b);
    case Pred::gt: return s_->b.CreateFCmp(P::FCMP_OGT, a, b);
    case Pred::ge: return s_->b.CreateFCmp(P::FCMP_OGE, a, b);
    default: return s_->b.CreateFCmp(P::FCMP_UNO, a, b);
  }
}

// ---- conversions ----
Val Ir::narrow(Val a, Elem e) { return s_->b.CreateTrunc(a, with_lanes(s_->scalar(e), a)); }
Val Ir::zext(Val a, Elem e) { return s_->b.CreateZExt(a, with_lanes(s_->scalar(e), a)); }
Val Ir::sext(Val a, Elem e) { return s_->b.CreateSExt(a, with_lanes(s_->scalar(e), a)); }
Val Ir::bitcast(Val a, Elem e) { return s_->b.CreateBitCast(a, with_lanes(s_->scalar(e), a)); }
Val Ir::from_int(Val a, Elem e, bool is_signed) {
  llvm::Type* t = with_lanes(s_->scalar(e), a);
  return is_signed ? s_->b.CreateSIToFP(a, t) : s_->b.CreateUIToFP(a, t);
}
Val Ir::to_int(Val a, Elem e, bool is_signed) {
  llvm::Type* t = with_lanes(s_->scalar(e), a);
  const auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return s_->b.CreateIntrinsic(id, {t, a->getType()}, {a});
}
Val Ir::fext(Val a) { return s_->b.CreateFPExt(a, with_lanes(s_->scalar(Elem::f64), a)); }
Val Ir::fnarrow(Val a) { return s_->b.CreateFPTrunc(a, with_lanes(s_->scalar(Elem::f32), a)); }
Val Ir::half_to_f32(Val bits) {
  Val h = s_->b.CreateBitCast(bits, with_lanes(llvm::Type::getHalfTy(s_->context), bits));
  return s_->b.CreateFPExt(h, with_lanes(s_->scalar(Elem::f32), bits));
}
Val Ir::f32_to_half(Val a) {
  Val h = s_->b.CreateFPTrunc(a, with_lanes(llvm::Type::getHalfTy(s_->context), a));
  return s_->b.CreateBitCast(h, with_lanes(s_->scalar(Elem::i16), a));
}

// ---- lanes ----
Type Ir::type(Val v) const {
  llvm::Type* t = v->getType();
  Type r;
  if (auto* vec = llvm::dyn_cast<llvm::FixedVectorType>(t))
    r.lanes = static_cast<int>(vec->getNumElements()), t = vec->getElementType();
  if (t->isFloatTy())
    r.e = Elem::f32;
  else if (t->isDoubleTy())
    r.e = Elem::f64;
  else if (t->isPointerTy())
    r.e = Elem::ptr;
  else
    switch (t->getIntegerBitWidth()) {
      case 1: r.e = Elem::i1; break;
      case 8: r.e = Elem::i8; break;
      case 16: r.e = Elem::i16; break;
      case 32: r.e = Elem::i32; break;
      default: r.e = Elem::i64;
    }
  return r;
}
Val Ir::select(Val c, Val a, Val b) { return a == b ? a : s_->b.CreateSelect(c, a, b); }
Val Ir::splat(Val v, int lanes) { return lanes == 1 ? v : s_->b.CreateVectorSplat(static_cast<unsigned>(lanes), v); }
Val Ir::extract(Val v, int i) {
  return type(v).lanes == 1 ? v : s_->b.CreateExtractElement(v, static_cast<uint64_t>(i));
}
Val Ir::insert(Val v, Val x, int i) {
  return type(v).lanes == 1 ? x : s_->b.CreateInsertElement(v, x, static_cast<uint64_t>(i));
}
Val Ir::shuffle(Val a, Val b, std::span<const int> mask) {
  if (type(a).lanes == 1) a = s_->b.CreateVectorSplat(1, a), b = b ? s_->b.CreateVectorSplat(1, b) : nullptr;
  llvm::ArrayRef<int> m(mask.data(), mask.size());
  Val v = b ? s_->b.CreateShuffleVector(a, b, m) : s_->b.CreateShuffleVector(a, m);
  return mask.size() == 1 ? s_->b.CreateExtractElement(v, uint64_t{0}) : v;
}
Val Ir::any(Val b1) { return type(b1).lanes == 1 ? b1 : s_->b.CreateOrReduce(b1); }

// ---- memory ----
Val Ir::offset(Val p, Val bytes) { return is_zero(bytes) ? p : s_->b.CreateGEP(s_->scalar(Elem::i8), p, bytes); }
Val Ir::offset(Val p, int64_t bytes) { return bytes == 0 ? p : s_->b.CreateGEP(s_->scalar(Elem::i8), p, i64(bytes)); }
Val Ir::load(Type t, Val p, int64_t align) {
  return s_->b.CreateAlignedLoad(s_->type(t), p, llvm::Align(static_cast<uint64_t>(align)));
}
void Ir::store(Val v, Val p, int64_t align) {
  s_->b.CreateAlignedStore(v, p, llvm::Align(static_cast<uint64_t>(align)));
}
Val Ir::masked_load(Type t, Val p, int64_t align, Val mask, Val other) {
  return s_->b.CreateMaskedLoad(s_->type(t), p, llvm::Align(static_cast<uint64_t>(align)), mask, other);
}
void Ir::masked_store(Val v, Val p, int64_t align, Val mask) {
  s_->b.CreateMaskedStore(v, p, llvm::Align(static_cast<uint64_t>(align)), mask);
}
Val Ir::gather(Type t, Val base, Val index, Val mask) {
  Val p = s_->b.CreateGEP(s_->scalar(t.e), base, index);
  return s_->b.CreateMaskedGather(s_->type(t), p, llvm::Align(static_cast<uint64_t>(gaf::cpu::bytes(t.e))), mask,
                                  num(t, 0));
}
void Ir::prefetch(Val p, Cache to) {
  s_->b.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                        {p, s_->b.getInt32(0), s_->b.getInt32(to == Cache::l1 ? 3 : 2), s_->b.getInt32(1)});
}
Val Ir::local(Type t) {
  llvm::IRBuilder<>::InsertPointGuard guard(s_->b);
  llvm::BasicBlock& entry = s_->b.GetInsertBlock()->getParent()->getEntryBlock();
  s_->b.SetInsertPoint(&entry, entry.begin());
  auto* a = s_->b.CreateAlloca(s_->type(t));
  a->setAlignment(llvm::Align(64));
  return a;
}

// ---- control ----
Block Ir::block(const char* name) {
  return llvm::BasicBlock::Create(s_->context, name, s_->b.GetInsertBlock()->getParent());
}
void Ir::enter(Block b) { s_->b.SetInsertPoint(b); }
Block Ir::here() const { return s_->b.GetInsertBlock(); }
void Ir::br(Block b) { s_->b.CreateBr(b); }
void Ir::br(Val cond, Block yes, Block no) { s_->b.CreateCondBr(cond, yes, no); }
void Ir::loop_br(Val cond, Block again, Block out) {
  auto* br = s_->b.CreateCondBr(cond, again, out);
  auto* off = llvm::MDNode::get(s_->context, llvm::MDString::get(s_->context, "llvm.loop.unroll.disable"));
  auto* id = llvm::MDNode::getDistinct(s_->context, {nullptr, off});
  id->replaceOperandWith(0, id);
  br->setMetadata(llvm::LLVMContext::MD_loop, id);
}
Val Ir::phi(Type t) { return s_->b.CreatePHI(s_->type(t), 2); }
void Ir::incoming(Val phi, Val v, Block from) { llvm::cast<llvm::PHINode>(phi)->addIncoming(v, from); }
Ir::Mark Ir::mark() const {
  Block b = here();
  return {b, b->empty() ? nullptr : &b->back()};
}
Val Ir::at(Mark& m, const std::function<Val()>& f) {
  llvm::IRBuilder<>::InsertPointGuard guard(s_->b);
  auto it = m.last ? std::next(m.last->getIterator()) : m.block->begin();
  s_->b.SetInsertPoint(m.block, it);
  Val v = f();
  // The last instruction before the insert point is where the next one goes.
  auto end = s_->b.GetInsertPoint();
  if (end != m.block->begin()) m.last = &*std::prev(end);
  return v;
}

}  // namespace gaf::cpu
