// Recording: operands become byte ranges, ranges are checked against what an operand owns, operations become closures.
#include "engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace npu {

Core core;

namespace {

constexpr size_t kGap = 4096;  // between memories and buffers: nothing that runs over its end meets a neighbour

int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// float of every f16: a table, because the conversion is a library call on plain x86-64.
const std::vector<float>& half_values() {
  static const std::vector<float> table = [] {
    std::vector<float> t(65536);
    for (uint32_t i = 0; i < 65536; i++) {
      const uint16_t bits = uint16_t(i);
      _Float16 h;
      memcpy(&h, &bits, 2);
      t[i] = float(h);
    }
    return t;
  }();
  return table;
}

void count_traffic(const Place& p, const Ranges& r, bool write) {
  if (p.where != Where::gm) return;
  for (const Range& x : r) (write ? core.traffic.written : core.traffic.read) += x.bytes;
}

struct Operand {
  Place place;
  Ranges valid, touched;
};

Operand operand(const Place& p, Extent valid, Extent touched) {
  Operand o{p, bytes_of(p, valid), {}};
  const Extent t{std::max(valid.rows, touched.rows), std::max(valid.cols, touched.cols)};
  o.touched = joined(o.valid, bytes_of(p, t));
  return o;
}

}  // namespace

float load(const uint8_t* p, Type t) {
  if (t == Type::f32) {
    float v;
    memcpy(&v, p, 4);
    return v;
  }
  uint16_t bits;
  memcpy(&bits, p, 2);
  return half_values()[bits];
}

void store(uint8_t* p, Type t, float v) {
  if (t == Type::f32) {
    memcpy(p, &v, 4);
    return;
  }
  const _Float16 h = _Float16(v);
  memcpy(p, &h, 2);
}

void Core::reset(const std::vector<std::pair<size_t, bool>>& buffers) {
  size_t end = kGap;
  for (int i = 0; i < kMemories; i++) {
    base[i] = end;
    end = size_t(up(int64_t(end + kMemory[i].bytes + kGap), 512));
  }
  gm.clear();
  for (auto [n, output] : buffers) {
    gm.push_back({{end, n}, output});
    end = size_t(up(int64_t(end + n + kGap), 512));
  }
  bytes.assign(end, 0xFF);
  defined.assign(end, 0);
  for (const Buffer& b : gm)
    if (!b.output) memset(&defined[b.range.at], 1, b.range.bytes);
  start(0, 1);
}

void Core::start(int64_t block_index, int64_t block_count) {
  trace.clear();
  misuse.clear();
  for (size_t& p : peak) p = 0;
  traffic = {};
  block = block_index;
  blocks = block_count;
}

void Core::fill_undefined(bool keep_outputs) {
  const size_t chip_end = gm.empty() ? bytes.size() : gm[0].range.at;
  memset(bytes.data(), 0xFF, chip_end);  // NaN in both types
  memset(defined.data(), 0, chip_end);
  for (const Buffer& b : gm)
    if (b.output && !keep_outputs)
      memset(&bytes[b.range.at], 0xFF, b.range.bytes), memset(&defined[b.range.at], 0, b.range.bytes);
}

void misuse(const std::string& what, int line) { core.misuse[what + " (line " + std::to_string(line) + ")"]++; }

Place local(Where w, Type t, size_t offset, size_t bytes, int line) {
  const MemoryFacts& m = kMemory[int(w)];
  const bool fits = require(offset + bytes <= m.bytes, "placed beyond the end of its memory", line);
  require(offset % m.align == 0, "placed at a misaligned offset", line);
  require(bytes > 0, "an empty tensor", line);
  Place p;
  p.where = w;
  p.type = t;
  p.at = core.base[int(w)] + (fits ? offset : 0);
  p.lo = p.at;
  p.hi = p.at + (fits ? bytes : 0);
  core.peak[int(w)] = std::max(core.peak[int(w)], offset + bytes);
  return p;
}

Place global(const void* p, Type t, int64_t stride) {
  Place r;
  r.where = Where::gm;
  r.type = t;
  r.at = core.offset(p);
  r.block_row = stride;
  return r;
}

Ranges merged(Ranges r) {
  std::erase_if(r, [](const Range& x) { return x.bytes == 0; });
  std::sort(r.begin(), r.end(), [](const Range& a, const Range& b) { return a.at < b.at; });
  Ranges out;
  for (const Range& x : r) {
    if (!out.empty() && x.at <= out.back().at + out.back().bytes)
      out.back().bytes = std::max(out.back().bytes, x.at + x.bytes - out.back().at);
    else
      out.push_back(x);
  }
  return out;
}

Ranges joined(Ranges a, const Ranges& b) {
  a.insert(a.end(), b.begin(), b.end());
  return merged(std::move(a));
}

