// Ops that read images at computed places: GridSample, AffineGrid, RoiAlign, DeformConv, NonMaxSuppression.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/eval_util.h"
#include "ops/infer_util.h"
#include "ops/rows.h"
#include "ops/window.h"

namespace gaf {

namespace {

// ---- GridSample ----

void infer_grid_sample(InferContext& c) {
  const Dims &x = c.arg(0).dims, &grid = c.arg(1).dims;
  if (x.size() < 3 || grid.size() != x.size())
    c.fail("GAF3101", "X and the grid do not have the same rank of at least 3");
  if (!grid.back().is(static_cast<int64_t>(x.size()) - 2))
    c.fail("GAF3101", "the grid does not hold a place for each spatial dimension");
  Dims out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  c.types = {{c.arg(0).dtype, out}};
}

// A coordinate folded back into [lo, hi].
double reflected(double v, double lo, double hi) {
  if (hi == lo) return lo;
  const double span = hi - lo;
  double at = std::fmod(std::fabs(v - lo), 2 * span);
  return at <= span ? lo + at : hi - (at - span);
}

struct Sampler {
  Ints dims, strides;
  std::string mode, padding;
  bool corners;

  double at(const double* plane, const Ints& index) const {  // an element, by the padding mode where it is outside
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); d++) {
      int64_t i = index[d];
      if (i < 0 || i >= dims[d]) {
        if (padding == "zeros") return 0;
        const auto n = static_cast<double>(dims[d]);
        if (padding == "border")
          i = std::clamp<int64_t>(i, 0, dims[d] - 1);
        else
          i = static_cast<int64_t>(
              std::lround(corners ? reflected(static_cast<double>(i), 0, n - 1)
                                  : std::clamp(reflected(static_cast<double>(i), -0.5, n - 0.5), 0.0, n - 1)));
      }
      offset += i * strides[d];
    }
    return plane[offset];
  }
  // Weighted sum over the neighbours of p, dimension by dimension.
  double sample(const double* plane, const std::vector<double>& p, size_t d, Ints& index) const {
    if (d == dims.size()) return at(plane, index);
    if (mode == "nearest") {
      index[d] = static_cast<int64_t>(std::nearbyint(p[d]));
      return sample(plane, p, d + 1, index);
    }
    const auto left = static_cast<int64_t>(std::floor(p[d]));
    const int64_t first = mode == "cubic" ? -1 : 0, last = mode == "cubic" ? 2 : 1;
    double sum = 0;
    for (int64_t k = first; k <= last; k++) {
      const double distance = std::fabs(p[d] - static_cast<double>(left + k)), a = -0.75;
      double w = 1 - distance;
      if (mode == "cubic")
        w = distance <= 1 ? ((a + 2) * distance - (a + 3)) * distance * distance + 1
                          : ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
      index[d] = left + k;
      sum += w * sample(plane, p, d + 1, index);
    }
    return sum;
  }
};

void eval_grid_sample(EvalContext& c) {
  const Tensor &x = arg(c, 0), &grid = arg(c, 1);
  Sampler s;
  s.dims = Ints(x.dims.begin() + 2, x.dims.end());
  s.strides = strides_of(s.dims);
  s.mode = attr_str(c.node, "mode", "linear");
  if (s.mode == "bilinear") s.mode = "linear";
  if (s.mode == "bicubic") s.mode = "cubic";
  s.padding = attr_str(c.node, "padding_mode", "zeros");
  s.corners = attr_int(c.node, "align_corners", 0) != 0;
  const size_t rank = s.dims.size();
  if (grid.dims[0] != x.dims[0] || (numel(s.dims) == 0 && grid.numel() != 0))
    fail(c, "GAF3101", "the grid does not fit the input");
  const std::vector<double> data = elements<double>(x), places = elements<double>(grid);
  const int64_t batch = x.dims[0], channels = x.dims[1], plane = numel(s.dims);
  const Ints out_spatial(grid.dims.begin() + 1, grid.dims.end() - 1);
  const int64_t outs = numel(out_spatial);
  std::vector<double> out(static_cast<size_t>(batch * channels * outs));
  std::vector<double> p(rank);
  Ints index(rank);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t o = 0; o < outs; o++) {
      for (size_t d = 0; d < rank; d++) {  // the grid's last dim is in the order x, y, z: last spatial dim first
        const double g = places[static_cast<size_t>((b * outs + o) * static_cast<int64_t>(rank) +
                                                    static_cast<int64_t>(rank - 1 - d))];
        const auto n = static_cast<double>(s.dims[d]);
        double v = s.corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
        if (s.padding == "border") v = std::clamp(v, 0.0, n - 1);
        if (s.padding == "reflection")
          v = s.corners ? reflected(v, 0, n - 1) : std::clamp(reflected(v, -0.5, n - 0.5), 0.0, n - 1);
        p[d] = v;
      }
      for (int64_t ch = 0; ch < channels; ch++)
        out[static_cast<size_t>((b * channels + ch) * outs + o)] =
            s.sample(data.data() + (b * channels + ch) * plane, p, 0, index);
    }
  Ints dims{batch, channels};
  dims.insert(dims.end(), out_spatial.begin(), out_spatial.end());
  c.results = {tensor_of(x.dtype, dims, out)};
}

