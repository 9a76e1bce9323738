"""Walks a jaxpr and emits each of its equations for W lanes at once.

An array of a program is either a NumPy array of numbers (see `lanes`), each in a register, or a
view of memory (see `memory`). What moves numbers about without computing is free for the first and
nearly so for the second. `rules` has one function for each primitive.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike
from llvmlite import ir

from ..libm.functions import Functions
from ..passes import dynamic_indices, uniformity
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
from . import nests
from .builder import I64, Builder, Value, int64
from .complex import DType, LaneValue
from .lanes import POINTER, Lanes, is_constant
from .memory import (
    ArrayView,
    Buffer,
    EmittedArray,
    Index,
    KernelMemory,
    RowVectors,
    row_major_strides,
    to_objects,
)
from .registry import RULES, NoRule

# Entries up to which whole numbers that are known are computed here rather than by the kernel.
FOLDING_LIMIT = 1 << 14


class Emitter:
    """Emits programs at the end of a builder's block.

    **Arguments:** `builder`; `width`, number of lanes; `workspace`, an LLVM pointer to the memory
    of the kernel, whose size is `memory.bytes` at the end; `row`, numbers of an array that are
    computed at once where there is one lane; `made`, functions of the module (see `rules.calls`);
    `warp`, as of `Memory`; `mixed`, whether some arrays have `row` lanes (see `mixed`).

    **Attributes:** `largest`, entries up to which an array of the program that is being emitted is
    held in registers (known ones are up to `REGISTERS`).
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
        # Lanes whose memory may change; `None` for all.
        self.mask: LaneValue | None = None
        # Arrays in registers that memory holds as well, with what is in memory.
        self._sources: dict[int, tuple[np.ndarray, ArrayView]] = {}
        self._last_uses: dict[Jaxpr, Any] = {}
        self._loops: dict[Jaxpr, bool] = {}

    # Programs.

    def emit(
        self,
        closed: ClosedJaxpr,
        args: list[EmittedArray],
        solved: dict[Var, EmittedArray] | None = None,
    ) -> list[EmittedArray]:
        """Results of a program for these arrays; `solved`, results of equations in it."""
        consts = [self.constant(c) for c in closed.consts]
        return self.emit_jaxpr(closed.jaxpr, consts, args, solved)

    def emit_jaxpr(
        self, jaxpr: Any, consts: list[EmittedArray], args: list[EmittedArray],
        solved: dict[Var, EmittedArray] | None = None,
    ) -> list[EmittedArray]:  # fmt: skip
        frame: dict[Var, EmittedArray] = {}
        outer = self.register_limit
        self.register_limit = min(outer, self.find_register_limit(jaxpr))
        last_uses, unused = self._find_last_uses(jaxpr)
        different = uniformity.find_divergent_variables(self, jaxpr, args)

        def bind(var, value):
            frame[var] = value
            if isinstance(value, ArrayView):
                value.buffer.use_count += 1

        def read(atom):
            return self.constant(atom.val) if isinstance(atom, Literal) else frame[atom]

        def unbind(var):
            value = frame.pop(var)
            if isinstance(value, ArrayView):
                value.buffer.use_count -= 1
                return [value.buffer]
            return []

        for var, value in zip(jaxpr.constvars, consts, strict=True):
            bind(var, value)
        for var, value in zip(jaxpr.invars, args, strict=True):
            bind(var, value)
        released = [buffer for var in unused for buffer in unbind(var)]
        for k, equation in enumerate(jaxpr.eqns):
            args = [read(atom) for atom in equation.invars]
            # Who is read here for the last time may be written in place.
            released += [buffer for var in last_uses[k] for buffer in unbind(var)]
            results: list[EmittedArray] = []
            if not equation.outvars:
                # A branch or loop that only hands its arguments on: JAX takes its results away.
                pass
            elif solved and equation.outvars[0] in solved:
                results += [solved[var] for var in equation.outvars]
            elif not different.isdisjoint(equation.outvars):
                with self.memory.release_temporaries(results):
                    results += uniformity.emit_equation(self, equation, args, different)
            else:
                with self.memory.release_temporaries(results):
                    if different:
                        # The results do not depend on arguments that differ from lane to lane.
                        args = [uniformity.take_first_lane(self, x) for x in args]
                    results += self.emit_equation(equation, args)
            for var, value in zip(equation.outvars, results, strict=True):
                assert value.shape == var.aval.shape, (equation.primitive, value.shape, var.aval)
                bind(var, value)
                if var not in self._live(jaxpr):
                    released += unbind(var)
            for buffer in released:
                self.memory.release(buffer)
            released = []
        out = [read(atom) for atom in jaxpr.outvars]
        for var in list(frame):
            unbind(var)
        self.register_limit = outer
        return out

    def find_register_limit(self, jaxpr: Jaxpr) -> int:
        """Entries up to which an array of a program is held in registers."""
        return FEW_REGISTERS if self._has_loops(jaxpr) else REGISTERS

    def find_register_limits(self, jaxpr: Jaxpr, args: list[EmittedArray | None]) -> list[int]:
        """The same for each argument of a program; `None` among `args` for what is not known."""
        known = (x is not None and self.are_constant(x) for x in args)
        marks = dynamic_indices.find_dynamic_indices(jaxpr, tuple(not k for k in known)).arguments
        most = self.find_register_limit(jaxpr)
        return [
            min(most, dynamic_indices.MAX_INDEXED_REGISTERS) if mark else most for mark in marks
        ]

    def _has_loops(self, jaxpr):
        """Whether a program has loops over stacks."""
        if jaxpr not in self._loops:
            self._loops[jaxpr] = any(
                one.primitive.name == "for_each" or any(map(self._has_loops, sub_jaxprs(one)))
                for one in jaxpr.eqns
            )
        return self._loops[jaxpr]

    def emit_equation(self, equation: JaxprEqn, args: list[EmittedArray]) -> list[EmittedArray]:
        """Results of one equation."""
        name = equation.primitive.name
        if is_complex_expansion(equation) or has_batched_condition(equation):
            return self.emit(expand(equation), args)
        if name in RULES:
            out = RULES[name](self, equation, *args)
            return out if isinstance(out, list) else [out]
        if is_expanded(equation.primitive):
            return self.emit(expand(equation), args)
        raise NoRule(f"`{name}` {source_location(equation)}".strip())

    def _find_last_uses(self, jaxpr) -> Any:
        """Variables read for the last time in each equation, and arguments that nobody reads."""
        if jaxpr not in self._last_uses:
            last = {}
            for k, equation in enumerate(jaxpr.eqns):
                for atom in equation.invars:
                    if not isinstance(atom, Literal):
                        last[atom] = k
            results = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
            dying = [[] for _ in jaxpr.eqns]
            for var, k in last.items():
                if var not in results:
                    dying[k].append(var)
            arguments = [*jaxpr.constvars, *jaxpr.invars]
            unused = [v for v in dict.fromkeys(arguments) if v not in last and v not in results]
            self._last_uses[jaxpr] = dying, unused, results | set(last)
        return self._last_uses[jaxpr][:2]

    def _live(self, jaxpr):
        return self._last_uses[jaxpr][2]

    # Arrays.

    def constant(self, value: ArrayLike) -> EmittedArray:
        """An array that is known."""
        array = np.asarray(value)
        if array.size > REGISTERS:
            return self.emit_table(array)
        return to_objects(array)

    def emit_table(self, array: np.ndarray) -> ArrayView:
        """A known array in the memory of the program, one number for all lanes."""
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
        """An array with all its numbers in registers."""
        if not isinstance(x, ArrayView):
            return x
        if x.is_constant:
            return x.constant_objects()
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            out[index] = self.memory.read(x, index)
        return out

    def to_memory(self, x: EmittedArray, dtype: DType) -> ArrayView:
        """An array in memory."""
        if isinstance(x, ArrayView):
            return x
        if x.size and all(is_constant(one) for one in x.ravel()):
            return self.emit_table(np.asarray(x.tolist(), dtype).reshape(x.shape))
        out = self.memory.allocate(x.shape, dtype)
        for index in np.ndindex(x.shape):
            self.memory.write(out, index, x[index])
        return out

    def load_uniform(self, x: ArrayView) -> EmittedArray:
        """The numbers of memory that does not change, in registers."""
        numbers = self.to_registers(x)
        self._sources[id(numbers)] = numbers, x
        return numbers

    def find_source(self, x: EmittedArray) -> EmittedArray:
        """An array as memory holds it, if it is one that was `read_once`."""
        return self._sources.get(id(x), (x, x))[1]

    def load_if_small(self, x: EmittedArray) -> EmittedArray:
        """An array as large ones are in memory, small ones in registers."""
        return self.to_registers(x) if isinstance(x, ArrayView) and x.size <= FEW_REGISTERS else x

    def are_constant(self, *arrays: EmittedArray) -> bool:
        """Whether all numbers of arrays are known at emission."""
        return all(
            x.is_constant if isinstance(x, ArrayView) else all(map(is_constant, x.ravel().tolist()))
            for x in arrays
        )

    def fits_registers(self, size: int, *arrays: EmittedArray) -> bool:
        """Whether an array made of others is held in registers."""
        return size <= self.register_limit or (size <= REGISTERS and self.are_constant(*arrays))

    def read_element(self, x: EmittedArray, index: Index) -> LaneValue:
        """One number of an array; its index is the same in all lanes."""
        if isinstance(x, ArrayView):
            return self.memory.read(x, index)
        return x[index]  # pyright: ignore[reportArgumentType, reportCallIssue]

    def map(
        self, function: Callable, dtype: DType, *arrays: EmittedArray,
        kinds: Any = None, known: Callable | None = None,
    ) -> EmittedArray:  # fmt: skip
        """A function of numbers, applied to arrays whose shapes broadcast.

        `kinds`, types of the arguments where they are not `dtype`; `known`, NumPy's function of
        whole arrays, for those that are known.
        """
        shapes = {a.shape for a in arrays}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        kinds = [dtype] * len(arrays) if kinds is None else kinds
        if known and math.prod(shape) > 1 and self._is_compile_time(shape, dtype, arrays):
            return self.constant(
                np.asarray(known(*map(self._constant_values, arrays, kinds)), dtype)
            )
        if self.fits_registers(math.prod(shape), *arrays):
            spread = [self.to_registers(a) for a in arrays]
            spread = [a if a.shape == shape else np.broadcast_to(a, shape) for a in spread]
            out = np.empty(math.prod(shape), object)
            out[:] = list(map(function, *(a.ravel().tolist() for a in spread)))
            return out.reshape(shape)
        if self._is_compile_time(shape, dtype, arrays):
            # Places of a gather or a scatter, say.
            numbers = np.vectorize(function, otypes=[object])(*map(self.to_registers, arrays))
            return self.emit_table(np.asarray(numbers.tolist(), dtype))
        out = self.memory.allocate(shape, dtype)
        large = [
            nests.broadcast_view(self, a, shape, kind)
            for a, kind in zip(arrays, kinds, strict=True)
            if a.shape
        ]
        target, *sources = nests.merge_axes([out, *large])
        if nests.can_vectorise_rows(self, target, sources):
            self._map_rows(function, target, sources, arrays)
            return out
        with self.loop_nest(target.shape) as index:
            rows = iter(sources)
            numbers = [
                self.memory.read(next(rows), index) if a.shape else self.read_element(a, ())
                for a in arrays
            ]
            self.memory.write(target, index, function(*numbers))
        return out

    def _is_compile_time(self, shape, dtype, arrays):
        """Whether a function of arrays is computed at emission."""
        most = FOLDING_LIMIT if np.dtype(dtype).kind in "iub" else REGISTERS
        return math.prod(shape) <= most and self.are_constant(*arrays)

    def _constant_values(self, x, dtype):
        """Known numbers, of their type."""
        return x.constant_values() if isinstance(x, ArrayView) else np.array(x.tolist(), dtype)

    def _map_rows(self, function, target, sources, arrays):
        """Several numbers of the last axis at once."""
        row = self.vectors
        single: list[Any] = [None if a.shape else self.read_element(a, ()) for a in arrays]
        with row.along_row():
            single = [x if x is None or is_constant(x) else self.lanes.splat(x) for x in single]
        *outer, last = target.shape
        with (
            self.loop_nest(tuple(outer)) as index,
            nests.loop_over_row_vectors(self, last) as first,
        ):
            rows = iter(sources)
            numbers = []
            for a, x in zip(arrays, single, strict=True):
                if a.shape:
                    own = next(rows)
                    x = row.read(own, (*index, first), own.strides[-1] == 0)
                numbers.append(x)
            row.write(target, (*index, first), function(*numbers))

    def copy_to_memory(
        self,
        x: EmittedArray,
        dtype: DType,
        into: ArrayView | None = None,
        mask: LaneValue | None = None,
    ) -> ArrayView:
        """A copy in memory, into an array of the same shape if one is given."""
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
        """A loop whose number of turns is the same in all lanes; gives the turn's number."""
        build = self.builder
        before = build.block
        body = build.append_basic_block("loop")
        build.branch(body)
        build.position_at_end(body)
        turn = build.phi(I64)
        turn.add_incoming(int64(0), before)
        yield turn
        following = build.add(turn, int64(1))
        turn.add_incoming(following, build.block)
        again = build.icmp_signed("<", following, int64(count))
        after = build.append_basic_block("after")
        build.cbranch(again, body, after)
        build.position_at_end(after)

    @contextlib.contextmanager
    def loop_nest(self, shape: tuple[int, ...]) -> Iterator[Index]:
        """Loops over all indices of an array that is not empty."""
        with contextlib.ExitStack() as stack:
            yield tuple(0 if n == 1 else stack.enter_context(self.loop(n)) for n in shape)

    def emit_phis(self, x: Any, dtype: DType, block: ir.Block) -> Any:
        """Numbers in registers that are those of `x` where their block is entered from `block`."""
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            out[index] = self.lanes.phi(dtype)
        self.add_incoming(out, x, dtype, block)
        return out

    def add_incoming(self, phis: Any, x: Any, dtype: DType, block: ir.Block) -> None:
        """What `phis` are where their block is entered from `block`."""
        for index in np.ndindex(phis.shape):
            self.lanes.add_incoming(dtype, phis[index], x[index], block)

    def select_array(
        self, dtype: DType, condition: LaneValue, yes: EmittedArray, no: EmittedArray
    ) -> EmittedArray:
        """One array in the lanes in which a condition holds, another in the others."""
        dtype, which = np.dtype(dtype), np.empty((), object)
        which[()] = condition
        select = functools.partial(self.lanes.select, dtype)
        return self.map(select, dtype, which, yes, no, kinds=[np.dtype(np.bool_), dtype, dtype])

    @contextlib.contextmanager
    def restrict_lanes(self, mask: LaneValue | None) -> Iterator[None]:
        """Changes of memory only in some lanes."""
        outer, self.mask = self.mask, mask
        yield
        self.mask = outer

    @contextlib.contextmanager
    def keep_alive(self, arrays: list) -> Iterator[None]:
        """These arrays are read again later: nobody may write or release them."""
        buffers = [x.buffer for x in arrays if isinstance(x, ArrayView)]
        for buffer in buffers:
            buffer.use_count += 1
        yield
        for buffer in buffers:
            buffer.use_count -= 1

    def copy_pinned(self, x: EmittedArray, aval: ShapedArray) -> EmittedArray:
        """An array that later turns of a loop do not overwrite."""
        if not isinstance(x, ArrayView):
            return x
        x = self.copy_to_memory(x, aval.dtype)
        x.buffer.pin_count += 1
        return x

    def intersect_mask(self, mask: LaneValue | None, condition: Any) -> Any:
        """Lanes of a mask (`None` for all) in which a condition holds."""
        return condition if mask is None else self.lanes.and_(np.bool_, mask, condition)
