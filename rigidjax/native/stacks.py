"""Stacks of bodies: one loop over a stack for all that is computed entry by entry.

JAX's programs compute with whole stacks, one primitive after another. Where stacks are too large
for registers, each primitive would be a loop of its own through memory. Here a program is
rewritten: primitives that compute each entry of a stack from the same entries of other stacks
become the body of one loop, whose intermediate results stay in registers.
"""

import collections
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Literal, Primitive, Var

from .alternatives import in_kernel_p
from .emitter import MOVES, REGISTERS, inner_jaxprs

# Entries of a stack, and numbers computed with stacks of a length, from which on loops are made.
_SHORTEST, _FEWEST = 8, 1_000
# What gives another view of the same memory.
_VIEWS = frozenset("broadcast_in_dim reshape slice squeeze stop_gradient transpose".split())

# A loop over the entries of stacks: `jaxpr`, what is done with each; `length` of the stacks;
# `sources`, their axis in each argument (`None`: the same for all entries); `targets`, in each
# result. Exists in rewritten programs only.
for_each_p = Primitive("for_each")
for_each_p.multiple_results = True

# Calls of programs that take the place of the call.
_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vmap_call": "call",
    "remat": "jaxpr", "checkpoint": "jaxpr",
}  # fmt: skip
_ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp complex conj "
    "convert_element_type copy cos cosh div eq exp exp2 expm1 floor ge gt imag integer_pow "
    "is_finite le log log1p logistic lt max min mul ne neg nextafter not or pow real rem round "
    "rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor".split()
)
_REDUCTIONS = frozenset("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or".split())


class Split(NamedTuple):
    """An equation entry by entry of a stack.

    **Attributes:** `sources`, the axis of the stack of each argument, `None` for one that is the
    same for all entries; `targets`, that of each result; `one`, the results for one entry.
    """

    sources: list[int | None]
    targets: list[int]
    one: Callable[..., Any]


def _without(values, k):
    return (*values[:k], *values[k + 1 :])


def _behind(axis, removed):
    """An axis after another one was taken out."""
    return axis - (removed < axis)


def _bound(equation, **changed):
    params = {**equation.params, **changed}
    return lambda *args: equation.primitive.bind(*args, **params)


def _elementwise(equation, axis, shape):
    rank = len(shape)
    sources = [axis if x.aval.ndim == rank else None for x in equation.invars]
    return sources, _bound(equation)


def _broadcast_in_dim(equation, axis, shape):
    (x, *_), p = equation.invars, equation.params
    dims, rest = p["broadcast_dimensions"], _without(shape, axis)
    own = dims.index(axis) if axis in dims else None
    if own is None:
        at = tuple(_behind(d, axis) for d in dims)
        return [None], lambda v: jax.lax.broadcast_in_dim(v, rest, at)
    at = tuple(_behind(d, axis) for d in _without(dims, own))
    if x.aval.shape[own] == shape[axis]:
        return [own], lambda v: jax.lax.broadcast_in_dim(v, rest, at)
    return [None], lambda v: jax.lax.broadcast_in_dim(jax.lax.squeeze(v, (own,)), rest, at)


def _reshape(equation, axis, shape):
    old = equation.invars[0].aval.shape
    before = math.prod(shape[:axis])
    for k, n in enumerate(old):
        if n == shape[axis] and math.prod(old[:k]) == before:
            return [k], lambda v: jax.lax.reshape(v, _without(shape, axis))
    return None


def _transpose(equation, axis, shape):
    order = equation.params["permutation"]
    source = order[axis]
    rest = tuple(_behind(k, source) for k in _without(order, axis))
    return [source], lambda v: jax.lax.transpose(v, rest)


def _squeeze(equation, axis, shape):
    gone = equation.params["dimensions"]
    kept = [k for k in range(equation.invars[0].aval.ndim) if k not in gone]
    source = kept[axis]
    return [source], lambda v: jax.lax.squeeze(v, tuple(_behind(k, source) for k in gone))


def _slice(equation, axis, shape):
    p = equation.params
    if shape[axis] != equation.invars[0].aval.shape[axis]:
        return None
    steps = p["strides"] and _without(p["strides"], axis)
    limits = (_without(p[k], axis) for k in ("start_indices", "limit_indices"))
    start, end = limits
    return [axis], lambda v: jax.lax.slice(v, start, end, steps)


