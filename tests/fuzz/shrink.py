"""Makes a failing case small, and writes it as a program of its own."""

import time
from collections.abc import Iterator

import jax
import numpy as np

from . import program
from .blocks import (
    HEADER,
    Block,
    Type,
    as_function,
    literal,
    replace_variable,
    source,
    without_unused,
)
from .generate import Case
from .jaxprs import Failure, batch_of, check, member

SECONDS = 200.0


def shrink(case: Case, failure: Failure, seed: int, seconds: float = SECONDS) -> Case:
    """Return a small case with the same kind of failure."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in _smaller(case, failure):
            if time.monotonic() > end:
                break
            if (found := _same_failure(smaller, failure, seed)) is not None:
                case, failure, progress = smaller, found, True
                break
    return case


def _same_failure(case: Case, failure: Failure, seed: int) -> Failure | None:
    try:
        form = failure.form if case.batch else "batch"
        found = check(case, seed, (form,)).failure
    except Exception:
        # The smaller function is one that JAX refuses.
        return None
    return found if found is not None and found.kind == failure.kind else None


def _smaller(case: Case, failure: Failure) -> Iterator[Case]:
    block = case.block
    if len(block.outputs) > 1 and case.mode == "" and failure.output >= 0:
        yield _with_block(case, block._replace(outputs=(block.outputs[failure.output],)))
    if len(block.outputs) > 1:
        for k in block.outputs:
            yield _with_block(case, block._replace(outputs=(k,)))
    if case.mode:
        yield case._replace(mode="")
    if case.batch:
        k = max(failure.member, 0)
        none = (False,) * len(case.batched)
        yield case._replace(batch=0, batched=none, arguments=tuple(member(case, k)))
    if case.batch > 1:
        yield _one_member(case, max(failure.member, 0))
        yield _first_members(case, (case.batch + 1) // 2)
    for smaller in _shorter(block):
        yield _with_block(case, smaller)
    yield from _cut(case)


def _with_block(case: Case, block: Block) -> Case:
    """Return the case with another block, without inputs that are not used."""
    block = without_unused(block)
    used = {k for line in block.lines for k in line.args} | set(block.outputs)
    keep = [k for k in range(len(block.inputs)) if k in used]
    if not keep or (not any(case.batched[k] for k in keep) and case.batch):
        keep = sorted({*keep, int(np.argmax(case.batched))})
    new = {k: n for n, k in enumerate(keep)}
    shift = len(block.inputs) - len(keep)
    number = lambda k: new[k] if k < len(block.inputs) else k - shift  # noqa: E731
    lines = tuple(x._replace(args=tuple(map(number, x.args))) for x in block.lines)
    block = Block(tuple(block.inputs[k] for k in keep), lines, tuple(map(number, block.outputs)))
    pick = lambda items: tuple(items[k] for k in keep)  # noqa: E731
    return case._replace(block=block, arguments=pick(case.arguments), batched=pick(case.batched))


def _one_member(case: Case, k: int) -> Case:
    arguments = (
        x[k : k + 1] if b else x for x, b in zip(case.arguments, case.batched, strict=True)
    )
    return case._replace(batch=1, arguments=tuple(arguments))


def _first_members(case: Case, count: int) -> Case:
    arguments = (x[:count] if b else x for x, b in zip(case.arguments, case.batched, strict=True))
    return case._replace(batch=count, arguments=tuple(arguments))


def _shorter(block: Block) -> Iterator[Block]:
    """Return blocks in which a result is an earlier variable, here or in a function inside."""
    types = block.variables()
    for line, first in reversed(list(zip(block.lines, block.first_results(), strict=True))):
        for k in range(first, first + len(line.types)):
            fits = [j for j in range(first) if types[j] == types[k]]
            for other in sorted({*fits[:1], *(j for j in line.args if j in fits)}):
                yield replace_variable(block, k, other)
    for n, line in enumerate(block.lines):
        for b, body in enumerate(line.bodies):
            for smaller in _shorter(body):
                bodies = (*line.bodies[:b], without_unused(smaller), *line.bodies[b + 1 :])
                lines = list(block.lines)
                lines[n] = line._replace(bodies=bodies)
                yield block._replace(lines=tuple(lines))


def _cut(case: Case) -> Iterator[Case]:
    """Return cases in which the result of a line is an argument: XLA's value of it."""
    block = case.block
    if not block.lines:
        return
    types = block.variables()
    everything = block._replace(outputs=tuple(range(len(types))))
    values = jax.jit(batch_of(as_function(everything), case))(*case.arguments)
    inputs = len(block.inputs)
    for k in reversed(range(inputs, len(types))):
        if k in block.outputs and len(block.outputs) == 1:
            continue
        # The new input stands behind the others: all results move up by one.
        up = lambda j: j if j < inputs else j + 1  # noqa: E731
        moved = Block(
            (*block.inputs, Type(*types[k])),
            tuple(x._replace(args=tuple(map(up, x.args))) for x in block.lines),
            tuple(map(up, block.outputs)),
        )
        cut = replace_variable(moved, up(k), inputs)
        yield _with_block(
            case._replace(
                block=cut,
                arguments=(*case.arguments, np.asarray(values[k])),
                batched=(*case.batched, bool(case.batch)),
            ),
            cut,
        )


TEMPLATE = """
{source}


FORM, MODE = {form!r}, {mode!r}
BATCHED = {batched}
ARGUMENTS = [
{arguments}
]


def results(form):
    return jax.tree.leaves(jax.jit(in_form(form, function, MODE, BATCHED))(*ARGUMENTS))


wrong = False
for kernel, xla in zip(results(FORM), results("xla"), strict=True):
    kernel, xla = np.asarray(kernel), np.asarray(xla)
    print("kernel:", kernel, "XLA:", xla, sep="\\n")
    exact = xla.dtype.kind in "biu"
    allowed = 0.0 if exact else 1e4 * np.finfo(xla.dtype).eps
    wrong |= not np.allclose(kernel, xla, rtol=allowed, atol=0.0, equal_nan=True)
sys.exit(wrong)
"""


def standalone(case: Case, failure: Failure, seed: int) -> str:
    """Return a Python program that shows the failure."""
    form, arguments = failure.form, case.arguments
    if form == "member" and case.batch:
        arguments = member(case, max(failure.member, 0))
    header = f"{HEADER}\nfrom tests.fuzz.jaxprs import in_form\n"
    start = program.start(failure.message, "jaxpr", seed, "the results differ", header)
    return start + TEMPLATE.format(
        source=source(case.block),
        form=form,
        mode=case.mode,
        batched=case.batched if form != "member" else (False,) * len(case.batched),
        arguments="\n".join(f"    {literal(x)}," for x in arguments),
    )
