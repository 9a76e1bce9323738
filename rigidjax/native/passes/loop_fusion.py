"""Stacks of bodies: one loop over a stack for all that is computed entry by entry.

JAX's programs compute with whole stacks, one primitive after another. Where stacks are too large
for registers, each primitive would be a loop of its own through memory. Here a program is
rewritten: primitives that compute each entry of a stack from the same entries of other stacks
become the body of one loop, whose intermediate results stay in registers.
"""

import collections
import functools
import math
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var

from .analysis import MOVES, REGISTERS, emitted_jaxprs, has_batched_condition, stays_constant
from .inlining import InlinedJaxpr
from .unbatching import UnbatchedEquation, drop_index, unbatch

# Entries of a stack, and numbers computed with stacks of a length, from which on loops are made:
# accelerations of a chain of 9 take 1.4 times as long with loops, of one of 10 0.7 times.
_SHORTEST, _FEWEST = 10, 1_000
# What gives another view of the same memory.
_VIEWS = frozenset("broadcast_in_dim reshape slice squeeze stop_gradient transpose".split())

# A loop over the entries of stacks: `jaxpr`, what is done with each; `length` of the stacks;
# `sources`, their axis in each argument (`None`: the same for all entries); `targets`, in each
# result. Exists in rewritten programs only.
for_each_p = Primitive("for_each")
for_each_p.multiple_results = True


def fuse_loops(
    closed: ClosedJaxpr,
    known: frozenset[int] = frozenset(),
    several: int = 0,
    shared: frozenset[int] = frozenset(),
) -> ClosedJaxpr:
    """The program with one loop for each group of equations over a long stack.

    And with what `alternatives` have for kernels; itself if there is neither. `known`, numbers of
    arguments that are known when the kernel is emitted; `several`, length of stacks of tangents,
    which there are loops over however short they are; `shared`, what becomes functions (see
    `repeated`).
    """
    if not several and not shared and not _needs_rewriting(closed.jaxpr):
        return closed
    key = id(closed), known, several, shared
    if key not in _rewritten:
        # The program is kept, so that its address stays its own.
        _rewritten[key] = _rewrite(closed, known, several, shared), closed
    return _rewritten[key][0]


_rewritten: dict[tuple, tuple[ClosedJaxpr, ClosedJaxpr]] = {}


def _fuse_length(equations, results, length, known):
    """The equations with those over stacks of a length in loops, each of which does enough."""
    apart: set[int] = set()
    while True:
        grouping = _Grouping(equations, results, length, known, apart)
        small = grouping.small_loops()
        if not small:
            return grouping.ordered()
        apart |= small


def _count_elements(equation):
    """Numbers that an equation computes."""
    if equation.primitive.name in MOVES | _VIEWS:
        return 0
    return sum(math.prod(var.aval.shape) for var in equation.outvars)