def _concatenate(equation, axis, shape):
    along = equation.params["dimension"]
    if along == axis:
        return None
    return [axis] * len(equation.invars), _bound(equation, dimension=_behind(along, axis))


def _stack(equation, axis, shape):
    along = equation.params["axis"]
    if along == axis:
        return None
    source = _behind(axis, along)
    return [source] * len(equation.invars), _bound(equation, axis=_behind(along, axis))


def _unstack(equation, axis, shape):
    along = equation.params["axis"]
    source = axis + (along <= axis)
    return [source], _bound(equation, axis=_behind(along, source))


def _split(equation, axis, shape):
    along = equation.params["axis"]
    if along == axis:
        return None
    return [axis], _bound(equation, axis=_behind(along, axis))


def _pad(equation, axis, shape):
    config = equation.params["padding_config"]
    if tuple(config[axis]) != (0, 0, 0):
        return None
    return [axis, None], _bound(equation, padding_config=_without(config, axis))


def _rev(equation, axis, shape):
    axes = equation.params["dimensions"]
    if axis in axes:
        return None
    return [axis], _bound(equation, dimensions=tuple(_behind(k, axis) for k in axes))


def _iota(equation, axis, shape):
    along = equation.params["dimension"]
    if along == axis:
        return None
    rest, dtype = _without(shape, axis), equation.params["dtype"]
    return [], lambda: jax.lax.broadcasted_iota(dtype, rest, _behind(along, axis))


def _reduction(equation, axis, shape):
    axes = equation.params["axes"]
    kept = [k for k in range(equation.invars[0].aval.ndim) if k not in axes]
    source = kept[axis]
    return [source], _bound(equation, axes=tuple(_behind(k, source) for k in axes))


def _short_sum(equation, axis, shape):
    along = equation.params["axis"]
    source = axis + (along <= axis)
    mapped = [x.aval.shape[source] == shape[axis] for x in equation.invars]

    def one(*factors):
        factors = [
            f if m else jax.lax.squeeze(f, (source,)) for f, m in zip(factors, mapped, strict=True)
        ]
        return equation.primitive.bind(*factors, axis=_behind(along, source))

    return [source if m else None for m in mapped], one


def _dot_general(equation, axis, shape):
    a, b = equation.invars
    (ca, cb), (ba, bb) = equation.params["dimension_numbers"]
    free_a = [k for k in range(a.aval.ndim) if k not in (*ca, *ba)]
    free_b = [k for k in range(b.aval.ndim) if k not in (*cb, *bb)]
    if axis < len(ba):
        sources: list[int | None] = [ba[axis], bb[axis]]
    elif axis < len(ba) + len(free_a):
        sources = [free_a[axis - len(ba)], None]
    else:
        sources = [None, free_b[axis - len(ba) - len(free_a)]]

    def rest(axes, source):
        if source is None:
            return tuple(axes)
        return tuple(_behind(k, source) for k in axes if k != source)

    numbers = tuple(
        tuple(rest(axes, source) for axes, source in zip(pair, sources, strict=True))
        for pair in ((ca, cb), (ba, bb))
    )
    return sources, _bound(equation, dimension_numbers=numbers)


_SPLITS: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast_in_dim, "reshape": _reshape, "transpose": _transpose,
    "squeeze": _squeeze, "slice": _slice, "concatenate": _concatenate, "stack": _stack,
    "unstack": _unstack, "split": _split, "pad": _pad, "rev": _rev, "iota": _iota,
    "short_sum": _short_sum, "dot_general": _dot_general,
    **dict.fromkeys(_ELEMENTWISE, _elementwise), **dict.fromkeys(_REDUCTIONS, _reduction),
}  # fmt: skip


def _split_of(equation, axis) -> Split | None:
    """The equation entry by entry along an axis of its results."""
    rule = _SPLITS.get(equation.primitive.name)
    if rule is None:
        return None
    found = rule(equation, axis, equation.outvars[0].aval.shape)
    return found and Split(found[0], [axis] * len(equation.outvars), found[1])


# Rewriting.