// ---- AffineGrid ----

void infer_affine_grid(InferContext& c) {
  const auto& size = c.value(1);
  const auto n = known_rank(c, 1);
  if (!n || *n < 4 || *n > 5) c.fail("GAF3101", "the size needs four or five elements");
  const auto rank = static_cast<size_t>(*n);
  Dims out = size ? Dims{(*size)[0]} : Dims{c.arg(0).dims[0]};
  for (size_t i = 2; i < rank; i++) out.push_back(size ? (*size)[i] : fresh_dim(c));
  out.emplace_back(static_cast<int64_t>(rank) - 2);
  c.types = {{c.arg(0).dtype, out}};
}
void eval_affine_grid(EvalContext& c) {
  const Tensor& theta = arg(c, 0);
  const Ints size = elements<int64_t>(arg(c, 1));
  const bool corners = attr_int(c.node, "align_corners", 0) != 0;
  if (size.size() < 4) fail(c, "GAF3101", "the size needs four or five elements");
  const Ints spatial(size.begin() + 2, size.end()), strides = strides_of(spatial);
  const auto rank = static_cast<int64_t>(spatial.size());
  const std::vector<double> m = elements<double>(arg_of(c, 0, size[0] * rank * (rank + 1)));
  std::vector<double> out;
  for (int64_t b = 0; b < size[0]; b++)
    for (int64_t o = 0; o < numel(spatial); o++)
      for (int64_t r = 0; r < rank; r++) {
        const double* row = m.data() + (b * rank + r) * (rank + 1);
        double v = row[rank];
        for (int64_t k = 0; k < rank; k++) {  // k-th coordinate belongs to the k-th spatial dim from the end
          const auto d = static_cast<size_t>(rank - 1 - k);
          const auto n = static_cast<double>(spatial[d]), i = static_cast<double>(o / strides[d] % spatial[d]);
          v += row[k] * (corners ? (n == 1 ? 0 : 2 * i / (n - 1) - 1) : (2 * i + 1) / n - 1);
        }
        out.push_back(v);
      }
  Ints dims{size[0]};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  dims.push_back(rank);
  c.results = {tensor_of(theta.dtype, dims, out)};
}

// ---- RoiAlign ----

void infer_roi_align(InferContext& c) {
  need_rank(c, 0, 4);
  need_rank(c, 1, 2);
  c.types = {{c.arg(0).dtype,
              {c.arg(1).dims[0], c.arg(0).dims[1], attr_int(c.node, "output_height", 1),
               attr_int(c.node, "output_width", 1)}}};
}

// Bilinear value at (y, x) of a plane; 0 beyond one pixel outside.
double bilinear(const double* plane, int64_t height, int64_t width, double y, double x,
                double (*join)(double, double)) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) return 0;
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  int64_t y0 = std::min(static_cast<int64_t>(y), height - 1), x0 = std::min(static_cast<int64_t>(x), width - 1);
  const int64_t y1 = std::min(y0 + 1, height - 1), x1 = std::min(x0 + 1, width - 1);
  if (y0 == height - 1) y = static_cast<double>(y0);
  if (x0 == width - 1) x = static_cast<double>(x0);
  const double fy = y - static_cast<double>(y0), fx = x - static_cast<double>(x0);
  return join(join((1 - fy) * (1 - fx) * plane[y0 * width + x0], (1 - fy) * fx * plane[y0 * width + x1]),
              join(fy * (1 - fx) * plane[y1 * width + x0], fy * fx * plane[y1 * width + x1]));
}

