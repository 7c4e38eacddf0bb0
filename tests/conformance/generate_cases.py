#!/usr/bin/env python3
"""Writes the ONNX node conformance cases (which the onnx wheel holds as code) in the on-disk backend layout.

    generate_cases.py OUT

OUT/<case>/model.onnx, test_data_set_K/{input,output}_i.pb, and OUT/index.json with a row a case: name, ops, opset, dtypes, tolerances and
  plain     only tensors of float32, int32, int64 or bool, only the default domain, no subgraph
  expanded  the function body of another case instead of the operator
  models    its first operator occurs in the models that ./dev models runs
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_node_model_tests

warnings.filterwarnings("ignore")

PLAIN = {"FLOAT", "INT32", "INT64", "BOOL"}
MODEL_OPS = set("""Add Conv Concat Mul Transpose Reshape Relu Slice Unsqueeze Cast Shape Sigmoid Constant Gather MatMul Softmax Div Squeeze
    Sqrt Pow Identity ConstantOfShape Sub ReduceMean Pad GlobalAveragePool MaxPool LSTM BatchNormalization Equal Gemm HardSigmoid Flatten If
    Clip Expand ReduceSum LayerNormalization Tanh Not ReduceMax Erf PRelu Resize Log Max Where Size AveragePool ConvTranspose Neg
    GreaterOrEqual HardSwish Range Exp And GatherND GlobalMaxPool IsNaN LeakyRelu Less Reciprocal ReduceMin Split Floor""".split())


def serialized(value, info):
    """The test value as TensorProto, SequenceProto, OptionalProto or MapProto bytes."""
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    for field, convert in (("sequence_type", numpy_helper.from_list), ("optional_type", numpy_helper.from_optional),
                           ("map_type", numpy_helper.from_dict)):
        if info.type.HasField(field):
            return convert(value, info.name).SerializeToString()
    return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString()


def row(case):
    graph = case.model.graph
    values = list(graph.input) + list(graph.output)
    dtypes = sorted({TensorProto.DataType.Name(v.type.tensor_type.elem_type) for v in values if v.type.HasField("tensor_type")})
    domains = {o.domain or "ai.onnx": o.version for o in case.model.opset_import}
    ops = [(n.domain + "." if n.domain not in ("", "ai.onnx") else "") + n.op_type for n in graph.node]
    subgraph = any(a.type == onnx.AttributeProto.GRAPH for n in graph.node for a in n.attribute)
    tensors = all(v.type.HasField("tensor_type") for v in values)
    return {"name": case.name, "ops": ops, "opset": domains.get("ai.onnx", 0), "dtypes": dtypes, "sets": len(case.data_sets),
            "rtol": case.rtol, "atol": case.atol, "expanded": "_expanded" in case.name, "models": bool(ops) and ops[0] in MODEL_OPS,
            "plain": tensors and set(dtypes) <= PLAIN and not subgraph and set(domains) <= {"ai.onnx"}}


def write(case, folder):
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{k}")
        os.makedirs(data, exist_ok=True)
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as f:
                    f.write(serialized(value, info))
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.model.SerializeToString())


def main(out):
    rows = []
    for case in load_node_model_tests():
        folder = os.path.join(out, case.name)
        os.makedirs(folder, exist_ok=True)
        try:
            write(case, folder)
        except Exception as e:   # a value kind that has no file form
            print(f"not written: {case.name}: {e}", file=sys.stderr)
            continue
        rows.append(row(case))
    with open(os.path.join(out, "index.json"), "w") as f:
        json.dump(rows, f, indent=0)
    plain = [r for r in rows if r["plain"]]
    base = [r for r in plain if not r["expanded"]]
    print(f"{len(rows)} cases; plain base {len(base)}, of them in the real models' ops {sum(r['models'] for r in base)} "
          f"(LSTM {sum(r['ops'][0] == 'LSTM' for r in base if r['models'])}); plain expanded {len(plain) - len(base)}")


if __name__ == "__main__":
    main(sys.argv[1])