def with_loops(closed: ClosedJaxpr, known: frozenset[int] = frozenset()) -> ClosedJaxpr:
    """The program with one loop for each group of equations over a long stack.

    And with what `alternatives` have for kernels; itself if there is neither. `known`, numbers of
    arguments that are known when the kernel is emitted.
    """
    if not _has_something_to_do(closed.jaxpr):
        return closed
    key = id(closed), known
    if key not in _rewritten:
        # The program is kept, so that its address stays its own.
        _rewritten[key] = _rewrite(closed, known), closed
    return _rewritten[key][0]


_rewritten: dict[Any, Any] = {}


def _regrouped(equations, results, length, known):
    """The equations with those over stacks of a length in loops, each of which does enough."""
    apart: set[int] = set()
    while True:
        grouping = _Grouping(equations, results, length, known, apart)
        small = grouping.small_loops()
        if not small:
            return grouping.ordered()
        apart |= small


def _volume(equation):
    """Numbers that an equation computes."""
    if equation.primitive.name in MOVES | _VIEWS:
        return 0
    return sum(math.prod(var.aval.shape) for var in equation.outvars)


def _has_something_to_do(jaxpr: Any) -> bool:
    """Whether a program, or one inside of it, has alternatives or computes large arrays."""
    for equation in jaxpr.eqns:
        if equation.primitive is in_kernel_p:
            return True
        if any(getattr(var.aval, "size", 0) > REGISTERS for var in equation.outvars):
            return True
        if any(map(_has_something_to_do, inner_jaxprs(equation))):
            return True
    return False


def _rewrite(closed, known):
    arguments = closed.jaxpr.invars
    small = {arguments[k] for k in known if arguments[k].aval.size <= REGISTERS}
    program = _Inlined(closed, small)
    equations = program.equations
    for length in _lengths(equations):
        equations = _regrouped(equations, program.results, length, program.known)
    jaxpr = closed.jaxpr
    jaxpr = jaxpr.replace(
        constvars=list(program.constants), outvars=program.results, eqns=equations
    )
    return ClosedJaxpr(jaxpr, list(program.constants.values()))