void eval_roi_align(EvalContext& c) {
  const Tensor& x = arg(c, 0);
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3], rois = arg(c, 1).dims[0];
  const int64_t oh = attr_int(c.node, "output_height", 1), ow = attr_int(c.node, "output_width", 1),
                ratio = attr_int(c.node, "sampling_ratio", 0);
  const double scale = attr_float(c.node, "spatial_scale", 1);
  const bool half = attr_str(c.node, "coordinate_transformation_mode",
                             c.opset < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const bool largest = attr_str(c.node, "mode", "avg") == "max";
  const std::vector<double> data = elements<double>(x), boxes = elements<double>(arg_of(c, 1, rois * 4));
  const Ints batches = elements<int64_t>(arg_of(c, 2, rois));
  for (int64_t b : batches)
    if (b < 0 || b >= x.dims[0]) fail(c, "GAF6001", fmt::format("batch {} out of range [0,{})", b, x.dims[0]));
  if (height == 0 || width == 0) fail(c, "GAF3101", "the input is empty");
  std::vector<double> out;
  for (int64_t r = 0; r < rois; r++) {
    const double shift = half ? 0.5 : 0;
    const double* box = boxes.data() + r * 4;
    const double x0 = box[0] * scale - shift, y0 = box[1] * scale - shift;
    double w = box[2] * scale - shift - x0, h = box[3] * scale - shift - y0;
    if (!half) w = std::max(w, 1.0), h = std::max(h, 1.0);
    const double bh = h / static_cast<double>(oh), bw = w / static_cast<double>(ow);
    if (!(std::fabs(bh) < 1e4 && std::fabs(bw) < 1e4)) fail(c, "GAF3101", "a region is too large or no number");
    const int64_t ny = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bh)),
                  nx = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bw));
    for (int64_t ch = 0; ch < channels; ch++) {
      const double* plane = data.data() + (batches[static_cast<size_t>(r)] * channels + ch) * height * width;
      for (int64_t py = 0; py < oh; py++)
        for (int64_t px = 0; px < ow; px++) {
          double sum = 0;
          bool first = true;
          for (int64_t iy = 0; iy < ny; iy++)
            for (int64_t ix = 0; ix < nx; ix++) {
              const double y =
                  y0 + static_cast<double>(py) * bh + (static_cast<double>(iy) + 0.5) * bh / static_cast<double>(ny);
              const double at =
                  x0 + static_cast<double>(px) * bw + (static_cast<double>(ix) + 0.5) * bw / static_cast<double>(nx);
              if (largest) {  // the standard takes the largest weighted corner
                const double v =
                    bilinear(plane, height, width, y, at, [](double a, double b) { return std::max(a, b); });
                sum = first ? v : std::max(sum, v);
              } else {
                sum += bilinear(plane, height, width, y, at, [](double a, double b) { return a + b; });
              }
              first = false;
            }
          out.push_back(largest ? sum : sum / static_cast<double>(std::max<int64_t>(ny * nx, 1)));
        }
    }
  }
  c.results = {tensor_of(x.dtype, {rois, channels, oh, ow}, out)};
}

// ---- NonMaxSuppression ----

void infer_nms(InferContext& c) {
  need_rank(c, 0, 3);
  need_rank(c, 1, 3);
  c.types = {{DType::i64, {fresh_dim(c), 3}}};
}

struct Box {
  double y0, x0, y1, x1;
  double area() const { return (y1 - y0) * (x1 - x0); }
};
double overlap(const Box& a, const Box& b) {
  const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (h <= 0 || w <= 0) return 0;
  return h * w / (a.area() + b.area() - h * w);
}

void eval_nms(EvalContext& c) {
  const Tensor &boxes = arg(c, 0), &scores = arg(c, 1);
  const int64_t batch = scores.dims[0], classes = scores.dims[1], n = scores.dims[2];
  arg_of(c, 0, batch * n * 4);
  const int64_t most = has(c, 2) && arg(c, 2).numel() ? arg(c, 2).get_int(0) : 0;
  const double iou = has(c, 3) && arg(c, 3).numel() ? arg(c, 3).get(0) : 0;
  const bool has_least = has(c, 4) && arg(c, 4).numel();
  const double least = has_least ? arg(c, 4).get(0) : 0;
  const bool centre = attr_int(c.node, "center_point_box", 0) != 0;
  const std::vector<double> b = elements<double>(boxes), s = elements<double>(scores);
  auto box = [&](int64_t k, int64_t i) -> Box {
    const double* p = b.data() + (k * n + i) * 4;
    if (centre) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
    return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
  };
  Ints out;
  for (int64_t k = 0; k < batch; k++)
    for (int64_t cl = 0; cl < classes; cl++) {
      const double* score = s.data() + (k * classes + cl) * n;
      Ints order, kept;
      for (int64_t i = 0; i < n; i++)
        if (!has_least || score[i] > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return score[x] > score[y]; });
      for (int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        if (std::any_of(kept.begin(), kept.end(), [&](int64_t j) { return overlap(box(k, i), box(k, j)) > iou; }))
          continue;
        kept.push_back(i);
        out.insert(out.end(), {k, cl, i});
      }
    }
  c.results = {tensor_of(DType::i64, {static_cast<int64_t>(out.size()) / 3, 3}, out)};
}

OpRow vision(std::string_view name, int min_args, int max_args, void (*infer)(InferContext&),
             void (*eval)(EvalContext&)) {
  return {.name = name,
          .friendly = name,
          .kind = OpKind::other,
          .min_args = min_args,
          .max_args = max_args,
          .infer = infer,
          .eval = eval,
          .ulp = 64,
          .cheap = false};
}

const OpRow kRows[] = {
    vision("GridSample", 2, 2, infer_grid_sample, eval_grid_sample),
    vision("AffineGrid", 2, 2, infer_affine_grid, eval_affine_grid),
    vision("RoiAlign", 3, 3, infer_roi_align, eval_roi_align),
    vision("NonMaxSuppression", 2, 5, infer_nms, eval_nms),
};

}  // namespace

std::span<const OpRow> vision_rows() { return kRows; }

}  // namespace gaf
