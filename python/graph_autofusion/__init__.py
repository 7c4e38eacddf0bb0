"""Graph-Autofusion: finds the operators of a neural network that run faster as one kernel, and makes those kernels.

    import graph_autofusion as gaf
    model = gaf.compile("model.onnx")
    y = model(x)
    print(model.report)

Only numpy is needed. Settings, plugins and missing extras never make the import fail; their errors come at first use.
"""
from .compiled import CompiledModel, DebugView, RunInfo, compile, debug_view, get_debug_view
from .config import FusionConfig, Setting, settings
from .errors import (AccuracyError, CacheError, CompileError, CompileTimeout, ConfigError, CostModelError, DTypeError, ExecutionError,
                     GafError, InternalError, ModelError, RuleError, ShapeError, TargetError, UnsupportedError, UsageError)
from .graph import Graph, Group, Op, ValueInfo, explain, fuse, load_graph, load_model, random_inputs, save
from .logs import use_python_logging
from .measure import BenchReport, CompareReport, bench, compare
from .report import Report
from ._gaf import version as __version__

__all__ = [
    "AccuracyError", "BenchReport", "CacheError", "CompareReport", "CompileError", "CompileTimeout", "CompiledModel", "ConfigError",
    "CostModelError", "DTypeError", "DebugView", "ExecutionError", "FusionConfig", "GafError", "Graph", "Group", "InternalError",
    "ModelError", "Op", "Report", "RuleError", "RunInfo", "Setting", "ShapeError", "TargetError", "UnsupportedError", "UsageError",
    "ValueInfo", "bench", "compare", "compile", "debug_view", "explain", "fuse", "get_debug_view", "load_graph", "load_model",
    "random_inputs", "save", "settings", "use_python_logging",
]
