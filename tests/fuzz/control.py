"""Control flow: branches, loops, scans and batches around random blocks."""

from collections.abc import Sequence

from .blocks import Block, Type
from .elementwise import OVERFLOW
from .writer import UnavailableError, Writer

INT = Type((), "int64")


def _operands(w: Writer, most: int = 3) -> tuple[list[str], list[Type]]:
    """Return a few variables: placeholders and types."""
    chosen = [w.variable() for _ in range(w.integer(1, most))]
    return [text for text, _ in chosen], [t for _, t in chosen]


def _body(w: Writer, inputs: Sequence[Type], wanted: Sequence[Type] | None = None) -> Block:
    """Return a block of a few lines; without `wanted` types its results are the last variables."""
    from .generate import write_lines

    inner = Writer(w.rng, inputs, w.depth - 1, w.reverse)
    write_lines(inner, w.integer(1, 4))
    w.primitives |= inner.primitives
    if wanted is None:
        count = min(len(inner.types), w.integer(1, 2))
        return inner.block(range(len(inner.types) - count, len(inner.types)))
    outputs = []
    for t in wanted:
        fits = [k for k, other in enumerate(inner.types) if other == t]
        # The latest, or an input: then something is passed on, perhaps at another's position.
        outputs.append(fits[-1] if w.chance(0.8) else w.choose(fits))
    return inner.block(outputs)


def cond(w: Writer) -> None:
    p, _ = w.variable("b", lambda t: t.shape == ())
    operands, types = _operands(w)
    bodies = [_body(w, types, types) for _ in range(2)]
    w.append(f"lax.cond({p}, {{b0}}, {{b1}}, {', '.join(operands)})", bodies=bodies)


def switch(w: Writer) -> None:
    k, _ = w.variable("iu", lambda t: t.shape == ())
    operands, types = _operands(w)
    bodies = [_body(w, types, types) for _ in range(3)]
    w.append(
        f"lax.switch(jnp.int32({k}) % 5 - 1, [{{b0}}, {{b1}}, {{b2}}], {', '.join(operands)})",
        bodies=bodies,
    )


def while_loop(w: Writer) -> None:
    if w.reverse:
        raise UnavailableError
    k, _ = w.variable("iu", lambda t: t.shape == ())
    operands, types = _operands(w)
    extra, extra_types = _operands(w, 1)
    body = _body(w, [INT, *types, *extra_types], types)
    start = f"(jnp.zeros((), int), ({', '.join(operands)},))"
    going = f"s[0] < jnp.int64({k}) % 5"
    if types[0].dtype.startswith("float"):
        going = w.choose([going, f"({going}) | ((s[0] < 4) & (jnp.sum(s[1][0]) > 0.3))"])
    step = f"lambda s: (s[0] + 1, {{b0}}(s[0], *s[1], {extra[0]}))"
    w.append(f"lax.while_loop(lambda s: {going}, {step}, {start})[1]", bodies=[body])


def fori_loop(w: Writer) -> None:
    operands, types = _operands(w)
    extra, extra_types = _operands(w, 1)
    body = _body(w, [INT, *types, *extra_types], types)
    bound = w.choose(["2", "3", "9"])
    if not w.reverse and w.chance(0.5):
        k, _ = w.variable("iu", lambda t: t.shape == ())
        bound = f"jnp.int64({k}) % 6"
    w.append(
        f"lax.fori_loop(0, {bound}, lambda k, c: {{b0}}(jnp.int64(k), *c, {extra[0]}), "
        f"({', '.join(operands)},))",
        bodies=[body],
    )


def scan(w: Writer) -> None:
    operands, types = _operands(w, 2)
    x, t = w.variable(where=lambda t: t.shape and 0 < t.shape[0] <= 12)
    extra, extra_types = _operands(w, 1)
    row = t._replace(shape=t.shape[1:])
    output = w.choose(types)
    body = _body(w, [*types, row, *extra_types], [*types, output])
    n = len(types)
    options = w.choose(["", ", reverse=True", ", unroll=2"])
    w.append(
        "(lambda c, y: (*c, y))(*lax.scan("
        f"lambda c, x: (lambda r: (r[:{n}], r[{n}]))({{b0}}(*c, x, {extra[0]})), "
        f"({', '.join(operands)},), {x}{options}))",
        bodies=[body],
    )


def batch(w: Writer) -> None:
    """`jax.vmap` or `lax.map` of a function of rows."""
    x, t = w.variable(where=lambda t: t.shape and 0 < t.shape[0] <= 12)
    other, other_type = w.variable()
    body = _body(w, [t._replace(shape=t.shape[1:]), other_type])
    if w.chance(0.7):
        w.append(f"jax.vmap({{b0}}, (0, None))({x}, {other})", bodies=[body])
    else:
        w.append(f"lax.map(lambda x: {{b0}}(x, {other}), {x})", bodies=[body])


def call(w: Writer) -> None:
    operands, types = _operands(w)
    body = _body(w, types)
    wrap = w.choose(["jax.jit", "jax.checkpoint", "native.jit"])
    w.append(f"{wrap}({{b0}})({', '.join(operands)})", bodies=[body])


def associative_scan(w: Writer) -> None:
    x, _ = w.variable("f", lambda t: t.shape and 0 < t.shape[0] <= 12)
    code = f"lax.associative_scan(lambda a, b: a * b + a, {x})"
    w.append(code, 32.0, "relative", doubt=OVERFLOW)


OPERATIONS = {
    cond: 2, switch: 1.5, while_loop: 2, fori_loop: 2, scan: 2.5, batch: 1.5, call: 1,
    associative_scan: 0.2,
}  # fmt: skip