class _Inlined:
    """A program whose calls are replaced by what they call.

    **Attributes:** `equations`; `constants`, values by their variables; `results`; `known`,
    variables whose small arrays are known when the kernel is emitted (places of a gather, say).
    """

    def __init__(self, closed: ClosedJaxpr, known: Any):
        self.equations: list[Any] = []
        self.constants: dict[Any, Any] = {}
        # Variables that say that this is a kernel.
        self.true: set[Any] = set()
        self.known = set(known)
        arguments = closed.jaxpr.invars
        self.results = self._run(closed.jaxpr, closed.consts, arguments)

    def _run(self, jaxpr, consts, args):
        env = dict(zip(jaxpr.invars, args, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = Var(var.aval)
            self.constants[env[var]] = value
            if var.aval.size <= REGISTERS:
                self.known.add(env[var])

        def read(atom):
            return atom if isinstance(atom, Literal) else env[atom]

        for equation in jaxpr.eqns:
            args = [read(atom) for atom in equation.invars]
            called = self._called(equation, args)
            if called is not None:
                inner, args = called
                consts = inner.consts if isinstance(inner, ClosedJaxpr) else []
                inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
                out = self._run(inner, consts, args)
            else:
                out = [Var(var.aval) for var in equation.outvars]
                params = self._params(equation, args)
                self.equations.append(equation.replace(invars=args, outvars=out, params=params))
                small = all(getattr(v.aval, "size", REGISTERS + 1) <= REGISTERS for v in out)
                if small and all(map(self._is_known, args)):
                    self.known.update(out)
                if equation.primitive is in_kernel_p or (
                    equation.primitive.name == "convert_element_type"
                    and not isinstance(args[0], Literal)
                    and args[0] in self.true
                ):
                    self.true.update(out)
            env.update(zip(equation.outvars, out, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _params(self, equation, args):
        """Parameters of an equation, the programs in it rewritten."""
        known, p = [self._is_known(x) for x in args], equation.params
        if equation.primitive.name == "while":
            first, last = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
            of = {"cond_jaxpr": known[:first], "body_jaxpr": known[first:last]}
        else:
            shared = p["num_consts"] if equation.primitive.name == "scan" else None
            of = {"jaxpr": known[:shared], "branches": known[1:]}
        return {k: _inside(v, of.get(k, ())) for k, v in p.items()}

    def _is_known(self, atom):
        return isinstance(atom, Literal) or atom in self.known

    def _called(self, equation, args):
        """The program in the place of an equation, and its arguments."""
        name = equation.primitive.name
        if name in _CALLS:
            return equation.params[_CALLS[name]], args
        if name == "cond" and not isinstance(args[0], Literal) and args[0] in self.true:
            return equation.params["branches"][1], args[1:]
        return None


def _inside(param, known):
    """A parameter of an equation, programs in it rewritten; `known`, which arguments are."""
    if isinstance(param, ClosedJaxpr):
        known = (k for k, is_known in enumerate(known) if is_known)
        return with_loops(param, frozenset(known))
    if type(param) is tuple and any(isinstance(one, ClosedJaxpr) for one in param):
        return tuple(_inside(one, known) for one in param)
    return param


def _lengths(equations) -> list[int]:
    """Lengths of the stacks for which loops are worth while, those with most numbers first."""
    numbers: dict[int, int] = collections.Counter()
    for equation in equations:
        shape = getattr(equation.outvars[0].aval, "shape", ()) if equation.outvars else ()
        if equation.primitive.name in MOVES:
            continue
        for length in set(shape):
            axis = shape.index(length)
            if length >= _SHORTEST and _split_of(equation, axis) is not None:
                numbers[length] += math.prod(shape)
    worth = [length for length, count in numbers.items() if count > _FEWEST]
    return sorted(worth, key=lambda length: -numbers[length])


class _Place(NamedTuple):
    """Where an equation stands in the new order.

    **Attributes:** `turn`, number of the loop that it is part of, or before which it comes;
    `split`, `None` outside of loops; `outside`, before which loop its results are known outside.
    """

    turn: int
    split: Split | None
    outside: int


class _Grouping:
    """Equations grouped into loops over stacks of one length.

    Loop number k has all equations over such stacks that need nothing from outside of loops which
    comes after loop k - 1.
    """

    def __init__(
        self,
        equations: list[Any],
        results: list[Any],
        length: int,
        known: set[Any],
        alone: set[int],
    ):
        self.equations, self.results, self.length = equations, results, length
        self.known, self.alone = known, alone
        self.maker: dict[Any, int] = {
            var: k for k, equation in enumerate(equations) for var in equation.outvars
        }
        self.places: list[_Place] = []
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
            if sum(_volume(self.equations[k]) for k in members) < _FEWEST
            for k in members
        }

    def ordered(self) -> list[Any]:
        """The equations in their new order."""
        ordered = []
        for k, (equation, place) in enumerate(zip(self.equations, self.places, strict=True)):
            if place.split is None or k in self.apart:
                ordered.append(((place.outside, 0, k), equation))
        for turn, members in self.members.items():
            if members:
                ordered.append(((turn, 1, 0), self._loop(turn, sorted(members))))
        return [equation for _, equation in sorted(ordered, key=lambda pair: pair[0])]

    def _split(self, k) -> Split:
        """An equation of a loop, entry by entry."""
        split = self.places[k].split
        assert split is not None
        return split

    def _of(self, atom) -> _Place | None:
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

    def _placed(self, k) -> _Place:
        best, equation = None, self.equations[k]
        known = self.known.issuperset(equation.outvars)
        shape = () if known or k in self.alone else getattr(equation.outvars[0].aval, "shape", ())
        for axis, n in enumerate(shape):
            split = _split_of(equation, axis) if n == self.length else None
            if split is None:
                continue
            follows = sum(map(self._follows, equation.invars, split.sources))
            if best is None or follows > best[0]:
                best = follows, split
        outside = max((p.outside for p in map(self._of, equation.invars) if p), default=0)
        if best is None:
            return _Place(outside, None, outside)
        split = best[1]
        turn = 0
        for atom, axis in zip(equation.invars, split.sources, strict=True):
            place = self._of(atom)
            if place is not None:
                turn = max(turn, place.turn if self._follows(atom, axis) else place.outside)
        is_view = equation.primitive.name in _VIEWS
        return _Place(turn, split, outside if is_view else turn + 1)

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
        sources: dict[Any, Any] = {}
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

        avals = [_entry(atom.aval, axis) for atom, axis in outer]
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


def _entry(aval, axis):
    shape = aval.shape if axis is None else _without(aval.shape, axis)
    return jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)