Ranges without(const Ranges& all, const Ranges& part) {
  Ranges out;
  for (Range x : all) {
    for (const Range& y : part) {
      if (y.at + y.bytes <= x.at || y.at >= x.at + x.bytes) continue;
      if (y.at > x.at) out.push_back({x.at, y.at - x.at});
      const size_t end = std::min(x.at + x.bytes, y.at + y.bytes);
      x = {end, x.at + x.bytes - end};
    }
    if (x.bytes) out.push_back(x);
  }
  return out;
}

Ranges bytes_of(const Place& p, Extent e) {
  const size_t size = size_t(size_of(p.type));
  Ranges r;
  for (int64_t i = 0; i < e.rows; i++) {
    for (int64_t j = 0; j < e.cols;) {
      const int64_t left = std::min(e.cols - j, p.f1 - j % p.f1);  // of this block
      const bool dense = p.f1 == 1 ? p.block_col == 1 : p.col == 1;
      const int64_t n = !dense ? 1 : p.f1 == 1 ? e.cols - j : left;
      r.push_back({p.of(i, j), size_t(n) * size});
      j += n;
    }
  }
  return merged(std::move(r));
}

bool inside(const Place& p, const Ranges& r, const char* what, int line) {
  for (const Range& x : r) {
    if (p.where != Where::gm) {
      if (x.at < p.lo || x.at + x.bytes > p.hi)
        return misuse(std::string(what) + ": access beyond the tensor", line), false;
      continue;
    }
    const bool found = std::any_of(core.gm.begin(), core.gm.end(), [&](const Core::Buffer& b) {
      return x.at >= b.range.at && x.at + x.bytes <= b.range.at + b.range.bytes;
    });
    if (!found) return misuse(std::string(what) + ": global memory outside every buffer", line), false;
  }
  return true;
}

void set_flag(Pipe from, Pipe to, int64_t event, int line) {
  if (require(event >= 0 && event <= 7, "event id outside 0..7", line) &&
      require(from != to, "a flag from a pipe to itself", line))
    core.trace.push_back(
        {.kind = Kind::set, .pipe = from, .other = to, .event = int(event), .line = line, .what = "set"});
}

void wait_flag(Pipe from, Pipe to, int64_t event, int line) {
  if (require(event >= 0 && event <= 7, "event id outside 0..7", line) &&
      require(from != to, "a flag from a pipe to itself", line))
    core.trace.push_back(
        {.kind = Kind::wait, .pipe = to, .other = from, .event = int(event), .line = line, .what = "wait"});
}

void barrier(Pipe p, int line) {
  if (require(p != S, "a barrier on the scalar pipe is a hardware error", line))
    core.trace.push_back({.kind = Kind::barrier, .pipe = p, .line = line, .what = "barrier"});
}

void move(Pipe p, const char* what, const Place& to, const Place& from, const Move& m, int line) {
  if (!require(m.valid.rows > 0 && m.valid.cols > 0, "a copy of nothing", line)) return;
  const Operand s = operand(from, m.valid, m.source), d = operand(to, m.valid, m.target);
  const Ranges& gm_read = from.where == Where::gm ? s.valid : s.touched;  // a copy reads no padding of global memory
  if (!inside(from, gm_read, what, line) || !inside(to, d.touched, what, line)) return;
  count_traffic(from, s.valid, false);
  count_traffic(to, d.valid, true);
  Op op{.pipe = p,
        .line = line,
        .what = what,
        .reads = gm_read,
        .writes = d.touched,
        .needs = s.valid,
        .defines = d.valid};
  const Extent t{std::max(m.valid.rows, m.target.rows), std::max(m.valid.cols, m.target.cols)};
  if (m.zero_cols) op.defines = joined(op.defines, bytes_of(to, {m.valid.rows, t.cols}));
  op.carries = m.carry;
  if (m.carry) op.needs.clear();
  op.run = [=] {
    const Extent e = m.carry ? t : m.valid;
    const bool plain = from.type == to.type && !m.relu;
    for (int64_t i = 0; i < e.rows; i++) {
      for (int64_t j = 0; j < e.cols; j++) {
        const size_t a = from.of(i, j), b = to.of(i, j);
        if (plain && from.type == Type::f16) {
          memcpy(core.pointer(b), core.pointer(a), 2);
        } else if (plain) {
          memcpy(core.pointer(b), core.pointer(a), 4);
        } else {
          const float v = load(core.pointer(a), from.type);
          store(core.pointer(b), to.type, m.relu && v < 0 ? 0 : v);
        }
        if (m.carry && core.in_order) memset(&core.defined[b], core.defined[a], size_t(size_of(to.type)));
      }
      if (m.zero_cols)
        for (int64_t j = m.valid.cols; j < t.cols; j++) store(core.pointer(to.of(i, j)), to.type, 0);
    }
  };
  core.trace.push_back(std::move(op));
}

