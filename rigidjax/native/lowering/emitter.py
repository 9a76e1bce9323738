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
    expanded,
    has_stacked_condition,
    inner_jaxprs,
    is_expanded,
    of_complex,
    place_of,
)
from . import nests
from .builder import I64, Builder, Value, int64
from .complex import DType, Number
from .lanes import POINTER, Lanes, is_known
from .memory import Buffer, Held, Index, Memory, Rows, View, as_objects, row_major
from .registry import RULES, NoRule

# Entries up to which whole numbers that are known are computed here rather than by the kernel.
FOLDED = 1 << 14


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
        made: dict[tuple, Any] | None = None, warp: tuple[int, Value] | None = None,
        mixed: bool = False,
    ):  # fmt: skip
        self.builder, self.largest, self.mixed = builder, REGISTERS, mixed
        self.made = {} if made is None else made
        self.lanes = Lanes(builder, width)
        self.functions = Functions(self.lanes)
        self.memory = Memory(self.lanes, workspace, warp, mixed)
        arithmetic = self.lanes, self.functions.lanes
        self.row = Rows(self.memory, arithmetic, row if width == 1 else 1)
        # Lanes whose memory may change; `None` for all.
        self.mask: Number | None = None
        # Arrays in registers that memory holds as well, with what is in memory.
        self._stored: dict[int, tuple[np.ndarray, View]] = {}
        self._last_uses: dict[Jaxpr, Any] = {}
        self._loops: dict[Jaxpr, bool] = {}

    # Programs.

    def run(
        self, closed: ClosedJaxpr, args: list[Held], solved: dict[Var, Held] | None = None
    ) -> list[Held]:
        """Results of a program for these arrays; `solved`, results of equations in it."""
        consts = [self.constant(c) for c in closed.consts]
        return self.run_jaxpr(closed.jaxpr, consts, args, solved)

    def run_jaxpr(
        self, jaxpr: Any, consts: list[Held], args: list[Held],
        solved: dict[Var, Held] | None = None,
    ) -> list[Held]:  # fmt: skip
        frame: dict[Var, Held] = {}
        outer = self.largest
        self.largest = min(outer, self.largest_in(jaxpr))
        last_uses, unused = self._uses(jaxpr)
        different = uniformity.differing(self, jaxpr, args)

        def bind(var, value):
            frame[var] = value
            if isinstance(value, View):
                value.buffer.users += 1

        def read(atom):
            return self.constant(atom.val) if isinstance(atom, Literal) else frame[atom]

        def unbind(var):
            value = frame.pop(var)
            if isinstance(value, View):
                value.buffer.users -= 1
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
            results: list[Held] = []
            if not equation.outvars:
                # A branch or loop that only hands its arguments on: JAX takes its results away.
                pass
            elif solved and equation.outvars[0] in solved:
                results += [solved[var] for var in equation.outvars]
            elif not different.isdisjoint(equation.outvars):
                with self.memory.only_kept(results):
                    results += uniformity.results(self, equation, args, different)
            else:
                with self.memory.only_kept(results):
                    if different:
                        # The results do not depend on arguments that differ from lane to lane.
                        args = [uniformity.of_one(self, x) for x in args]
                    results += self.equation(equation, args)
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
        self.largest = outer
        return out

    def largest_in(self, jaxpr: Jaxpr) -> int:
        """Entries up to which an array of a program is held in registers."""
        return FEW_REGISTERS if self._has_loops(jaxpr) else REGISTERS

    def limits(self, jaxpr: Jaxpr, args: list[Held | None]) -> list[int]:
        """The same for each argument of a program; `None` among `args` for what is not known."""
        known = (x is not None and self.are_known(x) for x in args)
        marks = dynamic_indices.indexed(jaxpr, tuple(not k for k in known)).arguments
        most = self.largest_in(jaxpr)
        return [min(most, dynamic_indices.FEW_INDEXED) if mark else most for mark in marks]

    def _has_loops(self, jaxpr):
        """Whether a program has loops over stacks."""
        if jaxpr not in self._loops:
            self._loops[jaxpr] = any(
                one.primitive.name == "for_each" or any(map(self._has_loops, inner_jaxprs(one)))
                for one in jaxpr.eqns
            )
        return self._loops[jaxpr]

    def equation(self, equation: JaxprEqn, args: list[Held]) -> list[Held]:
        """Results of one equation."""
        name = equation.primitive.name
        if of_complex(equation) or has_stacked_condition(equation):
            return self.run(expanded(equation), args)
        if name in RULES:
            out = RULES[name](self, equation, *args)
            return out if isinstance(out, list) else [out]
        if is_expanded(equation.primitive):
            return self.run(expanded(equation), args)
        raise NoRule(f"`{name}` {place_of(equation)}".strip())

    def _uses(self, jaxpr) -> Any:
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

    def constant(self, value: ArrayLike) -> Held:
        """An array that is known."""
        array = np.asarray(value)
        if array.size > REGISTERS:
            return self.table(array)
        return as_objects(array)

    def table(self, array: np.ndarray) -> View:
        """A known array in the memory of the program, one number for all lanes."""
        stored = np.ascontiguousarray(array.astype(np.int8) if array.dtype == np.bool_ else array)
        kind = ir.ArrayType(ir.IntType(8), stored.nbytes)
        module = self.builder.module
        table: Any = ir.GlobalVariable(module, kind, module.get_unique_name("table"))
        table.global_constant, table.linkage, table.align = True, "internal", 16
        table.initializer = ir.Constant(kind, bytearray(stored.tobytes()))
        pointer = table.ptrtoint(I64).inttoptr(POINTER)
        buffer = Buffer(
            pointer, array.dtype, array.size, shared=True, own=False, values=array.ravel()
        )
        return View(buffer, array.shape, row_major(array.shape))

    def registers(self, x: Held) -> np.ndarray:
        """An array with all its numbers in registers."""
        if not isinstance(x, View):
            return x
        if x.is_known:
            return x.known()
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            out[index] = self.memory.read(x, index)
        return out

    def in_memory(self, x: Held, dtype: DType) -> View:
        """An array in memory."""
        if isinstance(x, View):
            return x
        if x.size and all(is_known(one) for one in x.ravel()):
            return self.table(np.asarray(x.tolist(), dtype).reshape(x.shape))
        out = self.memory.allocate(x.shape, dtype)
        for index in np.ndindex(x.shape):
            self.memory.write(out, index, x[index])
        return out

    def read_once(self, x: View) -> Held:
        """The numbers of memory that does not change, in registers."""
        numbers = self.registers(x)
        self._stored[id(numbers)] = numbers, x
        return numbers

    def stored(self, x: Held) -> Held:
        """An array as memory holds it, if it is one that was `read_once`."""
        return self._stored.get(id(x), (x, x))[1]

    def settled(self, x: Held) -> Held:
        """An array as large ones are in memory, small ones in registers."""
        return self.registers(x) if isinstance(x, View) and x.size <= FEW_REGISTERS else x

    def are_known(self, *arrays: Held) -> bool:
        """Whether all numbers of arrays are known at emission."""
        return all(
            x.is_known if isinstance(x, View) else all(map(is_known, x.ravel().tolist()))
            for x in arrays
        )

    def fits(self, size: int, *arrays: Held) -> bool:
        """Whether an array made of others is held in registers."""
        return size <= self.largest or (size <= REGISTERS and self.are_known(*arrays))

    def entry(self, x: Held, index: Index) -> Number:
        """One number of an array; its index is the same in all lanes."""
        if isinstance(x, View):
            return self.memory.read(x, index)
        return x[index]  # pyright: ignore[reportArgumentType, reportCallIssue]

    def map(
        self, function: Callable, dtype: DType, *arrays: Held,
        kinds: Any = None, known: Callable | None = None,
    ) -> Held:  # fmt: skip
        """A function of numbers, applied to arrays whose shapes broadcast.

        `kinds`, types of the arguments where they are not `dtype`; `known`, NumPy's function of
        whole arrays, for those that are known.
        """
        shapes = {a.shape for a in arrays}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        kinds = [dtype] * len(arrays) if kinds is None else kinds
        if known and math.prod(shape) > 1 and self._is_folded(shape, dtype, arrays):
            return self.constant(np.asarray(known(*map(self._numbers, arrays, kinds)), dtype))
        if self.fits(math.prod(shape), *arrays):
            spread = [self.registers(a) for a in arrays]
            spread = [a if a.shape == shape else np.broadcast_to(a, shape) for a in spread]
            out = np.empty(math.prod(shape), object)
            out[:] = list(map(function, *(a.ravel().tolist() for a in spread)))
            return out.reshape(shape)
        if self._is_folded(shape, dtype, arrays):
            # Places of a gather or a scatter, say.
            numbers = np.vectorize(function, otypes=[object])(*map(self.registers, arrays))
            return self.table(np.asarray(numbers.tolist(), dtype))
        out = self.memory.allocate(shape, dtype)
        large = [
            nests.spread(self, a, shape, kind)
            for a, kind in zip(arrays, kinds, strict=True)
            if a.shape
        ]
        target, *sources = nests.joined_axes([out, *large])
        if nests.has_rows(self, target, sources):
            self._map_rows(function, target, sources, arrays)
            return out
        with self.indices(target.shape) as index:
            rows = iter(sources)
            numbers = [
                self.memory.read(next(rows), index) if a.shape else self.entry(a, ())
                for a in arrays
            ]
            self.memory.write(target, index, function(*numbers))
        return out

    def _is_folded(self, shape, dtype, arrays):
        """Whether a function of arrays is computed at emission."""
        most = FOLDED if np.dtype(dtype).kind in "iub" else REGISTERS
        return math.prod(shape) <= most and self.are_known(*arrays)

    def _numbers(self, x, dtype):
        """Known numbers, of their type."""
        return x.numbers() if isinstance(x, View) else np.array(x.tolist(), dtype)

    def _map_rows(self, function, target, sources, arrays):
        """Several numbers of the last axis at once."""
        row = self.row
        single: list[Any] = [None if a.shape else self.entry(a, ()) for a in arrays]
        with row.in_place_of_lanes():
            single = [x if x is None or is_known(x) else self.lanes.splat(x) for x in single]
        *outer, last = target.shape
        with self.indices(tuple(outer)) as index, nests.parts_of_row(self, last) as first:
            rows = iter(sources)
            numbers = []
            for a, x in zip(arrays, single, strict=True):
                if a.shape:
                    own = next(rows)
                    x = row.read(own, (*index, first), own.strides[-1] == 0)
                numbers.append(x)
            row.write(target, (*index, first), function(*numbers))

    def copied(
        self, x: Held, dtype: DType, into: View | None = None, mask: Number | None = None
    ) -> View:
        """A copy in memory, into an array of the same shape if one is given."""
        out = self.memory.allocate(x.shape, dtype) if into is None else into
        if isinstance(x, View):
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
    def indices(self, shape: tuple[int, ...]) -> Iterator[Index]:
        """Loops over all indices of an array that is not empty."""
        with contextlib.ExitStack() as stack:
            yield tuple(0 if n == 1 else stack.enter_context(self.loop(n)) for n in shape)

    def phis(self, x: Any, dtype: DType, block: ir.Block) -> Any:
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

    def chosen(self, dtype: DType, condition: Number, yes: Held, no: Held) -> Held:
        """One array in the lanes in which a condition holds, another in the others."""
        dtype, which = np.dtype(dtype), np.empty((), object)
        which[()] = condition
        select = functools.partial(self.lanes.select, dtype)
        return self.map(select, dtype, which, yes, no, kinds=[np.dtype(np.bool_), dtype, dtype])

    @contextlib.contextmanager
    def masked(self, mask: Number | None) -> Iterator[None]:
        """Changes of memory only in some lanes."""
        outer, self.mask = self.mask, mask
        yield
        self.mask = outer

    @contextlib.contextmanager
    def kept(self, arrays: list) -> Iterator[None]:
        """These arrays are read again later: nobody may write or release them."""
        buffers = [x.buffer for x in arrays if isinstance(x, View)]
        for buffer in buffers:
            buffer.users += 1
        yield
        for buffer in buffers:
            buffer.users -= 1

    def owned(self, x: Held, aval: ShapedArray) -> Held:
        """An array that later turns of a loop do not overwrite."""
        if not isinstance(x, View):
            return x
        x = self.copied(x, aval.dtype)
        x.buffer.pinned += 1
        return x

    def both(self, mask: Number | None, condition: Any) -> Any:
        """Lanes of a mask (`None` for all) in which a condition holds."""
        return condition if mask is None else self.lanes.and_(np.bool_, mask, condition)