def _needs_rewriting(jaxpr: Jaxpr) -> bool:
    """Whether a program, or one inside of it, has alternatives, loops of members that end one by
    one, or computes large arrays."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "platform_index" or has_batched_condition(equation):
            return True
        if any(getattr(var.aval, "size", 0) > REGISTERS for var in equation.outvars):
            return True
        if any(map(_needs_rewriting, emitted_jaxprs(equation))):
            return True
    return False


def _rewrite(closed, known, several, shared):
    arguments = closed.jaxpr.invars
    remaining = {arguments[k] for k in known if stays_constant(arguments[k].aval)}
    rewritten = functools.partial(fuse_loops, several=several, shared=shared)
    program = InlinedJaxpr(closed, remaining, rewritten, shared)
    equations = program.equations
    for length in _lengths(equations, several):
        equations = _fuse_length(equations, program.results, length, program.known)
    jaxpr = closed.jaxpr
    jaxpr = jaxpr.replace(
        constvars=list(program.constants), outvars=program.results, eqns=equations
    )
    return ClosedJaxpr(jaxpr, list(program.constants.values()))


def _lengths(equations, several) -> list[int]:
    """Lengths of the stacks for which loops are worth while, those with most numbers first."""
    numbers: dict[int, int] = collections.Counter()
    for equation in equations:
        shape = getattr(equation.outvars[0].aval, "shape", ()) if equation.outvars else ()
        if equation.primitive.name in MOVES:
            continue
        for length in set(shape):
            axis = shape.index(length)
            is_long = length >= _SHORTEST or length == several
            if is_long and unbatch(equation, axis) is not None:
                numbers[length] += math.prod(shape)
    worth = [length for length, count in numbers.items() if count > _FEWEST]
    return sorted(worth, key=lambda length: (length != several, -numbers[length]))


class _Position(NamedTuple):
    """Where an equation stands in the new order.

    **Attributes:** `turn`, number of the loop that it is part of, or before which it comes;
    `split`, `None` outside of loops; `outside`, before which loop its results are known outside.
    """

    turn: int
    split: UnbatchedEquation | None
    outside: int


class _Grouping:
    """Equations grouped into loops over stacks of one length.

    Loop number k has all equations over such stacks that need nothing from outside of loops which
    comes after loop k - 1.
    """

    def __init__(
        self,
        equations: list[JaxprEqn],
        results: list[Var | Literal],
        length: int,
        known: set[Var],
        alone: set[int],
    ):
        self.equations, self.results, self.length = equations, results, length
        self.known, self.alone = known, alone
        self.maker: dict[object, int] = {
            var: k for k, equation in enumerate(equations) for var in equation.outvars
        }
        self.places: list[_Position] = []
        for k in range(len(equations)):
            self.places.append(self._placed(k))
        # For each loop its equations, what it gives to others, and equations to be done outside.
        self.members: dict[int, set[int]] = collections.defaultdict(set)
        self.given: dict[int, dict[Any, None]] = collections.defaultdict(dict)
        self.apart: set[int] = set()
        for equation, place in zip(self.equations, self.places, strict=True):
            if place.split is None:
                self._need_outside(equation.invars)
        self._need_outside(self.results)
        for turn in sorted({p.turn for p in self.places}, reverse=True):
            self._collect(turn)

    def small_loops(self) -> set[int]:
        """Equations of loops that are not worth while."""
        return {
            k
            for members in self.members.values()
            if sum(_count_elements(self.equations[k]) for k in members) < _FEWEST
            for k in members
        }

    def ordered(self) -> list[JaxprEqn]:
        """The equations in their new order."""
        ordered = []
        for k, (equation, place) in enumerate(zip(self.equations, self.places, strict=True)):
            if place.split is None or k in self.apart:
                ordered.append(((place.outside, 0, k), equation))
        for turn, members in self.members.items():
            if members:
                ordered.append(((turn, 1, 0), self._loop(turn, sorted(members))))
        return [equation for _, equation in sorted(ordered, key=lambda pair: pair[0])]

    def _split(self, k) -> UnbatchedEquation:
        """An equation of a loop, entry by entry."""
        split = self.places[k].split
        assert split is not None
        return split

    def _of(self, atom) -> _Position | None:
        """The place of what makes a variable; `None` for arguments and constants."""
        if isinstance(atom, Literal) or atom not in self.maker:
            return None
        return self.places[self.maker[atom]]

    def _follows(self, atom, axis) -> bool:
        """Whether a variable is computed in a loop, its stack along this axis."""
        place = self._of(atom)
        if place is None or place.split is None or axis is None:
            return False
        outvars = self.equations[self.maker[atom]].outvars
        return place.split.targets[outvars.index(atom)] == axis

    def _placed(self, k) -> _Position:
        best, equation = None, self.equations[k]
        known = self.known.issuperset(equation.outvars)
        shape = () if known or k in self.alone else getattr(equation.outvars[0].aval, "shape", ())
        for axis, n in enumerate(shape):
            split = unbatch(equation, axis) if n == self.length else None
            if split is None:
                continue
            follows = sum(map(self._follows, equation.invars, split.sources))
            if best is None or follows > best[0]:
                best = follows, split
        outside = max((p.outside for p in map(self._of, equation.invars) if p), default=0)
        if best is None:
            return _Position(outside, None, outside)
        split = best[1]
        turn = 0
        for atom, axis in zip(equation.invars, split.sources, strict=True):
            place = self._of(atom)
            if place is not None:
                turn = max(turn, place.turn if self._follows(atom, axis) else place.outside)
        is_view = equation.primitive.name in _VIEWS
        return _Position(turn, split, outside if is_view else turn + 1)

    def _need_outside(self, atoms) -> None:
        """What makes these variables is done outside of loops if it costs nothing, else given."""
        waiting = list(atoms)
        while waiting:
            atom = waiting.pop()
            place = self._of(atom)
            if place is None or place.split is None:
                continue
            maker = self.maker[atom]
            if self.equations[maker].primitive.name in _VIEWS:
                if maker not in self.apart:
                    self.apart.add(maker)
                    waiting += self.equations[maker].invars
            else:
                self.given[place.turn][atom] = None

    def _collect(self, turn) -> None:
        """Find the equations of a loop, from what others need of it."""
        waiting, members = [self.maker[var] for var in self.given[turn]], self.members[turn]
        while waiting:
            k = waiting.pop()
            if k in members:
                continue
            members.add(k)
            split = self._split(k)
            for atom, axis in zip(self.equations[k].invars, split.sources, strict=True):
                if not self._follows(atom, axis):
                    self._need_outside([atom])
                    continue
                maker = self.maker[atom]
                is_move = self.equations[maker].primitive.name in MOVES | _VIEWS
                if is_move or self.places[maker].turn == turn:
                    waiting.append(maker)
                else:
                    self.given[self.places[maker].turn][atom] = None

    def _loop(self, turn, members):
        """The equation of a loop."""
        inside = {var for k in members for var in self.equations[k].outvars}
        sources: dict[tuple, Any] = {}
        for k in members:
            split = self._split(k)
            for atom, axis in zip(self.equations[k].invars, split.sources, strict=True):
                if not isinstance(atom, Literal) and not (
                    atom in inside and self._follows(atom, axis)
                ):
                    sources[atom, axis] = None
        given = list(self.given[turn])
        outer = list(sources)

        def body(*args):
            own, env = dict(zip(outer, args, strict=True)), {}
            for k in members:
                equation, split = self.equations[k], self._split(k)
                values = [
                    atom.val
                    if isinstance(atom, Literal)
                    else own[atom, axis]
                    if (atom, axis) in own
                    else env[atom]
                    for atom, axis in zip(equation.invars, split.sources, strict=True)
                ]
                out = split.one(*values)
                out = out if equation.primitive.multiple_results else [out]
                env.update(zip(equation.outvars, out, strict=True))
            return [env[var] for var in given]

        avals = [_entry_shape(atom.aval, axis) for atom, axis in outer]
        jaxpr = jax.make_jaxpr(body)(*avals)
        targets = []
        for var in given:
            k = self.maker[var]
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


def _entry_shape(aval, axis):
    shape = aval.shape if axis is None else drop_index(aval.shape, axis)
    return jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)
