"""Writes a random block line by line: picks operands of the right types, infers result types."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from rigidjax.native.passes.analysis import sub_jaxprs
from rigidjax.native.runtime.support import why_not

from . import values
from .blocks import Block, Line, Type, literal, traced_line, types_of

# Arrays in registers, in memory, and stacks that kernels compute in loops; some are empty.
SHAPES = (
    *((),) * 4, (1,), (3,), (3,), (4,), (3, 3), (4, 4), (2, 3), (5,), (40,), (300,), (12, 3),
    (12, 3, 3), (2, 5, 3), (0,), (0, 3),
)  # fmt: skip
MOST_ELEMENTS = 700


class UnavailableError(Exception):
    """No variable has the type that an operation needs."""


class Writer:
    """A block that is being written.

    **Arguments:** `rng`; `inputs`, types of the arguments; `depth`, how far control flow may be
    nested; `reverse`, whether everything has to be differentiable in reverse mode.
    """

    def __init__(self, rng: np.random.Generator, inputs: Sequence[Type], depth: int, reverse: bool):
        self.rng, self.depth, self.reverse = rng, depth, reverse
        self.inputs = tuple(inputs)
        self.types = list(inputs)
        self.lines: list[Line] = []
        self.primitives: set[str] = set()
        self.operands: list[int] = []
        self.refused: list[str] = []

    def chance(self, probability: float) -> bool:
        return bool(self.rng.uniform() < probability)

    def choose(self, items: Sequence):
        return items[int(self.rng.integers(len(items)))]

    def integer(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def variable(
        self, kinds: str = "fiubc", where: Callable[[Type], bool] = lambda t: True
    ) -> tuple[str, Type]:
        """Return the placeholder and the type of a variable, more often of a recent one.

        **Raises:** `UnavailableError` if there is none.
        """
        fits = [k for k, t in enumerate(self.types) if np.dtype(t.dtype).kind in kinds and where(t)]
        if not fits:
            raise UnavailableError
        weights = np.linspace(1.0, 3.0, len(fits))
        k = int(self.rng.choice(fits, p=weights / weights.sum()))
        return self.operand(k), self.types[k]

    def operand(self, k: int) -> str:
        self.operands.append(k)
        return f"{{{len(self.operands) - 1}}}"

    def constant(self, t: Type, special: float = 0.2) -> str:
        """Return an array of this type that is a compile-time constant."""
        if t.shape == () or self.chance(0.4):
            scalar = literal(values.scalar(self.rng, t.dtype, self.chance(special)))
            return scalar if t.shape == () else f"jnp.full({t.shape}, {scalar})"
        if np.prod(t.shape) > 12:
            return f"jnp.arange({np.prod(t.shape)}).reshape{t.shape}.astype('{t.dtype}')"
        return f"jnp.asarray({literal(values.array(self.rng, t.shape, t.dtype, special))})"

    def like(self, t: Type, known: float = 0.15) -> str:
        """Return an operand of exactly this type: a variable or a constant."""
        if self.chance(known):
            return self.constant(t)
        try:
            return self.variable(where=lambda other: other == t)[0]
        except UnavailableError:
            return self.constant(t)

    def broadcastable(self, t: Type, known: float = 0.15) -> str:
        """Return an operand of the same dtype whose shape NumPy broadcasts with that of `t`."""

        def fits(other):
            pairs = zip(reversed(t.shape), reversed(other.shape), strict=False)
            grown = np.prod(other.shape, dtype=int) * np.prod(t.shape, dtype=int)
            return (
                other.dtype == t.dtype
                and all(a == b or 1 in (a, b) for a, b in pairs)
                and (other.shape in (t.shape, ()) or grown <= MOST_ELEMENTS)
            )

        if self.chance(known):
            return self.constant(Type(self.choose([t.shape, ()]), t.dtype))
        return self.variable(where=fits)[0]

    def index(self, size: int, known: float = 0.35, inside: bool = False) -> str:
        """Return an index of an axis, constant or not, often out of bounds."""
        low, high = (0, size - 1) if inside else (-size - 2, size + 2)
        if self.chance(known):
            return str(self.integer(low, max(high, low)))
        text = self.variable("iu", lambda t: t.shape == ())[0]
        # As an integer of a type that holds the length.
        return f"jnp.int64({text}) % {max(size, 1)}" if inside or self.chance(0.5) else text

    def append(
        self,
        code: str,
        rounding: float = 0.0,
        backward: str = "",
        bodies: Sequence[Block] = (),
        doubt: str = "",
    ) -> list[int] | None:
        """Append a line; return the indices of its results, or None where it cannot be a kernel."""
        (code, doubt), args = _used_operands((code, doubt), tuple(self.operands))
        self.operands = []
        line = Line(code, args, (), rounding, backward, tuple(bodies), doubt=doubt)
        closed, is_tuple = traced_line(line, [self.types[k] for k in args])
        types = types_of(closed.out_avals)
        sizes = [int(np.prod(t.shape)) for t in types]
        if why_not(closed) or max(sizes, default=0) > MOST_ELEMENTS:
            return None
        self.primitives |= primitives_of(closed.jaxpr)
        self.lines.append(line._replace(types=types, is_tuple=is_tuple))
        first = len(self.types)
        self.types += types
        return list(range(first, len(self.types)))

    def block(self, outputs: Sequence[int]) -> Block:
        return Block(self.inputs, tuple(self.lines), tuple(outputs))


def _used_operands(
    codes: Sequence[str], args: tuple[int, ...]
) -> tuple[list[str], tuple[int, ...]]:
    """Leave out the operands that the expressions do not name."""
    used = sorted({int(k) for code in codes for k in re.findall(r"\{(\d+)\}", code)})

    def renumber(match):
        return f"{{{used.index(int(match[1]))}}}"

    return [re.sub(r"\{(\d+)\}", renumber, code) for code in codes], tuple(args[k] for k in used)


def primitives_of(jaxpr) -> set[str]:
    """Return the names of all primitives of a jaxpr and of its sub-jaxprs."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for inner in sub_jaxprs(equation):
            names |= primitives_of(inner)
    return names
