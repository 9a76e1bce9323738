"""Sub-jaxprs, size and cost of a jaxpr before it is emitted."""

import functools
import math
import types
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive

from ..primitives.expansions import EXPANSIONS
from ..primitives.registry import RULES
from ..primitives.variants import kernel_branch

# Equations and atoms whose types are arrays. JAX declares the types as `AbstractValue`, which has
# neither shape nor dtype.
ArrayEquation: TypeAlias = Any
ArrayAtom: TypeAlias = Any
# Largest number of elements of an array that is held in registers. The second limit is for jaxprs
# with fused loops, which have more arrays of medium size than the processor has registers.
REGISTERS, FEW_REGISTERS = 256, 64
# Largest cost of a loop, and largest number of multiplications of a product, that is unrolled.
MAX_UNROLLED_COST, MAX_UNROLLED_PRODUCT = 6_000, 600
# Largest number of iterations of a `while` loop and of a `scan` that is unrolled.
MAX_UNROLLED_ITERATIONS, MAX_UNROLLED_SCAN = 64, 7
# Primitives that move elements without arithmetic.
MOVES = frozenset(
    "broadcast_in_dim concatenate convert_element_type copy dynamic_slice dynamic_update_slice "
    "gather iota pad reshape rev scatter select_n slice split squeeze stack transpose "
    "unstack".split()
)
# Folders that are skipped in search of the source location of an equation.
_SKIPPED_FOLDERS = ("/jax/", "/equinox/", "/rigidjax/native/")


def stays_constant(aval: ShapedArray) -> bool:
    """Return whether a result of this type is a compile-time constant if its operands are."""
    return aval.size <= REGISTERS or aval.dtype.kind in "iub"


def count_outside_registers(jaxpr: Jaxpr) -> int:
    """Count the elements of computed arrays that are too large for registers.

    This measures the size of a mechanism: equations of a loop body count once.
    """
    total = 0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inner = emitted_jaxprs(equation)
        total += sum(map(count_outside_registers, inner))
        if not inner and name not in MOVES:
            sizes = (getattr(var.aval, "size", 0) for var in equation.outvars)
            total += sum(size for size in sizes if size > REGISTERS)
    return total


def largest_decomposition(jaxpr: Jaxpr) -> int:
    """Return the smaller dimension of the largest matrix with a QR or singular value decomposition.

    Branches for all platforms are searched, because XLA uses other decompositions than kernels.
    """
    largest = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("qr", "svd"):
            (matrix,) = equation.invars
            largest = max(largest, min(getattr(matrix.aval, "shape", (0,))[-2:]))
        branches = equation.params.get("branches", ())
        jaxprs = [branch.jaxpr for branch in branches] or sub_jaxprs(equation)
        largest = max(largest, *map(largest_decomposition, jaxprs), 0)
    return largest


def expand(equation: Any) -> ClosedJaxpr:
    """Return the jaxpr that replaces an equation; equal equations share one jaxpr."""
    if (
        equation.primitive.name in ("native_call", "native_forward")
        and equation.params["size"] is None
    ):
        return equation.params["closed"]
    shapes = tuple((a.aval.shape, a.aval.dtype) for a in equation.invars)
    params = tuple(equation.params.items())
    try:
        return _trace_expansion(equation.primitive, shapes, params)
    except TypeError:  # a parameter is not hashable
        return _trace_expansion.__wrapped__(equation.primitive, shapes, params)


@functools.lru_cache(maxsize=4096)
def _trace_expansion(
    primitive: Primitive, shapes: tuple[tuple, ...], params: tuple[tuple[str, Any], ...]
) -> ClosedJaxpr:
    is_complex = any(getattr(dtype, "kind", "") == "c" for _, dtype in shapes)
    name = f"complex {primitive.name}" if is_complex else primitive.name
    expansion: Any = EXPANSIONS.get(name, EXPANSIONS.get(primitive.name, primitive.impl))
    function = lambda *arrays: expansion(*arrays, **dict(params))  # noqa: E731
    return jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(*shape) for shape in shapes))


