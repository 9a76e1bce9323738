"""Random functions with arguments: all primitives that kernels know, of all dtypes."""

from typing import NamedTuple

import numpy as np

from . import control, elementwise, indexing, reductions, values
from .blocks import Block, Type, without_unused
from .writer import SHAPES, UnavailableError, Writer

FLAT = {**elementwise.OPERATIONS, **indexing.OPERATIONS, **reductions.OPERATIONS}
BATCHES = (1, 2, 3, 5, 7, 8, 9, 13, 17, 37)
MODES = ("jvp", "vjp", "jacobian", "hessian")


class Case(NamedTuple):
    """A function, its arguments, and the compared results.

    **Attributes:** `batched`, which arguments have a leading batch axis; `batch`, its length, or 0
    for none; `mode`, the derivative that is compared, or "".
    """

    block: Block
    arguments: tuple[np.ndarray, ...]
    batched: tuple[bool, ...]
    batch: int
    mode: str = ""


def write_lines(w: Writer, count: int) -> None:
    """Append random lines."""
    operations = dict(FLAT)
    if w.depth > 0:
        operations |= {op: 2.2 * weight for op, weight in control.OPERATIONS.items()}
    names, weights = list(operations), np.array(list(operations.values()))
    written = attempts = 0
    while written < count and attempts < 12 * count:
        attempts += 1
        operation = names[int(w.rng.choice(len(names), p=weights / weights.sum()))]
        written += write(w, operation)


def write(w: Writer, operation) -> bool:
    """Append the line of one operation, if its operands and JAX allow it."""
    before = len(w.lines)
    w.operands = []
    try:
        operation(w)
    except UnavailableError:
        w.operands = []
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        # JAX refuses some random combinations when it traces them; they are counted as `refused`.
        w.refused.append(f"{operation.__name__}: {type(error).__name__}: {error}")
        w.operands = []
    return len(w.lines) > before


def random_case(seed: int) -> tuple[Case, set[str]]:
    """Return a random case, and the names of its primitives."""
    rng = np.random.default_rng(seed)
    mode = MODES[rng.integers(len(MODES))] if rng.uniform() < 0.4 else ""
    inputs = [Type((), "int64"), Type((), "bool")] if rng.uniform() < 0.7 else []
    dtype = values.DTYPES[rng.integers(len(values.DTYPES))]
    for _ in range(rng.integers(1, 4)):
        other = values.DTYPES[rng.integers(len(values.DTYPES))]
        shape = SHAPES[rng.integers(len(SHAPES))]
        inputs.append(Type(shape, other if rng.uniform() < 0.4 else dtype))
    if mode and not any(t.dtype == "float64" for t in inputs):
        inputs.append(Type(SHAPES[rng.integers(len(SHAPES))], "float64"))
    # Control flow is nested two deep: a body of depth one may hold bodies without any.
    w = Writer(rng, inputs, 2, reverse=bool(mode))
    write_lines(w, int(rng.integers(2, 9)))
    results = range(len(inputs), len(w.types))
    if len(results) == 0:
        results = range(len(inputs))
    count = min(len(results), int(rng.integers(1, 5)))
    last = list(results)[-2:]
    outputs = sorted({*last, *(int(k) for k in rng.choice(list(results), count, replace=False))})
    block = without_unused(w.block(outputs))
    batch = BATCHES[rng.integers(len(BATCHES))]
    # Many tangents at one point.
    alone = mode == "jacobian" and rng.uniform() < 0.5
    batched = [bool(b) for b in rng.uniform(size=len(inputs)) < 0.75]
    batched[rng.integers(len(inputs))] = True
    special = 0.0 if mode else float(rng.choice([0.0, 0.0, 0.1, 0.4]))
    arguments = [
        values.array(rng, (batch, *t.shape) if b else t.shape, t.dtype, special)
        for t, b in zip(inputs, batched, strict=True)
    ]
    if alone:
        arguments = [x[0] if b else x for x, b in zip(arguments, batched, strict=True)]
        batch, batched = 0, [False] * len(inputs)
    return Case(block, tuple(arguments), tuple(batched), batch, mode), w.primitives
