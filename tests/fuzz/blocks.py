"""Random functions as data: lines of JAX code that can be written as Python, run, and shrunk."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import rigidjax  # noqa: F401  (registers the primitives of the generated code)

HEADER = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rigidjax import native
from rigidjax.native.jaxrules import lockstep
from rigidjax.native.ops import cross_product, division, gather_scatter, linalg, sums
from rigidjax.mechanics.dynamics import mass_matrix
"""


class Type(NamedTuple):
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def inexact(self) -> bool:
        return np.dtype(self.dtype).kind in "fc"

    def struct(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape, self.dtype)


class Line(NamedTuple):
    """One assignment.

    **Attributes:** `code`, an expression in which `{0}`, `{1}` are operands and `{b0}`, `{b1}` are
    functions; `args`, indices of the operands; `types` of the results; `rounding`, units in the
    last place by which a result may differ, 0 if it is exact; `backward`, "relative" or "normwise"
    if the error is that of a small change of the operands; `bodies`, the functions; `is_tuple`,
    whether the expression is a tuple, which it may be of one result; `doubt`, an expression of the
    operands and of `{result}` that is true where XLA's own result is wrong, or "".
    """

    code: str
    args: tuple[int, ...]
    types: tuple[Type, ...]
    rounding: float = 0.0
    backward: str = ""
    bodies: tuple["Block", ...] = ()
    is_tuple: bool = False
    doubt: str = ""


class Block(NamedTuple):
    """A function: its variables are the inputs and then the results of the lines, in order."""

    inputs: tuple[Type, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]

    def variables(self) -> list[Type]:
        return [*self.inputs, *(t for line in self.lines for t in line.types)]

    def first_results(self) -> list[int]:
        """Return the index of the first result of each line."""
        counts = [len(line.types) for line in self.lines]
        return [len(self.inputs) + sum(counts[:k]) for k in range(len(counts))]

    def size(self) -> int:
        """Return the number of lines, with those of the functions inside."""
        return sum(1 + sum(body.size() for body in line.bodies) for line in self.lines)


def source(block: Block, name: str = "function", noisy: str = "") -> str:
    """Return the Python code of a block.

    **Arguments:** `noisy`: "" for the function itself; "results" for one that adds rounding errors
    by `near` and `near_norm` (see `rounding`) to results and to operands of lines with a backward
    error, and leaves results open by `doubtful`; "operands" to all operands of lines that round.
    """
    return "\n".join(_lines(block, name, noisy, _Counter()))


class _Counter:
    """Distinct numbers: of the rounding errors and of the functions."""

    def __init__(self):
        self.salt = self.body = 0

    def next_salt(self) -> int:
        self.salt += 1
        return self.salt

    def next_body(self) -> str:
        self.body += 1
        return f"f{self.body}"


def _lines(block: Block, name: str, noisy: str, counter: _Counter) -> Iterator[str]:
    yield f"def {name}({', '.join(f'v{k}' for k in range(len(block.inputs)))}):"
    types = block.variables()
    for line, first in zip(block.lines, block.first_results(), strict=True):
        names = {}
        for k, body in enumerate(line.bodies):
            names[f"b{k}"] = counter.next_body()
            yield from ("    " + text for text in _lines(body, names[f"b{k}"], noisy, counter))
        operands = [f"v{k}" for k in line.args]
        backward = line.backward or ("relative" if noisy == "operands" and line.rounding else "")
        if noisy and backward:
            add = "near_norm" if backward == "normwise" else "near"
            operands = [
                f"{add}({v}, {counter.next_salt()})" if types[k].inexact else v
                for k, v in zip(line.args, operands, strict=True)
            ]
        results = ", ".join(f"v{first + k}" for k in range(len(line.types)))
        results += "," if line.is_tuple and len(line.types) == 1 else ""
        yield f"    {results} = {line.code.format(*operands, **names)}"
        if noisy and line.rounding:
            for k, t in enumerate(line.types):
                if t.inexact:
                    v, salt = f"v{first + k}", counter.next_salt()
                    yield f"    {v} = near({v}, {salt}, {line.rounding})"
        if noisy and line.doubt:
            v, salt = f"v{first}", counter.next_salt()
            doubt = line.doubt.format(*(f"v{k}" for k in line.args), result=v)
            yield f"    {v} = doubtful({v}, {doubt}, {salt})"
    yield f"    return ({''.join(f'v{k}, ' for k in block.outputs)})"


def compile_function(text: str, name: str = "function", **names: Any) -> Callable[..., tuple]:
    """Return the function that the code defines."""
    scope: dict[str, Any] = {}
    exec(HEADER, scope)
    scope.update(names)
    exec(text, scope)
    return scope[name]


def as_function(block: Block, noisy: str = "", **names: Any) -> Callable[..., tuple]:
    """Return a block as a Python function."""
    return compile_function(source(block, noisy=noisy), **names)


def traced_line(line: Line, types: Sequence[Type]) -> tuple[jax.extend.core.ClosedJaxpr, bool]:
    """Trace one line alone, of operands of these types; return whether it is a tuple, too."""
    single = Block(
        tuple(types),
        (line._replace(args=tuple(range(len(types))), types=(Type((), "bool"),)),),
        (len(types),),
    )
    # The results are not known yet: a tuple of all is what is assigned to one name.
    function, structs = as_function(single), [t.struct() for t in types]
    closed, (shapes,) = jax.make_jaxpr(function, return_shape=True)(*structs)
    return closed, isinstance(shapes, tuple)


def types_of(avals: Iterable[Any]) -> tuple[Type, ...]:
    return tuple(Type(tuple(a.shape), str(a.dtype)) for a in avals)


def without_unused(block: Block) -> Block:
    """Drop the lines whose results are not used; inputs stay."""
    needed = set(block.outputs)
    kept = []
    for line, first in reversed(list(zip(block.lines, block.first_results(), strict=True))):
        if any(first + k in needed for k in range(len(line.types))):
            kept.append((line, first))
            needed.update(line.args)
    return renumber(block, list(reversed(kept)))


def renumber(block: Block, kept: Sequence[tuple[Line, int]]) -> Block:
    """Return the block with these lines, given with the old index of their first result."""
    new = {k: k for k in range(len(block.inputs))}
    lines, count = [], len(block.inputs)
    for line, first in kept:
        lines.append(line._replace(args=tuple(new[a] for a in line.args)))
        for k in range(len(line.types)):
            new[first + k] = count
            count += 1
    return Block(block.inputs, tuple(lines), tuple(new[k] for k in block.outputs))


def replace_variable(block: Block, index: int, other: int) -> Block:
    """Use variable `other`, which comes before, wherever `index` is used."""
    swap = lambda k: other if k == index else k  # noqa: E731
    lines = tuple(x._replace(args=tuple(map(swap, x.args))) for x in block.lines)
    return Block(block.inputs, lines, tuple(map(swap, block.outputs)))


def literal(array: Any) -> str:
    """Return an array as Python code, exactly."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        parts = np.ascontiguousarray(array).reshape(-1).view(array.real.dtype)
        return f"{literal(parts)}.view('{array.dtype}').reshape({array.shape})"
    text = repr(array.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    shape = f".reshape{array.shape}" if array.ndim > 1 or 0 in array.shape else ""
    return f"np.array({text}, '{array.dtype}'){shape}"
