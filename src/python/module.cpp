// The Python module: converts arguments and calls compile.h. Records cross as JSON text, arrays as buffers; the classes
// users see are written in Python (python/graph_autofusion/). The GIL is released while planning, compiling and
// running.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <thread>

#include "base/catalogue.h"
#include "base/log.h"
#include "compile.h"
#include "describe.h"
#include "frontend/onnx.h"
#include "ops/op.h"
#include "results.h"
#include "runtime/plan.h"

namespace nb = nanobind;

namespace gaf {
namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;  // inputs may be read-only
using Buffer = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
using Sizes = std::vector<std::pair<std::string, int64_t>>;
using Ranges = std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>>;

// A view of the array's memory; it keeps nothing alive: the caller holds the array during the call.
template <class A>
Tensor tensor_of(const A& a, DType dtype) {
  Tensor t;
  t.dtype = dtype;
  for (size_t i = 0; i < a.ndim(); i++) t.dims.push_back(static_cast<int64_t>(a.shape(i)));
  if (a.nbytes() != static_cast<size_t>(t.size_bytes()))
    throw UserError("GAF3107", "an array's item size does not fit its dtype");
  t.data = std::shared_ptr<const void>(std::shared_ptr<const void>(), a.data());
  return t;
}
template <class A>
std::vector<Tensor> tensors_of(const std::vector<A>& arrays, const std::vector<std::string>& dtypes) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < arrays.size(); i++) {
    std::optional<DType> d = dtype_named(dtypes.at(i));
    if (!d) throw UserError("GAF3107", "dtype " + dtypes[i] + " is not supported");
    all.push_back(tensor_of(arrays[i], *d));
  }
  return all;
}

// numpy knows no bfloat16: it goes out as its uint16 bits, and the Python side gives them their name back.
nb::dlpack::dtype code(DType t) {
  auto make = [](nb::dlpack::dtype_code c, int bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(c), static_cast<uint8_t>(bits), 1};
  };
  using C = nb::dlpack::dtype_code;
  if (t == DType::b1) return make(C::Bool, 8);
  if (t == DType::bf16) return make(C::UInt, 16);
  return make(is_float(t) ? C::Float : row(t).is_signed ? C::Int : C::UInt, 8 * bytes(t));
}
nb::object array_of(const Tensor& t) {
  auto* held = new std::shared_ptr<const void>(t.data);
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
  std::vector<size_t> shape(t.dims.begin(), t.dims.end());
  static const char empty = 0;
  const void* data = t.data ? t.data.get() : &empty;
  return nb::cast(
      nb::ndarray<nb::numpy>(const_cast<void*>(data), shape.size(), shape.data(), owner, nullptr, code(t.dtype)),
      nb::rv_policy::reference);
}
nb::list arrays_of(const std::vector<Tensor>& all) {
  nb::list l;
  for (const Tensor& t : all) l.append(nb::make_tuple(array_of(t), std::string(long_name(t.dtype))));
  return l;
}

struct PyModel {
  std::shared_ptr<const Model> model;
};
struct PyPlanned {
  std::shared_ptr<const Planned> planned;
};
struct PyCompiled {
  std::shared_ptr<CompiledModel> compiled;
};

Settings settings(const SettingLayer& layer) { return resolve_settings({}, layer, {}); }

// Ctrl-C stops a run between two kernels. Asking Python needs the GIL, which others may hold: not after every kernel.
void stop_on_signal() {
  using Clock = std::chrono::steady_clock;
  static const std::thread::id main_thread = std::this_thread::get_id();  // set at import; signals are handled there
  static Clock::time_point next;
  if (std::this_thread::get_id() != main_thread || Clock::now() < next) return;
  next = Clock::now() + std::chrono::milliseconds(20);
  nb::gil_scoped_acquire hold;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// A UserError becomes the exception class its catalogue row names, with all fields.
void translate(const std::exception_ptr& p, void*) {
  std::vector<ErrorInfo> all;
  try {
    std::rethrow_exception(p);
  } catch (const UserError& e) {
    for (const ErrorInfo& i : e.all()) all.push_back(with_catalogue(i));
  } catch (const InternalError& e) {
    all.push_back(with_catalogue({.code = "GAF9001", .message = e.what()}));
  }
  nb::list records;
  for (const ErrorInfo& i : all) {
    const CatalogueRow* row = catalogue_row(i.code);
    nb::dict d;
    d["code"] = i.code, d["message"] = i.message, d["node"] = i.node, d["op_type"] = i.op_type, d["file"] = i.file,
    d["line"] = i.line;
    d["column"] = i.column, d["cause"] = i.cause, d["remedy"] = i.remedy,
    d["type"] = row ? std::string(row->type) : std::string("GafError");
    records.append(d);
  }
  nb::object error = nb::module_::import_("graph_autofusion.errors").attr("make")(records);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

}  // namespace
}  // namespace gaf

