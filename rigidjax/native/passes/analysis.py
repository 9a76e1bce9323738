"""Sub-jaxprs, size and cost of a jaxpr before it is emitted."""

import functools
import math
import types
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive

from ..jaxrules.variants import kernel_branch
from ..lowering.expansions import EXPANSIONS
from ..lowering.registry import RULES

# Entries up to which an array is held in registers; the second for programs with loops over stacks,
# that have more arrays of some size than the processor has registers.
REGISTERS, FEW_REGISTERS = 256, 64
# Numbers computed in a loop, and multiplications of a product, up to which it is written out.
MAX_UNROLLED_COST, MAX_UNROLLED_PRODUCT = 6_000, 600
# Turns of a loop up to which it may be; of a scan, which goes along a stack.
MAX_UNROLLED_ITERATIONS, MAX_UNROLLED_SCAN = 64, 7
# What moves numbers and computes none.
MOVES = frozenset(
    "broadcast_in_dim concatenate convert_element_type copy dynamic_slice dynamic_update_slice "
    "gather iota pad reshape rev scatter select_n slice split squeeze stack transpose "
    "unstack".split()
)
# Folders whose code is not where something comes from.
_SKIPPED_FOLDERS = ("/jax/", "/equinox/", "/rigidjax/native/")


def stays_constant(aval: ShapedArray) -> bool:
    """Whether what is computed of known numbers into such an array is known at emission too."""
    return aval.size <= REGISTERS or aval.dtype.kind in "iub"


def count_outside_registers(jaxpr: Jaxpr) -> int:
    """How many numbers a program computes into arrays that are too large for registers.

    A measure of how large the system is: what is done many times in a loop counts once.
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
    """Rows or columns, whichever are fewer, of the largest matrix whose orthogonal factors or
    singular values XLA computes where it runs a program."""
    largest = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("qr", "svd"):
            (matrix,) = equation.invars
            largest = max(largest, min(getattr(matrix.aval, "shape", (0,))[-2:]))
        branches = equation.params.get("branches", ())
        programs = [branch.jaxpr for branch in branches] or sub_jaxprs(equation)
        largest = max(largest, *map(largest_decomposition, programs), 0)
    return largest


def expand(equation: Any) -> ClosedJaxpr:
    """The program in the place of an equation; one for all that are alike."""
    if (
        equation.primitive.name in ("native_call", "native_forward")
        and equation.params["size"] is None
    ):
        return equation.params["closed"]
    shapes = tuple((a.aval.shape, a.aval.dtype) for a in equation.invars)
    params = tuple(equation.params.items())
    try:
        return _trace_expansion(equation.primitive, shapes, params)
    except TypeError:  # a parameter without a hash
        return _trace_expansion.__wrapped__(equation.primitive, shapes, params)


@functools.lru_cache(maxsize=4096)
def _trace_expansion(primitive, shapes, params) -> ClosedJaxpr:
    is_complex = any(getattr(dtype, "kind", "") == "c" for _, dtype in shapes)
    name = f"complex {primitive.name}" if is_complex else primitive.name
    written: Any = EXPANSIONS.get(name, EXPANSIONS.get(primitive.name, primitive.impl))
    function = lambda *arrays: written(*arrays, **dict(params))  # noqa: E731
    return jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(*shape) for shape in shapes))


def is_complex_expansion(equation: JaxprEqn) -> bool:
    """Whether an equation is a function of complex numbers that is written in JAX."""
    if f"complex {equation.primitive.name}" not in EXPANSIONS:
        return False
    return getattr(equation.invars[0].aval, "dtype", np.dtype(bool)).kind == "c"


def has_batched_condition(equation: JaxprEqn) -> bool:
    """Whether an equation is a loop of `jax.vmap`, whose members end one after another."""
    params = equation.params
    return equation.primitive.name == "while" and params["cond_jaxpr"].out_avals[0].shape != ()


def is_expanded(primitive: Primitive) -> bool:
    """Whether a primitive stands for JAX code: that of an expansion, or its own."""
    if primitive.name in EXPANSIONS:
        return True
    impl = primitive.impl
    if isinstance(impl, types.MethodType):
        return False  # the one of the base class, which raises
    while isinstance(impl, functools.partial):
        impl = impl.func
    # JAX's own are evaluated by XLA or by Python.
    return not (getattr(impl, "__module__", None) or "jax.").startswith("jax.")


def source_location(equation: JaxprEqn) -> str:
    """Where an equation comes from, in code that is not JAX's, Equinox's or of this folder."""
    frames = equation.source_info.traceback
    if frames is None:
        return ""
    for frame in frames.frames:
        if not any(folder in frame.file_name for folder in _SKIPPED_FOLDERS):
            return f"({frame.file_name}:{frame.line_num})"
    return ""


# Primitives with parameters of which none can be a program, by what was seen.
_WITHOUT_JAXPRS: set[Primitive] = set()


def sub_jaxprs(equation) -> list[Jaxpr]:
    """The programs inside an equation; of those for several platforms the one that kernels take."""
    if equation.primitive in _WITHOUT_JAXPRS:
        return []
    branch = kernel_branch(equation.params.get("branches_platforms", ()))
    if branch is not None:
        return [equation.params["branches"][branch].jaxpr]
    out = []
    for param in equation.params.values():
        for one in param if isinstance(param, tuple | list) else [param]:
            if isinstance(one, ClosedJaxpr):
                out.append(one.jaxpr)
            elif isinstance(one, Jaxpr):
                out.append(one)
    if not out and not any("jaxpr" in name for name in equation.params):
        _WITHOUT_JAXPRS.add(equation.primitive)
    return out


def emitted_jaxprs(equation: JaxprEqn) -> list[Jaxpr]:
    """The programs that a kernel runs for an equation; none for what it computes itself."""
    name = equation.primitive.name
    if name in RULES:
        return sub_jaxprs(equation)
    return [expand(equation).jaxpr] if is_expanded(equation.primitive) else []


def scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """The numbers of constants and of carried arrays of a scan; JAX 0.12 has trees of them."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = params["ft_in"].unpack()
    return len(constants), len(carried)


def is_unrolled(params: dict[str, Any]) -> bool:
    """Whether a scan is emitted turn by turn."""
    length = params["length"]
    return length <= MAX_UNROLLED_SCAN and length * cost(params["jaxpr"].jaxpr) <= MAX_UNROLLED_COST


def cost(jaxpr: Any) -> int:
    """About how many numbers a program computes, a loop counted once."""
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
