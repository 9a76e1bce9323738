"""A compiler from jaxprs to LLVM code: native kernels, called inside any `jax.jit`.

The rest of the package uses the names of this module and of `rigidjax.small_arrays` alone. Modules
that need LLVM are imported at the first access to a name that is defined there.

Start with `backend.py`. Each folder imports those before it: `primitives`, `values`, `ops`,
`libm`, `passes`, `lowering`, `runtime`, `jaxrules`. It imports nothing of the rest of the package.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .backend import (
    BACKENDS as BACKENDS,
    Backend as Backend,
    call_as_kernel as call_as_kernel,
    call_as_single_kernel as call_as_single_kernel,
    call_by_kernel as call_by_kernel,
    check_backend as check_backend,
    choose_backend as choose_backend,
    why_too_large_matrices as why_too_large_matrices,
    why_too_many_elements as why_too_many_elements,
)
from .jaxrules.forward_split import register_partial_eval_split as register_partial_eval_split
from .jaxrules.lane_compaction import (
    evaluate_with_lane_compaction as evaluate_with_lane_compaction,
    map_with_lane_compaction as map_with_lane_compaction,
)
from .jaxrules.lockstep import lockstep_max as lockstep_max
from .jaxrules.meshes import opaque_call as opaque_call, trace_without_mesh as trace_without_mesh
from .primitives.variants import variants as variants
from .runtime.garbage import gc_paused as gc_paused, make_all_old as make_all_old
from .runtime.platforms import why_no_kernels as why_no_kernels

if TYPE_CHECKING:
    from .jaxrules.function import jit as jit
    from .jaxrules.object_code import (
        ObjectCode as ObjectCode,
        Processor as Processor,
        TracedFunction as TracedFunction,
        compile_object as compile_object,
        trace_function as trace_function,
    )
    from .jaxrules.primitive import native_call as native_call
    from .primitives.registry import NoRule as NoRule
    from .runtime import disk as disk, executables as executables
    from .runtime.platforms import count_cores as count_cores
    from .runtime.support import why_not as why_not

_LAZY_MODULES = {
    "jit": "jaxrules.function",
    "native_call": "jaxrules.primitive",
    "why_not": "runtime.support",
    "NoRule": "primitives.registry",
    "disk": "runtime.disk",
    "executables": "runtime.executables",
    "count_cores": "runtime.platforms",
    **dict.fromkeys(
        ("ObjectCode", "Processor", "TracedFunction", "compile_object", "trace_function"),
        "jaxrules.object_code",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        path = _LAZY_MODULES[name]
        module = importlib.import_module(f".{path}", __name__)
        return module if path.endswith(f".{name}") else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