def is_complex_expansion(equation: JaxprEqn) -> bool:
    """Return whether an equation has complex operands and an expansion in JAX code for them."""
    if f"complex {equation.primitive.name}" not in EXPANSIONS:
        return False
    return getattr(equation.invars[0].aval, "dtype", np.dtype(bool)).kind == "c"


def has_batched_condition(equation: JaxprEqn) -> bool:
    """Return whether an equation is a batched `while` loop, whose elements finish separately."""
    params = equation.params
    return equation.primitive.name == "while" and params["cond_jaxpr"].out_avals[0].shape != ()


def is_expanded(primitive: Primitive) -> bool:
    """Return whether a primitive is replaced by JAX code, of an expansion or of its own."""
    if primitive.name in EXPANSIONS:
        return True
    impl = primitive.impl
    if isinstance(impl, types.MethodType):
        return False  # the method of the base class, which raises
    while isinstance(impl, functools.partial):
        impl = impl.func
    # Implementations in JAX itself call XLA or Python.
    return not (getattr(impl, "__module__", None) or "jax.").startswith("jax.")


def source_location(equation: JaxprEqn) -> str:
    """Return the file and line of an equation in code outside JAX, Equinox and the compiler."""
    frames = equation.source_info.traceback
    if frames is None:
        return ""
    for frame in frames.frames:
        if not any(folder in frame.file_name for folder in _SKIPPED_FOLDERS):
            return f"({frame.file_name}:{frame.line_num})"
    return ""


# Primitives without a sub-jaxpr among their parameters, as seen so far.
_WITHOUT_JAXPRS: set[Primitive] = set()


def sub_jaxprs(equation: JaxprEqn) -> list[Jaxpr]:
    """Return the sub-jaxprs of an equation; of platform-dependent branches the kernel's alone."""
    if equation.primitive in _WITHOUT_JAXPRS:
        return []
    branch = kernel_branch(equation.params.get("branches_platforms", ()))
    if branch is not None:
        return [equation.params["branches"][branch].jaxpr]
    out = []
    for param in equation.params.values():
        for value in param if isinstance(param, tuple | list) else [param]:
            if isinstance(value, ClosedJaxpr):
                out.append(value.jaxpr)
            elif isinstance(value, Jaxpr):
                out.append(value)
    if not out and not any("jaxpr" in name for name in equation.params):
        _WITHOUT_JAXPRS.add(equation.primitive)
    return out


def emitted_jaxprs(equation: JaxprEqn) -> list[Jaxpr]:
    """Return the jaxprs that are emitted for an equation; none if its rule emits code itself."""
    name = equation.primitive.name
    if name in RULES:
        return sub_jaxprs(equation)
    return [expand(equation).jaxpr] if is_expanded(equation.primitive) else []


def scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of constants and of carried arrays of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    # JAX 0.12 has trees instead of numbers.
    constants, carried, _ = params["ft_in"].unpack()
    return len(constants), len(carried)


def is_unrolled(params: dict[str, Any]) -> bool:
    """Return whether a scan is unrolled."""
    length = params["length"]
    return length <= MAX_UNROLLED_SCAN and length * cost(params["jaxpr"].jaxpr) <= MAX_UNROLLED_COST


def cost(jaxpr: Any) -> int:
    """Estimate the number of scalar operations of a jaxpr; a `while` loop counts one iteration."""
    total = 0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inner = emitted_jaxprs(equation)
        sizes = [math.prod(var.aval.shape) for var in equation.outvars]
        if inner:
            times = equation.params["length"] if name in ("scan", "for_each") else 1
            total += times * sum(map(cost, inner))
        elif name == "dot_general":
            (along, _), _ = equation.params["dimension_numbers"]
            terms = math.prod(equation.invars[0].aval.shape[axis] for axis in along)
            total += 2 * terms * sizes[0]
        elif name.startswith("reduce_"):
            total += math.prod(equation.invars[0].aval.shape)
        elif name not in MOVES:
            total += sum(sizes)
    return total