void map(const char* what, const Place& to, const std::vector<Place>& from, Extent valid, Extent target, Scalar f,
         int line) {
  if (!require(valid.rows > 0 && valid.cols > 0, "an operation on nothing", line)) return;
  const Operand d = operand(to, valid, target);
  Op op{.pipe = V, .line = line, .what = what, .writes = d.touched, .defines = d.valid};
  bool ok = inside(to, d.touched, what, line);
  for (const Place& s : from) {
    const Ranges r = bytes_of(s, valid);
    ok = inside(s, r, what, line) && ok;
    op.reads = joined(std::move(op.reads), r);
  }
  if (!ok) return;
  op.needs = op.reads;
  op.run = [=] {
    std::vector<float> x(std::max<size_t>(from.size(), 1));
    for (int64_t i = 0; i < valid.rows; i++) {
      for (int64_t j = 0; j < valid.cols; j++) {
        for (size_t k = 0; k < from.size(); k++) x[k] = load(core.pointer(from[k].of(i, j)), from[k].type);
        store(core.pointer(to.of(i, j)), to.type, f(x.data()));
      }
    }
  };
  core.trace.push_back(std::move(op));
}

void reduce(const char* what, const Place& to, const Place& from, Extent valid, Extent target, const Ranges& scratch,
            float (*f)(float, float), int line) {
  if (!require(valid.rows > 0 && valid.cols > 0, "an operation on nothing", line)) return;
  const Operand d = operand(to, {valid.rows, 1}, target);
  const Ranges r = bytes_of(from, valid);
  if (!inside(to, d.touched, what, line) || !inside(from, r, what, line)) return;
  if (!require(without(d.touched, r) == d.touched, "a reduction writes over its source", line)) return;
  Op op{.pipe = V,
        .line = line,
        .what = what,
        .reads = r,
        .writes = joined(d.touched, scratch),
        .needs = r,
        .defines = d.valid};
  op.run = [=] {
    for (int64_t i = 0; i < valid.rows; i++) {
      float v = load(core.pointer(from.of(i, 0)), from.type);
      for (int64_t j = 1; j < valid.cols; j++) v = f(v, load(core.pointer(from.of(i, j)), from.type));
      store(core.pointer(to.of(i, 0)), to.type, v);
    }
  };
  core.trace.push_back(std::move(op));
}

void multiply(const char* what, const Place& c, const Place& a, const Place& b, const Place* bias, Product p,
              int line) {
  if (!require(p.m >= 1 && p.n >= 1 && p.k >= 1 && p.m <= 4095 && p.n <= 4095 && p.k <= 4095, "m, n, k outside 1..4095",
               line))
    return;
  const int64_t k0 = 32 / size_of(a.type);  // columns of a fractal of a, rows of one of b
  const int64_t mm = up(p.m, 16), nn = up(p.n, 16), kk = up(p.k, k0);
  const Operand x = operand(a, {p.m, p.k}, {mm, kk}), y = operand(b, {p.k, p.n}, {kk, nn}),
                z = operand(c, {p.m, p.n}, {mm, nn});
  bool ok = inside(a, x.touched, what, line) & inside(b, y.touched, what, line) & inside(c, z.touched, what, line);
  Op op{.pipe = M,
        .line = line,
        .what = what,
        .reads = joined(x.touched, y.touched),
        .writes = z.touched,
        .needs = joined(x.valid, y.valid),
        .defines = z.valid};
  Place t;
  if (p.start == Start::bias) {
    t = *bias;
    const Ranges r = bytes_of(t, {1, p.n});
    ok = inside(t, r, what, line) && ok;
    op.reads = joined(std::move(op.reads), r), op.needs = joined(std::move(op.needs), r);
  } else if (p.start == Start::accumulate) {
    op.reads = joined(std::move(op.reads), z.touched), op.needs = joined(std::move(op.needs), z.valid);
  }
  if (!ok) return;
  op.run = [=] {
    std::vector<float> l(size_t(p.k)), r(size_t(p.k * p.n)), s(size_t(p.n));
    for (int64_t k = 0; k < p.k; k++)
      for (int64_t j = 0; j < p.n; j++) r[size_t(k * p.n + j)] = load(core.pointer(b.of(k, j)), b.type);
    for (int64_t i = 0; i < p.m; i++) {
      for (int64_t k = 0; k < p.k; k++) l[size_t(k)] = load(core.pointer(a.of(i, k)), a.type);
      for (int64_t j = 0; j < p.n; j++)
        s[size_t(j)] = p.start == Start::zero   ? 0
                       : p.start == Start::bias ? load(core.pointer(t.of(0, j)), t.type)
                                                : load(core.pointer(c.of(i, j)), c.type);
      for (int64_t k = 0; k < p.k; k++)
        for (int64_t j = 0; j < p.n; j++) s[size_t(j)] += l[size_t(k)] * r[size_t(k * p.n + j)];
      for (int64_t j = 0; j < p.n; j++) store(core.pointer(c.of(i, j)), c.type, s[size_t(j)]);
    }
  };
  core.trace.push_back(std::move(op));
}

}  // namespace npu
