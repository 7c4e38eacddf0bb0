// Memory traffic of a kernel behind a cache, from the boxes that its references span. A block whose box fits the cache
// is loaded once; so is a loop of which one iteration fits, because what its iterations share is still there in the
// next one. What does not fit is its body's traffic times its trips.
#include <algorithm>
#include <utility>

#include "ir/analyse.h"

namespace gaf::kir {
namespace {

constexpr double kUsable = 0.75;  // of a cache, before associativity and the neighbours' lines push data out

class Traffic {
 public:
  Traffic(const Kernel& k, std::span<const int64_t> values, double cache, int workers)
      : k_(k), cache_(cache * kUsable), workers_(workers), ranges_(values.size()), reads_(values.size()) {
    for (size_t i = 0; i < values.size(); i++) {
      ranges_[i] = {values[i], values[i]};
      reads_[i] = k.syms[i].kind == SymKind::read;
    }
  }
  double body(const Body& b) {
    double whole = footprint(b);
    if (whole <= cache_) return whole;
    double sum = 0;
    for (const Stmt& s : b) sum += statement(s);
    return sum;
  }
  double footprint(std::span<const Stmt> stmts) {
    boxes_.clear();
    gathered_ = 0;
    for (const Stmt& s : stmts) collect(s, 1);
    double sum = gathered_;
    for (const Box& b : boxes_) sum += volume(b);
    return sum;
  }

 private:
  struct Box {
    int buf;
    std::vector<Range> dims;
  };
  const Kernel& k_;
  double cache_;
  int workers_;
  std::vector<Range> ranges_;
  std::vector<uint8_t> reads_;
  std::vector<Box> boxes_;
  double gathered_ = 0;  // bytes of references whose place is only known at run time

  double statement(const Stmt& s) {
    if (const For* f = std::get_if<For>(&s.alt)) return loop(*f, s);
    if (const If* i = std::get_if<If>(&s.alt)) {
      double yes = body(i->yes);
      return std::max(yes, body(i->no));
    }
    return footprint({&s, 1});
  }
  double loop(const For& f, const Stmt& s) {
    double whole = footprint({&s, 1});
    if (whole <= cache_) return whole;
    return axes(f, s, 0, whole);
  }
  // One axis of the nest: iterations one after the other, outermost first.
  double axes(const For& f, const Stmt& s, size_t n, double whole) {
    std::vector<Range> saved = ranges_;
    double count = 1;
    for (size_t i = 0; i <= n && i < f.axes.size(); i++) {
      auto [first, last, number] = span_of(f, i);
      if (i == n) count = number;
      int64_t middle =
          first + (last - first) / 2 / std::max<int64_t>(f.axes[i].step, 1) * std::max<int64_t>(f.axes[i].step, 1);
      ranges_[static_cast<size_t>(f.axes[i].sym)] = {middle, middle};
    }
    double one;
    if (n + 1 < f.axes.size()) {
      fixed_ = n + 1;
      one = footprint({&s, 1});
      fixed_ = 0;
    } else {
      one = footprint(f.body);
    }
    double result;
    if (one <= cache_)
      result = whole;  // what iterations share stays
    else
      result = count * (n + 1 < f.axes.size() ? axes(f, s, n + 1, one) : body(f.body));
    ranges_ = std::move(saved);
    return result;
  }

  struct Span {
    int64_t first, last;
    double number;
  };
  // Values of an axis, of one worker's share.
  Span span_of(const For& f, size_t n) {
    const Axis& a = f.axes[n];
    int64_t lo = a.lo.range(ranges_).lo, hi = a.hi.range(ranges_).hi, step = std::max<int64_t>(a.step, 1);
    int64_t count = trips(lo, hi, step);
    if (f.kind == LoopKind::par && workers_ > 1) {
      int64_t left = workers_;  // what the axes further out have not split yet
      for (size_t i = 0; i < n; i++)
        left = std::max<int64_t>(1, left / std::max<int64_t>(1, trips(f.axes[i].lo.range(ranges_).lo,
                                                                      f.axes[i].hi.range(ranges_).hi, f.axes[i].step)));
      count = (count + left - 1) / left;
    }
    count = std::max<int64_t>(count, 0);
    return {lo, lo + std::max<int64_t>(count - 1, 0) * step, static_cast<double>(count)};
  }

  size_t fixed_ = 0;  // axes of the outermost loop being collected that hold one value already

  void collect(const Stmt& s, double instances) {
    if (const For* f = std::get_if<For>(&s.alt)) {
      size_t from = std::exchange(fixed_, 0);
      for (size_t i = from; i < f->axes.size(); i++) {
        Span a = span_of(*f, i);
        if (a.number == 0) return;
        ranges_[static_cast<size_t>(f->axes[i].sym)] = {a.first, a.last};
        instances *= a.number;
      }
      for (const Stmt& x : f->body) collect(x, instances);
      return;
    }
    if (const If* i = std::get_if<If>(&s.alt)) {
      for (const Stmt& x : i->yes) collect(x, instances);
      for (const Stmt& x : i->no) collect(x, instances);
      return;
    }
    if (const Read* r = std::get_if<Read>(&s.alt)) {
      int64_t at = r->lo.range(ranges_).lo;
      ranges_[static_cast<size_t>(r->sym)] = {at, at};
    }
    for_each_ref(s, [&](const Ref& r, bool) {
      if (!r.tile) reference(r, instances);
    });
  }
  void reference(const Ref& r, double instances) {
    const Buf& b = k_.bufs[static_cast<size_t>(r.id)];
    bool gathered = false;
    Box box{r.id, {}};
    box.dims.reserve(r.at.size());
    for (size_t i = 0; i < r.at.size(); i++) {
      const Slice& s = r.at[i];
      Range at = s.at.range(ranges_), dim = b.shape[i].range(ranges_);
      int64_t n = s.n ? s.n->range(ranges_).hi : 1;
      int64_t lo = std::clamp<int64_t>(at.lo, 0, std::max<int64_t>(dim.hi - 1, 0));
      int64_t hi = std::min<int64_t>(at.hi + (n - 1) * s.step, dim.hi - 1);
      box.dims.push_back({lo, std::max(lo, hi)});
      if (s.at.max_sym() >= 0)
        for (size_t y = 0; y < reads_.size(); y++)
          gathered = gathered || (reads_[y] && s.at.mentions(static_cast<int>(y)));
    }
    if (gathered) {
      gathered_ += volume(box) * instances;
      return;
    }
    for (Box& o : boxes_)
      if (o.buf == box.buf) {
        for (size_t i = 0; i < o.dims.size(); i++)
          o.dims[i] = {std::min(o.dims[i].lo, box.dims[i].lo), std::max(o.dims[i].hi, box.dims[i].hi)};
        return;
      }
    boxes_.push_back(std::move(box));
  }
  double volume(const Box& box) const {
    const Buf& b = k_.bufs[static_cast<size_t>(box.buf)];
    double v = bytes(b.type);
    for (size_t i = 0; i < box.dims.size(); i++)
      if (b.role != Role::view || !b.strides[i].is(0)) v *= static_cast<double>(box.dims[i].hi - box.dims[i].lo + 1);
    return v;
  }
};

}  // namespace

double traffic(const Kernel& k, std::span<const int64_t> values, double cache, int workers) {
  return Traffic(k, values, cache, workers).body(k.body);
}
double footprint(const Kernel& k, std::span<const int64_t> values) {
  return Traffic(k, values, 0, 1).footprint(k.body);
}

}  // namespace gaf::kir
