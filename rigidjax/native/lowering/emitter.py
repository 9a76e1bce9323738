"""Walk a jaxpr and emit LLVM instructions for each equation, W lanes at once.

An array of a jaxpr is either a NumPy array of elements that live in registers (see `lanes`) or a
strided view of memory (see `memory`). Primitives that only move data cost nothing for the former
and almost nothing for the latter. `rules` has one lowering rule per primitive.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike
from llvmlite import ir

from ..libm.functions import Functions
from ..passes import dynamic_indices
from ..passes.analysis import (
    FEW_REGISTERS,
    REGISTERS,
    expand,
    has_batched_condition,
    is_complex_expansion,
    is_expanded,
    source_location,
    sub_jaxprs,
)
from ..primitives.registry import RULES, NoRule
from ..values.builder import I64, Builder, Value, int64
from ..values.complex import DType, LaneValue
from ..values.lanes import POINTER, Lanes, is_constant
from ..values.memory import (
    ArrayView,
    Buffer,
    EmittedArray,
    Index,
    KernelMemory,
    RowVectors,
    row_major_strides,
    to_objects,
)
from . import nests, uniformity

# Size up to which integer and boolean arrays are constant-folded during emission.
FOLDING_LIMIT = 1 << 14


class Emitter:
    """Emits jaxprs at the end of a builder's block.

    **Arguments:** `builder`; `width`, number of lanes; `workspace`, an LLVM pointer to the memory
    of the kernel, whose size is `memory.bytes` after emission; `row`, number of elements of an
    array in one vector if there is one lane; `shared_functions`, functions of the module by cache
    key (see `rules.calls`); `warp`, as for `KernelMemory`; `has_divergence`, whether uniform
    values are scalars and divergent ones vectors of `row` lanes (see `passes.uniformity`).

    **Attributes:** `register_limit`, size up to which arrays of the current jaxpr are held in
    registers (constants up to `REGISTERS`); `mask`, lanes that may write memory, `None` for all.
    """

    def __init__(
        self, builder: Builder, width: int, workspace: Value, row: int = 1,
        shared_functions: dict[tuple, Any] | None = None, warp: tuple[int, Value] | None = None,
        has_divergence: bool = False,
    ):  # fmt: skip
        self.builder, self.register_limit, self.has_divergence = builder, REGISTERS, has_divergence
        self.shared_functions = {} if shared_functions is None else shared_functions
        self.lanes = Lanes(builder, width)
        self.functions = Functions(self.lanes)
        self.memory = KernelMemory(self.lanes, workspace, warp, has_divergence)
        arithmetic = self.lanes, self.functions.lanes
        self.vectors = RowVectors(self.memory, arithmetic, row if width == 1 else 1)
        # Active lanes; `None` if all are.
        self.mask: LaneValue | None = None
        # Arrays in registers that were loaded from memory, with their views.
        self._sources: dict[int, tuple[np.ndarray, ArrayView]] = {}
        self._last_uses: dict[Jaxpr, Any] = {}
        self._contains_loops: dict[Jaxpr, bool] = {}

    # Jaxprs.

    def emit(
        self,
        closed: ClosedJaxpr,
        args: list[EmittedArray],
        precomputed: dict[Var, EmittedArray] | None = None,
    ) -> list[EmittedArray]:
        """Emit a closed jaxpr inline and return its results.

        **Arguments:** `args`; `precomputed`, results of equations that need not be emitted.
        """
        consts = [self.constant(c) for c in closed.consts]
        return self.emit_jaxpr(closed.jaxpr, consts, args, precomputed)

    def emit_jaxpr(
        self, jaxpr: Any, consts: list[EmittedArray], args: list[EmittedArray],
        precomputed: dict[Var, EmittedArray] | None = None,
    ) -> list[EmittedArray]:  # fmt: skip
        environment: dict[Var, EmittedArray] = {}
        outer = self.register_limit
        self.register_limit = min(outer, self.find_register_limit(jaxpr))
        last_uses, unused = self._find_last_uses(jaxpr)
        divergent = uniformity.find_divergent_variables(self, jaxpr, args)

        def bind(var, value):
            environment[var] = value
            if isinstance(value, ArrayView):
                value.buffer.use_count += 1

        def read(atom):
            return self.constant(atom.val) if isinstance(atom, Literal) else environment[atom]

        def unbind(var):
            value = environment.pop(var)
            if isinstance(value, ArrayView):
                value.buffer.use_count -= 1
                return [value.buffer]
            return []

        for var, value in zip(jaxpr.constvars, consts, strict=True):
            bind(var, value)
        for var, value in zip(jaxpr.invars, args, strict=True):
            bind(var, value)
        dead_buffers = [buffer for var in unused for buffer in unbind(var)]
        for k, equation in enumerate(jaxpr.eqns):
            args = [read(atom) for atom in equation.invars]
            # An operand that is read for the last time here may be overwritten.
            dead_buffers += [buffer for var in last_uses[k] for buffer in unbind(var)]
            results: list[EmittedArray] = []
            if not equation.outvars:
                # JAX drops the results of branches and loops that are unused.
                pass
            elif precomputed and equation.outvars[0] in precomputed:
                results += [precomputed[var] for var in equation.outvars]
            elif not divergent.isdisjoint(equation.outvars):
                with self.memory.release_temporaries(results):
                    results += uniformity.emit_equation(self, equation, args, divergent)
            else:
                with self.memory.release_temporaries(results):
                    if divergent:
                        # The results do not depend on the divergent operands.
                        args = [uniformity.take_first_lane(self, x) for x in args]
                    results += self.emit_equation(equation, args)
            for var, value in zip(equation.outvars, results, strict=True):
                assert value.shape == var.aval.shape, (equation.primitive, value.shape, var.aval)
                bind(var, value)
                if var not in self._live(jaxpr):
                    dead_buffers += unbind(var)
            for buffer in dead_buffers:
                self.memory.release(buffer)
            dead_buffers = []
        out = [read(atom) for atom in jaxpr.outvars]
        for var in list(environment):
            unbind(var)
        self.register_limit = outer
        return out

    def find_register_limit(self, jaxpr: Jaxpr) -> int:
        """Return the size up to which arrays of a jaxpr are held in registers."""
        return FEW_REGISTERS if self._has_loops(jaxpr) else REGISTERS

    def find_register_limits(self, jaxpr: Jaxpr, args: list[EmittedArray | None]) -> list[int]:
        """Return that limit for each argument of a jaxpr, lower for dynamically indexed ones.

        **Arguments:** `args`, with `None` for arrays that are not compile-time constants.
        """
        is_known = (x is not None and self.are_constant(x) for x in args)
        marks = dynamic_indices.find_dynamic_indices(
            jaxpr, tuple(not k for k in is_known)
        ).arguments
        limit = self.find_register_limit(jaxpr)
        return [
            min(limit, dynamic_indices.MAX_INDEXED_REGISTERS) if mark else limit for mark in marks
        ]

    def _has_loops(self, jaxpr: Jaxpr) -> bool:
        """Return whether a jaxpr contains fused loops over batched axes (`for_each`)."""
        if jaxpr not in self._contains_loops:
            self._contains_loops[jaxpr] = any(
                equation.primitive.name == "for_each"
                or any(map(self._has_loops, sub_jaxprs(equation)))
                for equation in jaxpr.eqns
            )
        return self._contains_loops[jaxpr]

    def emit_equation(self, equation: JaxprEqn, args: list[EmittedArray]) -> list[EmittedArray]:
        """Emit one equation and return its results.

        **Errors:** `NoRule` for a primitive with neither a lowering rule nor an expansion.
        """
        name = equation.primitive.name
        if is_complex_expansion(equation) or has_batched_condition(equation):
            return self.emit(expand(equation), args)
        if name in RULES:
            out = RULES[name](self, equation, *args)
            return out if isinstance(out, list) else [out]
        if is_expanded(equation.primitive):
            return self.emit(expand(equation), args)
        raise NoRule(f"`{name}` {source_location(equation)}".strip())

    def _find_last_uses(self, jaxpr: Jaxpr) -> Any:
        """Return the variables whose last use is each equation, and unused arguments."""
        if jaxpr not in self._last_uses:
            last_use = {}
            for k, equation in enumerate(jaxpr.eqns):
                for atom in equation.invars:
                    if not isinstance(atom, Literal):
                        last_use[atom] = k
            results = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
            dying = [[] for _ in jaxpr.eqns]
            for var, k in last_use.items():
                if var not in results:
                    dying[k].append(var)
            arguments = [*jaxpr.constvars, *jaxpr.invars]
            unused = [v for v in dict.fromkeys(arguments) if v not in last_use and v not in results]
            self._last_uses[jaxpr] = dying, unused, results | set(last_use)
        return self._last_uses[jaxpr][:2]

    def _live(self, jaxpr: Jaxpr) -> set[Var]:
        return self._last_uses[jaxpr][2]

    # Arrays.

    def constant(self, value: ArrayLike) -> EmittedArray:
        """Return a constant array, in registers if it is small."""
        array = np.asarray(value)
        if array.size > REGISTERS:
            return self.emit_table(array)
        return to_objects(array)

    def emit_table(self, array: np.ndarray) -> ArrayView:
        """Store a constant array as a global variable of the module, shared by all lanes."""
        stored = np.ascontiguousarray(array.astype(np.int8) if array.dtype == np.bool_ else array)
        kind = ir.ArrayType(ir.IntType(8), stored.nbytes)
        module = self.builder.module
        table: Any = ir.GlobalVariable(module, kind, module.get_unique_name("table"))
        table.global_constant, table.linkage, table.align = True, "internal", 16
        table.initializer = ir.Constant(kind, bytearray(stored.tobytes()))
        pointer = table.ptrtoint(I64).inttoptr(POINTER)
        buffer = Buffer(
            pointer, array.dtype, array.size, shared=True, is_owned=False, values=array.ravel()
        )
        return ArrayView(buffer, array.shape, row_major_strides(array.shape))

    def to_registers(self, x: EmittedArray) -> np.ndarray:
        """Load all elements of an array into registers."""
        if not isinstance(x, ArrayView):
            return x
        if x.is_constant:
            return x.constant_objects()
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            out[index] = self.memory.read(x, index)
        return out

    def to_memory(self, x: EmittedArray, dtype: DType) -> ArrayView:
        """Store an array in memory; constants become tables."""
        if isinstance(x, ArrayView):
            return x
        if x.size and all(is_constant(element) for element in x.ravel()):
            return self.emit_table(np.asarray(x.tolist(), dtype).reshape(x.shape))
        out = self.memory.allocate(x.shape, dtype)
        for index in np.ndindex(x.shape):
            self.memory.write(out, index, x[index])
        return out

    def load_uniform(self, x: ArrayView) -> EmittedArray:
        """Load an array whose memory does not change, and remember its view."""
        registers = self.to_registers(x)
        self._sources[id(registers)] = registers, x
        return registers

    def find_source(self, x: EmittedArray) -> EmittedArray:
        """Return the view from which `load_uniform` loaded an array, else the array itself."""
        return self._sources.get(id(x), (x, x))[1]

    def load_if_small(self, x: EmittedArray) -> EmittedArray:
        """Load a small array into registers; leave a large one in memory."""
        return self.to_registers(x) if isinstance(x, ArrayView) and x.size <= FEW_REGISTERS else x

    def are_constant(self, *arrays: EmittedArray) -> bool:
        """Return whether all elements of the arrays are compile-time constants."""
        return all(
            x.is_constant if isinstance(x, ArrayView) else all(map(is_constant, x.ravel().tolist()))
            for x in arrays
        )

    def fits_registers(self, size: int, *arrays: EmittedArray) -> bool:
        """Return whether a result of this size is held in registers.

        **Arguments:** `arrays`, the operands: if all are constants, the limit is `REGISTERS`.
        """
        return size <= self.register_limit or (size <= REGISTERS and self.are_constant(*arrays))

    def read_element(self, x: EmittedArray, index: Index) -> LaneValue:
        """Return an element whose index is the same in all lanes."""
        if isinstance(x, ArrayView):
            return self.memory.read(x, index)
        return x[index]  # pyright: ignore[reportArgumentType, reportCallIssue]

    def map(
        self, function: Callable, dtype: DType, *arrays: EmittedArray,
        dtypes: Any = None, numpy_function: Callable | None = None,
    ) -> EmittedArray:  # fmt: skip
        """Apply a scalar function to arrays whose shapes broadcast.

        **Arguments:** `function`; `dtype` of the result; `dtypes` of the operands if they differ
        from it; `numpy_function`, which folds constant arrays.
        """
        shapes = {a.shape for a in arrays}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        dtypes = [dtype] * len(arrays) if dtypes is None else dtypes
        if numpy_function and math.prod(shape) > 1 and self._is_folded(shape, dtype, arrays):
            return self.constant(
                np.asarray(numpy_function(*map(self._to_numpy, arrays, dtypes)), dtype)
            )
        if self.fits_registers(math.prod(shape), *arrays):
            operands = [self.to_registers(a) for a in arrays]
            operands = [a if a.shape == shape else np.broadcast_to(a, shape) for a in operands]
            out = np.empty(math.prod(shape), object)
            out[:] = list(map(function, *(a.ravel().tolist() for a in operands)))
            return out.reshape(shape)
        if self._is_folded(shape, dtype, arrays):
            # For example the indices of a gather or a scatter.
            elements = np.vectorize(function, otypes=[object])(*map(self.to_registers, arrays))
            return self.emit_table(np.asarray(elements.tolist(), dtype))
        out = self.memory.allocate(shape, dtype)
        large = [
            nests.broadcast_view(self, a, shape, kind)
            for a, kind in zip(arrays, dtypes, strict=True)
            if a.shape
        ]
        target, *sources = nests.merge_axes([out, *large])
        if nests.can_vectorise_rows(self, target, sources):
            self._map_rows(function, target, sources, arrays)
            return out
        with self.loop_nest(target.shape) as index:
            rows = iter(sources)
            elements = [
                self.memory.read(next(rows), index) if a.shape else self.read_element(a, ())
                for a in arrays
            ]
            self.memory.write(target, index, function(*elements))
        return out

    def _is_folded(
        self, shape: tuple[int, ...], dtype: DType, arrays: Sequence[EmittedArray]
    ) -> bool:
        """Return whether a function of arrays is evaluated during emission."""
        limit = FOLDING_LIMIT if np.dtype(dtype).kind in "iub" else REGISTERS
        return math.prod(shape) <= limit and self.are_constant(*arrays)

    def _to_numpy(self, x: EmittedArray, dtype: DType) -> np.ndarray:
        """Return a constant array as a NumPy array of its dtype."""
        return x.constant_values() if isinstance(x, ArrayView) else np.array(x.tolist(), dtype)

    def _map_rows(
        self,
        function: Callable,
        target: ArrayView,
        sources: list[ArrayView],
        arrays: Sequence[EmittedArray],
    ) -> None:
        """Apply a function to vectors of elements along the last axis."""
        vectors = self.vectors
        scalars: list[Any] = [None if a.shape else self.read_element(a, ()) for a in arrays]
        with vectors.along_row():
            scalars = [x if x is None or is_constant(x) else self.lanes.splat(x) for x in scalars]
        *outer, last = target.shape
        with (
            self.loop_nest(tuple(outer)) as index,
            nests.loop_over_row_vectors(self, last) as first,
        ):
            rows = iter(sources)
            elements = []
            for a, x in zip(arrays, scalars, strict=True):
                if a.shape:
                    source = next(rows)
                    x = vectors.read(source, (*index, first), source.strides[-1] == 0)
                elements.append(x)
            vectors.write(target, (*index, first), function(*elements))

    def copy_to_memory(
        self,
        x: EmittedArray,
        dtype: DType,
        into: ArrayView | None = None,
        mask: LaneValue | None = None,
    ) -> ArrayView:
        """Copy an array into memory, or in the lanes of `mask` into the array `into`."""
        out = self.memory.allocate(x.shape, dtype) if into is None else into
        if isinstance(x, ArrayView):
            nests.copy(self, x, out, mask)
        else:
            for index in np.ndindex(x.shape):
                self.memory.write(out, index, x[index], mask)
        return out

    # Control.

    @contextlib.contextmanager
    def loop(self, count: int) -> Iterator[Value]:
        """Emit a loop with a constant trip count of at least one; yield the iteration number."""
        build = self.builder
        before = build.block
        body = build.append_basic_block("loop")
        build.branch(body)
        build.position_at_end(body)
        k = build.phi(I64)
        k.add_incoming(int64(0), before)
        yield k
        next_k = build.add(k, int64(1))
        k.add_incoming(next_k, build.block)
        continues = build.icmp_signed("<", next_k, int64(count))
        after = build.append_basic_block("after")
        build.cbranch(continues, body, after)
        build.position_at_end(after)

    @contextlib.contextmanager
    def loop_nest(self, shape: tuple[int, ...]) -> Iterator[Index]:
        """Emit nested loops over all indices of an array that is not empty."""
        with contextlib.ExitStack() as stack:
            yield tuple(0 if n == 1 else stack.enter_context(self.loop(n)) for n in shape)

    def emit_phis(self, x: Any, dtype: DType, block: ir.Block) -> Any:
        """Emit a phi node per element, with the values of `x` incoming from `block`."""
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            out[index] = self.lanes.phi(dtype)
        self.add_incoming(out, x, dtype, block)
        return out

    def add_incoming(self, phis: Any, x: Any, dtype: DType, block: ir.Block) -> None:
        """Add the elements of `x` as the incoming values of phi nodes from `block`."""
        for index in np.ndindex(phis.shape):
            self.lanes.add_incoming(dtype, phis[index], x[index], block)

    def select_array(
        self, dtype: DType, condition: LaneValue, yes: EmittedArray, no: EmittedArray
    ) -> EmittedArray:
        """Return the elements of `yes` in the lanes where a condition holds, else those of `no`."""
        dtype, condition_array = np.dtype(dtype), np.empty((), object)
        condition_array[()] = condition
        select = functools.partial(self.lanes.select, dtype)
        return self.map(
            select, dtype, condition_array, yes, no, dtypes=[np.dtype(np.bool_), dtype, dtype]
        )

    @contextlib.contextmanager
    def restrict_lanes(self, mask: LaneValue | None) -> Iterator[None]:
        """Write memory inside the context only in the lanes of a mask."""
        outer, self.mask = self.mask, mask
        yield
        self.mask = outer

    @contextlib.contextmanager
    def keep_alive(self, arrays: list) -> Iterator[None]:
        """Prevent arrays from being overwritten or released inside the context."""
        buffers = [x.buffer for x in arrays if isinstance(x, ArrayView)]
        for buffer in buffers:
            buffer.use_count += 1
        yield
        for buffer in buffers:
            buffer.use_count -= 1

    def copy_pinned(self, x: EmittedArray, aval: ShapedArray) -> EmittedArray:
        """Copy an array in memory, so that later iterations of a loop do not overwrite it."""
        if not isinstance(x, ArrayView):
            return x
        x = self.copy_to_memory(x, aval.dtype)
        x.buffer.pin_count += 1
        return x

    def intersect_mask(self, mask: LaneValue | None, condition: Any) -> Any:
        """Return the lanes of a mask (`None` for all) in which a condition holds."""
        return condition if mask is None else self.lanes.and_(np.bool_, mask, condition)
