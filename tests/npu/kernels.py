"""The kernels under test: which models, with what inputs, and what they should give. A model holds just the operators of one
kernel, made here with ONNX's own helper; expected values are float64 sums of the same float16 inputs."""

import dataclasses
import math

import numpy as np
from onnx import TensorProto, helper, save

CORES = {"ascend910b1": {"cube": 24, "vector": 48}, "ascend910b4": {"cube": 20, "vector": 40}}
TARGETS = tuple(CORES)
LANGUAGES = ("ascendc", "pto")


@dataclasses.dataclass(frozen=True)
class Kernel:
    kind: str  # softmax, matmul, matmul_bias, matmul_bias_relu
    shape: tuple  # softmax: dims; products: M, K, N
    golden: bool = False  # its text is kept
    mutate: int = 1  # 1: each sync statement is dropped, 2: also each single sync operation that runs
    faults: bool = False  # the six faults are planted into its text

    @property
    def name(self):
        return f"{self.kind}_{'x'.join(map(str, self.shape))}"

    @property
    def unit(self):
        return "vector" if self.kind == "softmax" else "cube"


KERNELS = (
    Kernel("softmax", (128, 128), golden=True, mutate=2),
    Kernel("softmax", (37, 100), golden=True, mutate=2, faults=True),  # ragged rows and columns
    Kernel("softmax", (5, 1023), golden=True, mutate=2),  # one element short of whole blocks
    Kernel("softmax", (1, 7)),
    Kernel("softmax", (67, 8)),
    Kernel("softmax", (3, 67, 77)),  # leading dims are rows
    Kernel("softmax", (3, 12000)),  # a row fills a tile
    Kernel("softmax", (50, 2048)),
    Kernel("matmul_bias_relu", (64, 96, 64), golden=True, mutate=2),
    Kernel("matmul_bias_relu", (100, 70, 50), golden=True, mutate=2),
    Kernel("matmul_bias_relu", (17, 33, 130), golden=True, mutate=2),
    Kernel("matmul_bias_relu", (1, 64, 48)),  # one row: the matrix unit works as GEMV
    Kernel("matmul_bias_relu", (5, 1, 7)),
    Kernel("matmul_bias_relu", (200, 450, 150)),  # several tiles in every direction, rings turn
    Kernel("matmul_bias_relu", (40, 600, 40), mutate=2, faults=True),  # K in steps
    Kernel("matmul_bias", (17, 33, 130)),
    Kernel("matmul_bias", (128, 256, 96)),
    Kernel("matmul", (100, 70, 50)),
    Kernel("matmul", (33, 512, 16)),
)


def random(kernel):
    return np.random.default_rng([ord(c) for c in kernel.name])


def write_model(kernel, path):
    def value(name, dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims)

    if kernel.kind == "softmax":
        nodes, inputs, result = [helper.make_node("Softmax", ["x"], ["y"], "softmax0", axis=-1)], [value("x", kernel.shape)], kernel.shape
    else:
        m, k, n = kernel.shape
        chain = ["MatMul", "Add", "Relu"][: {"matmul": 1, "matmul_bias": 2, "matmul_bias_relu": 3}[kernel.kind]]
        names = [f"t{i}" for i in range(len(chain) - 1)] + ["y"]
        operands = {"MatMul": ["a", "b"], "Add": ["bias"], "Relu": []}
        nodes = [helper.make_node(op, ([names[i - 1]] if i else []) + operands[op], [names[i]], f"{op.lower()}0") for i, op in enumerate(chain)]
        inputs = [value("a", (m, k)), value("b", (k, n))] + ([value("bias", (n,))] if "Add" in chain else [])
        result = (m, n)
    graph = helper.make_graph(nodes, kernel.kind, inputs, [value("y", result)])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def inputs_and_result(kernel):
    """{name: float16 array}, and the float64 result. Products take multiples of 1/64 in -1..1: their sums are exact in float32, so
    that the order of accumulation does not matter and a result is off by its own rounding alone."""
    r = random(kernel)
    if kernel.kind == "softmax":
        x = (4 * r.standard_normal(kernel.shape)).astype(np.float16)
        e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True).astype(np.float64))
        return {"x": x}, e / e.sum(-1, keepdims=True)

    def grid(*dims):
        return (r.integers(-64, 65, dims) / 64).astype(np.float16)

    m, k, n = kernel.shape
    assert k * 64 * 64 + 64 < 2**24, "sums are exact in float32"
    data = {"a": grid(m, k), "b": grid(k, n)}
    result = data["a"].astype(np.float64) @ data["b"].astype(np.float64)
    if kernel.kind != "matmul":
        data["bias"] = grid(n)
        result += data["bias"].astype(np.float64)
    return data, np.maximum(result, 0) if kernel.kind == "matmul_bias_relu" else result


def block_counts(kernel):
    """Small ones, and all cores of each target."""
    return sorted({1, 2, 3, 5, 8, *(cores[kernel.unit] for cores in CORES.values())})


def result_bytes(kernel):
    dims = kernel.shape if kernel.kind == "softmax" else (kernel.shape[0], kernel.shape[2])
    return 2 * math.prod(dims)