NB_MODULE(_gaf, m) {
  using namespace gaf;
  nb::register_exception_translator(translate);
  stop_on_signal();
  set_interrupt_check(stop_on_signal);
  m.attr("version") = GAF_VERSION;

  nb::class_<PyModel>(m, "Model")
      .def_prop_ro("name", [](const PyModel& x) { return x.model->name; })
      .def("text", [](const PyModel& x) { return print_graph(x.model->graph); })
      .def("ops", [](const PyModel& x) { return describe_ops(x.model->graph).dump(); })
      .def("values", [](const PyModel& x, bool outputs) { return describe_values(x.model->graph, outputs).dump(); })
      .def("source",
           [](const PyModel& x) -> nb::object {  // path, or bytes of the model as it came
             if (x.model->onnx) return nb::bytes(x.model->onnx->data(), x.model->onnx->size());
             return nb::cast(x.model->path);
           })
      .def("groups",
           [](const PyModel& x) {  // those that a fused file lists
             nb::list all;
             for (const FusedGroup& g : fused_groups(x.model->graph))
               all.append(nb::make_tuple(g.name, g.nodes, g.reason));
             return all;
           })
      .def("num_ops", [](const PyModel& x) { return num_ops(x.model->graph); });
  nb::class_<PyPlanned>(m, "Planned")
      .def("text", [](const PyPlanned& x) { return print_graph(x.planned->graph); })
      .def("ops", [](const PyPlanned& x) { return describe_ops(x.planned->graph).dump(); })
      .def("values", [](const PyPlanned& x, bool outputs) { return describe_values(x.planned->graph, outputs).dump(); })
      .def("report_json", [](const PyPlanned& x) { return x.planned->report.json().dump(); })
      .def("report_text", [](const PyPlanned& x) { return x.planned->report.text(); })
      .def("why",
           [](const PyPlanned& x, const std::string& a, const std::string& b) { return x.planned->report.why(a, b); })
      .def("onnx",
           [](const PyPlanned& x) {
             std::string s;
             {
               nb::gil_scoped_release free;
               s = fused_onnx(*x.planned);
             }
             return nb::bytes(s.data(), s.size());
           })
      .def(
          "save", [](const PyPlanned& x, const std::string& path) { return save_model(*x.planned, path); },
          nb::call_guard<nb::gil_scoped_release>());
  nb::class_<PyCompiled>(m, "Compiled")
      .def("planned",
           [](const PyCompiled& x) {
             return PyPlanned{std::shared_ptr<const Planned>(x.compiled, &x.compiled->planned())};
           })
      .def("input_names", [](const PyCompiled& x) { return x.compiled->input_names(); })
      .def("output_names", [](const PyCompiled& x) { return x.compiled->output_names(); })
      .def("sources", [](const PyCompiled& x) { return x.compiled->sources(); })
      .def("report_json", [](const PyCompiled& x) { return x.compiled->report().json().dump(); })
      .def("report_text", [](const PyCompiled& x) { return x.compiled->report().text(); })
      .def("stats",
           [](const PyCompiled& x) {
             Stats s = x.compiled->stats();
             nb::dict d;
             d["kernels"] = s.kernels, d["compiled"] = s.compiled, d["cache_hits"] = s.cache_hits,
             d["allocations"] = s.allocations, d["externs"] = s.externs;
             return d;
           })
      .def("profile",
           [](const PyCompiled& x, const std::vector<Array>& in, const std::vector<std::string>& dtypes) {
             std::vector<Tensor> inputs = tensors_of(in, dtypes);
             nb::gil_scoped_release free;
             return x.compiled->profile(inputs);
           })
      // (arrays, dtypes, out arrays or []) -> ([(array, dtype)], latency_us, kernels, fallbacks); with `out` the list
      // is empty
      .def("run", [](PyCompiled& x, const std::vector<Array>& in, const std::vector<std::string>& dtypes,
                     const std::vector<Buffer>& outs, const std::vector<std::string>& out_dtypes) {
        std::vector<Tensor> inputs = tensors_of(in, dtypes), results = tensors_of(outs, out_dtypes);
        RunInfo info;
        {
          nb::gil_scoped_release free;
          info = x.compiled->run(inputs, results);
        }
        return nb::make_tuple(outs.empty() ? arrays_of(results) : nb::list(), info.latency_us, info.copies,
                              info.kernels, info.fallbacks);
      });

  m.def(
      "load",
      [](const std::string& path, const Shapes& shapes, const Sizes& dims, const std::vector<std::string>& given) {
        return PyModel{std::make_shared<const Model>(load_model(path, {shapes, dims, given}))};
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("load_bytes",
        [](nb::bytes data, const Shapes& shapes, const Sizes& dims, const std::vector<std::string>& given) {
          std::string_view view(static_cast<const char*>(data.data()), data.size());
          nb::gil_scoped_release free;
          return PyModel{std::make_shared<const Model>(load_model_bytes(view, {shapes, dims, given}))};
        });
  m.def(
      "plan",
      [](const PyModel& x, const SettingLayer& layer) {
        return PyPlanned{std::make_shared<const Planned>(plan_model(*x.model, settings(layer)))};
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "compile",
      [](const PyModel& x, const SettingLayer& layer) {
        return PyCompiled{std::shared_ptr<CompiledModel>(compile_model(*x.model, settings(layer)))};
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("compare", [](const PyModel& x, const SettingLayer& layer, const std::vector<Array>& in,
                      const std::vector<std::string>& dtypes, const std::string& reference, bool per_kernel,
                      double rtol, double atol) {
    std::vector<Tensor> inputs = tensors_of(in, dtypes);
    nb::gil_scoped_release free;
    return compare_json(compare_model(*x.model, settings(layer), inputs, reference, per_kernel, rtol, atol)).dump();
  });
  m.def("bench", [](const PyModel& x, const SettingLayer& layer, const std::vector<Array>& in,
                    const std::vector<std::string>& dtypes, int runs, int warmup, double min_time_s) {
    std::vector<Tensor> inputs = tensors_of(in, dtypes);
    nb::gil_scoped_release free;
    Settings s = settings(layer);
    return bench_json(bench_model(*x.model, s, inputs, runs, warmup, min_time_s), x.model->name, s).dump();
  });
  m.def("difference",
        [](const PyModel& x, size_t output, const Array& want, const Array& got, double rtol, double atol) {
          const Graph& g = x.model->graph;
          const Output& o = g.outputs.at(output);
          const std::vector<std::string> dtype{std::string(long_name(g.type(o.value).dtype))};
          return output_json(difference(o.name, tensors_of<Array>({want}, dtype)[0], tensors_of<Array>({got}, dtype)[0],
                                        rtol, atol, computed_in(g)[output]))
              .dump();
        });
  m.def("interpret", [](const PyModel& x, const std::vector<Array>& in, const std::vector<std::string>& dtypes) {
    std::vector<Tensor> inputs = tensors_of(in, dtypes), out;
    {
      nb::gil_scoped_release free;
      out = interpret_graph(x.model->graph, inputs);
    }
    return arrays_of(out);
  });
  m.def("random_inputs", [](const PyModel& x, uint64_t seed, const Ranges& ranges) {
    return arrays_of(random_inputs(*x.model, seed, ranges));
  });
  m.def("settings", [](const SettingLayer& layer) {
    Settings s = settings(layer);
    Json all = Json::object();
    for (const auto& [name, v] : s.values) all.set(name, Json::object({{"value", v.value}, {"origin", v.origin}}));
    return all.dump();
  });
  m.def("setting_warnings", [](const SettingLayer& layer) { return settings(layer).warnings; });
  m.def("setting_names", [] { return setting_names(); });
  m.def("nearest",
        [](const std::string& name, const std::vector<std::string>& candidates) { return nearest(name, candidates); });
  m.def("set_log_sink", [](nb::object sink) {
    if (sink.is_none()) return set_log_sink({});
    nb::handle kept = sink.release();  // for good: the log may outlive the interpreter
    set_log_sink([kept](LogLevel level, std::string_view line) {
      if (!Py_IsInitialized()) return;
      nb::gil_scoped_acquire hold;
      kept(static_cast<int>(level), std::string(line));
    });
  });
}
