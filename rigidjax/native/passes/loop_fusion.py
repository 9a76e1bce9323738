"""Loop fusion: one loop for all equations that compute the entries of stacks separately.

A jaxpr computes with whole stacks (of bodies, for example), one primitive after another. If stacks
are too large for registers, each primitive would become a loop of its own through memory. This pass
collects primitives that compute each entry of a stack from the same entry of other stacks into the
body of one loop, whose intermediate results stay in registers.
"""

import collections
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var

from .analysis import (
    MOVES,
    REGISTERS,
    ArrayEquation,
    emitted_jaxprs,
    has_batched_condition,
    stays_constant,
)
from .cse import Atom
from .inlining import InlinedJaxpr
from .unbatching import UnbatchedEquation, drop_index, unbatch

# Smallest length of a stack, and smallest number of scalars that a loop computes, for which loops
# are faster than unrolled code; measured on accelerations of chains.
_SHORTEST, _FEWEST = 10, 1_000
# Primitives whose result is another view of the same memory.
_VIEWS = frozenset("broadcast_in_dim reshape slice squeeze stop_gradient transpose".split())

# A loop over the entries of stacks, which exists in rewritten jaxprs only. Parameters: `jaxpr`, the
# loop body; `length` of the stacks; `sources`, the stack axis of each argument (`None` for an
# argument that is shared by all entries); `targets`, the stack axis of each result.
for_each_p = Primitive("for_each")
for_each_p.multiple_results = True


def fuse_loops(
    closed: ClosedJaxpr,
    known: frozenset[int] = frozenset(),
    num_tangents: int = 0,
    shared: frozenset[int] = frozenset(),
) -> ClosedJaxpr:
    """Inline calls, choose kernel variants, and fuse equations over long stacks into loops.

    Returns the jaxpr itself if none of these applies.

    **Arguments:** `known`, indices of arguments that are compile-time constants; `num_tangents`,
    length of stacks of tangents, which are always looped over, 0 if there are none; `shared`,
    identities of jaxprs that become functions (see `outlining`).
    """
    if not num_tangents and not shared and not _needs_rewriting(closed.jaxpr):
        return closed
    key = id(closed), known, num_tangents, shared
    if key not in _rewritten:
        # The jaxpr is kept alive, because its address is the key.
        _rewritten[key] = _rewrite(closed, known, num_tangents, shared), closed
    return _rewritten[key][0]


_rewritten: dict[tuple, tuple[ClosedJaxpr, ClosedJaxpr]] = {}


def _fuse_length(
    equations: list[JaxprEqn], results: Sequence[Atom], length: int, known: set[Var]
) -> list[JaxprEqn]:
    """Fuse the equations over stacks of one length; loops with little work are not made."""
    excluded: set[int] = set()
    while True:
        grouping = _Grouping(equations, results, length, known, excluded)
        small = grouping.find_small_loops()
        if not small:
            return grouping.reorder()
        excluded |= small


def _count_elements(equation: ArrayEquation) -> int:
    """Return the number of scalars that an equation computes."""
    if equation.primitive.name in MOVES | _VIEWS:
        return 0
    return sum(math.prod(var.aval.shape) for var in equation.outvars)


def _needs_rewriting(jaxpr: Jaxpr) -> bool:
    """Return whether a jaxpr has kernel variants, batched `while` loops or large arrays."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "platform_index" or has_batched_condition(equation):
            return True
        if any(getattr(var.aval, "size", 0) > REGISTERS for var in equation.outvars):
            return True
        if any(map(_needs_rewriting, emitted_jaxprs(equation))):
            return True
    return False


def _rewrite(
    closed: ClosedJaxpr, known: frozenset[int], num_tangents: int, shared: frozenset[int]
) -> ClosedJaxpr:
    arguments = closed.jaxpr.invars
    constant = {arguments[k] for k in known if stays_constant(arguments[k].aval)}
    rewrite = functools.partial(fuse_loops, num_tangents=num_tangents, shared=shared)
    inlined = InlinedJaxpr(closed, constant, rewrite, shared)
    equations = inlined.equations
    for length in _find_lengths(equations, num_tangents):
        equations = _fuse_length(equations, inlined.results, length, inlined.known)
    jaxpr = closed.jaxpr
    jaxpr = jaxpr.replace(
        constvars=list(inlined.constants), outvars=inlined.results, eqns=equations
    )
    return ClosedJaxpr(jaxpr, list(inlined.constants.values()))


def _find_lengths(equations: Sequence[JaxprEqn], num_tangents: int) -> list[int]:
    """Return the stack lengths for which loops are worthwhile, the one with most work first."""
    work: dict[int, int] = collections.Counter()
    for equation in equations:
        shape = getattr(equation.outvars[0].aval, "shape", ()) if equation.outvars else ()
        if equation.primitive.name in MOVES:
            continue
        for length in set(shape):
            axis = shape.index(length)
            is_long = length >= _SHORTEST or length == num_tangents
            if is_long and unbatch(equation, axis) is not None:
                work[length] += math.prod(shape)
    worthwhile = [length for length, count in work.items() if count > _FEWEST]
    return sorted(worthwhile, key=lambda length: (length != num_tangents, -work[length]))


class _Position(NamedTuple):
    """Position of an equation in the new order.

    **Attributes:** `loop`, index of the loop that contains the equation or that follows it;
    `split`, the equation for one entry, `None` outside loops; `outside`, index of the first loop
    before which its results can be available outside loops.
    """

    loop: int
    split: UnbatchedEquation | None
    outside: int


class _Grouping:
    """Equations grouped into loops over stacks of one length.

    Loop k contains all equations over such stacks whose other operands are available after loop
    k - 1.

    **Attributes:** `positions`, of all equations; `equations_of`, the equations of each loop;
    `given`, the variables that each loop passes to other equations; `duplicated`, equations of
    loops that are computed outside as well.
    """

    def __init__(
        self,
        equations: list[JaxprEqn],
        results: Sequence[Atom],
        length: int,
        known: set[Var],
        excluded: set[int],
    ):
        self.equations, self.results, self.length = equations, results, length
        self.known, self.excluded = known, excluded
        self.defining: dict[object, int] = {
            var: k for k, equation in enumerate(equations) for var in equation.outvars
        }
        self.positions: list[_Position] = []
        for k in range(len(equations)):
            self.positions.append(self._find_position(k))
        self.equations_of: dict[int, set[int]] = collections.defaultdict(set)
        self.given: dict[int, dict[Any, None]] = collections.defaultdict(dict)
        self.duplicated: set[int] = set()
        for equation, position in zip(self.equations, self.positions, strict=True):
            if position.split is None:
                self._require_outside(equation.invars)
        self._require_outside(self.results)
        for loop in sorted({p.loop for p in self.positions}, reverse=True):
            self._collect(loop)

    def find_small_loops(self) -> set[int]:
        """Return the equations of loops that compute too little to be worthwhile."""
        return {
            k
            for members in self.equations_of.values()
            if sum(_count_elements(self.equations[k]) for k in members) < _FEWEST
            for k in members
        }

    def reorder(self) -> list[JaxprEqn]:
        """Return the equations in their new order, with one equation for each loop."""
        ordered = []
        for k, (equation, position) in enumerate(zip(self.equations, self.positions, strict=True)):
            if position.split is None or k in self.duplicated:
                ordered.append(((position.outside, 0, k), equation))
        for loop, members in self.equations_of.items():
            if members:
                ordered.append(((loop, 1, 0), self._make_loop(loop, sorted(members))))
        return [equation for _, equation in sorted(ordered, key=lambda pair: pair[0])]

    def _split(self, k: int) -> UnbatchedEquation:
        """Return equation `k`, which is part of a loop, for one entry."""
        split = self.positions[k].split
        assert split is not None
        return split

    def _position_of(self, atom: Any) -> _Position | None:
        """Return the position of the defining equation; `None` for arguments and constants."""
        if isinstance(atom, Literal) or atom not in self.defining:
            return None
        return self.positions[self.defining[atom]]

    def _is_loop_stack(self, atom: Any, axis: int | None) -> bool:
        """Return whether a variable is computed in a loop, with its stack along this axis."""
        position = self._position_of(atom)
        if position is None or position.split is None or axis is None:
            return False
        outvars = self.equations[self.defining[atom]].outvars
        return position.split.targets[outvars.index(atom)] == axis

    def _find_position(self, k: int) -> _Position:
        best, equation = None, self.equations[k]
        known = self.known.issuperset(equation.outvars)
        aval = equation.outvars[0].aval
        shape = () if known or k in self.excluded else getattr(aval, "shape", ())
        for axis, n in enumerate(shape):
            split = unbatch(equation, axis) if n == self.length else None
            if split is None:
                continue
            score = sum(map(self._is_loop_stack, equation.invars, split.sources))
            if best is None or score > best[0]:
                best = score, split
        operands = map(self._position_of, equation.invars)
        outside = max((p.outside for p in operands if p), default=0)
        if best is None:
            return _Position(outside, None, outside)
        split = best[1]
        loop = 0
        for atom, axis in zip(equation.invars, split.sources, strict=True):
            position = self._position_of(atom)
            if position is not None:
                is_inside = self._is_loop_stack(atom, axis)
                loop = max(loop, position.loop if is_inside else position.outside)
        is_view = equation.primitive.name in _VIEWS
        return _Position(loop, split, outside if is_view else loop + 1)

    def _require_outside(self, atoms: Iterable[Any]) -> None:
        """Make variables available outside loops.

        Views are computed again outside, which costs nothing; other variables are given by loops.
        """
        waiting = list(atoms)
        while waiting:
            atom = waiting.pop()
            position = self._position_of(atom)
            if position is None or position.split is None:
                continue
            k = self.defining[atom]
            if self.equations[k].primitive.name in _VIEWS:
                if k not in self.duplicated:
                    self.duplicated.add(k)
                    waiting += self.equations[k].invars
            else:
                self.given[position.loop][atom] = None

    def _collect(self, loop: int) -> None:
        """Find the equations of a loop from the variables that it gives to others."""
        waiting, members = [self.defining[var] for var in self.given[loop]], self.equations_of[loop]
        while waiting:
            k = waiting.pop()
            if k in members:
                continue
            members.add(k)
            split = self._split(k)
            for atom, axis in zip(self.equations[k].invars, split.sources, strict=True):
                if not self._is_loop_stack(atom, axis):
                    self._require_outside([atom])
                    continue
                operand = self.defining[atom]
                is_move = self.equations[operand].primitive.name in MOVES | _VIEWS
                if is_move or self.positions[operand].loop == loop:
                    waiting.append(operand)
                else:
                    self.given[self.positions[operand].loop][atom] = None

    def _make_loop(self, loop: int, members: list[int]) -> JaxprEqn:
        """Return the `for_each` equation of a loop."""
        inside = {var for k in members for var in self.equations[k].outvars}
        sources: dict[tuple, Any] = {}
        for k in members:
            split = self._split(k)
            for atom, axis in zip(self.equations[k].invars, split.sources, strict=True):
                if not isinstance(atom, Literal) and not (
                    atom in inside and self._is_loop_stack(atom, axis)
                ):
                    sources[atom, axis] = None
        given = list(self.given[loop])
        outer = list(sources)

        def body(*args):
            entries, env = dict(zip(outer, args, strict=True)), {}
            for k in members:
                equation, split = self.equations[k], self._split(k)
                values = [
                    atom.val
                    if isinstance(atom, Literal)
                    else entries[atom, axis]
                    if (atom, axis) in entries
                    else env[atom]
                    for atom, axis in zip(equation.invars, split.sources, strict=True)
                ]
                out = split.evaluate(*values)
                out = out if equation.primitive.multiple_results else [out]
                env.update(zip(equation.outvars, out, strict=True))
            return [env[var] for var in given]

        avals = [_entry_shape(atom.aval, axis) for atom, axis in outer]
        jaxpr = jax.make_jaxpr(body)(*avals)
        targets = []
        for var in given:
            k = self.defining[var]
            targets.append(self._split(k).targets[self.equations[k].outvars.index(var)])
        first = self.equations[members[0]]
        return first.replace(
            primitive=for_each_p,
            invars=[atom for atom, _ in outer],
            outvars=given,
            params=dict(
                jaxpr=jaxpr, length=self.length, sources=tuple(axis for _, axis in outer),
                targets=tuple(targets),
            ),
        )  # fmt: skip


def _entry_shape(aval: ShapedArray, axis: int | None) -> jax.ShapeDtypeStruct:
    shape = aval.shape if axis is None else drop_index(aval.shape, axis)
    return jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)
