"""Operations over axes, products, factorisations."""

import numpy as np

from .elementwise import OVERFLOW
from .writer import UnavailableError, Writer

# Backward stable algorithms: n^2 roundings of the size of the largest element.
BOUND = "200 * jnp.finfo({x}.dtype).eps * jnp.max(jnp.abs({x})) + 1e3 * jnp.finfo({x}.dtype).tiny"

# The order of the operands decides whether a partial result is beyond the range of numbers.
HUGE_SUM = "~jnp.isfinite(2 * jnp.sum(jnp.abs(jnp.where(jnp.isfinite({x}), {x}, 0))))"
EXTREME_PRODUCT = (
    "(~jnp.isfinite(jnp.prod(jnp.maximum(jnp.abs(jnp.where(jnp.isfinite({x}), {x}, 1)), 1)))"
    " | (jnp.prod(jnp.minimum(jnp.abs(jnp.where({x} == 0, 1, {x})), 1))"
    " < jnp.finfo({x}.dtype).tiny))"
)


def doubt_of_order(name: str, kind: str, x: str) -> str:
    """Return the condition under which the order of a sum or product decides its result."""
    if kind not in "fc":
        return ""
    if name in ("prod", "cumprod"):
        product = EXTREME_PRODUCT.format(x=x)
        return f"({product} | {OVERFLOW})" if kind == "c" else product
    return HUGE_SUM.format(x=x) if name in ("sum", "mean", "var", "cumsum") else ""


def reduction(w: Writer) -> None:
    x, t = w.variable(where=lambda t: t.shape and 0 not in t.shape)
    axis = w.choose([None, *range(len(t.shape))])
    kind = np.dtype(t.dtype).kind
    names = {
        "b": ["any", "all", "sum"], "c": ["sum", "prod", "mean"],
        "f": ["sum", "prod", "max", "min", "argmax", "argmin", "mean", "var", "any"],
        "i": ["sum", "prod", "max", "min", "argmax", "argmin"],
        "u": ["sum", "prod", "max", "min", "argmax", "argmin"],
    }[kind]  # fmt: skip
    name = w.choose(names)
    rounds = name in ("sum", "prod", "mean", "var") and kind in "fc"
    code, doubt = f"jnp.{name}({x}, {axis})", doubt_of_order(name, kind, x)
    w.append(code, 4.0 if rounds else 0.0, "relative" if rounds else "", doubt=doubt)


def bitwise_reduction(w: Writer) -> None:
    x, t = w.variable("iu", lambda t: t.shape and 0 not in t.shape)
    operation, start = w.choose([
        ("lax.bitwise_xor", 0), ("lax.bitwise_and", -1), ("lax.bitwise_or", 0), ("lax.mul", 1),
    ])  # fmt: skip
    start = f"np.array({start}).astype('{t.dtype}')"
    w.append(f"lax.reduce({x}, {start}, {operation}, (0,))")


def reduction_by_function(w: Writer) -> None:
    """`lax.reduce` by an operation that XLA has no name for."""
    x, t = w.variable("f", lambda t: t.shape and 0 not in t.shape)
    # Products of 1 + x: none becomes so small that the order of the factors decides digits.
    size = min(0.1, 3 / t.shape[0])
    w.append(
        f"lax.reduce({size} * jnp.sin({x}), np.{t.dtype}(0), lambda a, b: a + b + a * b, (0,))",
        32.0, "relative",
    )  # fmt: skip


def cumulative(w: Writer) -> None:
    x, t = w.variable("fiuc", lambda t: t.shape and 0 not in t.shape)
    kind = np.dtype(t.dtype).kind
    names = ["cumsum", "cumprod"] + (["cummax", "cummin"] if kind != "c" else [])
    name = w.choose(names + (["cumlogsumexp"] if kind == "f" else []))
    axis = w.integer(0, len(t.shape) - 1)
    rounds = kind in "fc" and name not in ("cummax", "cummin")
    code = f"lax.{name}({x}, axis={axis}, reverse={w.chance(0.3)})"
    doubt = doubt_of_order(name, kind, x)
    w.append(code, 8.0 if rounds else 0.0, "relative" if rounds else "", doubt=doubt)


def product(w: Writer) -> None:
    x, t = w.variable("fiuc", lambda t: t.shape and 0 not in t.shape)
    n = t.shape[-1]
    fits = lambda o: o.dtype == t.dtype and o.shape and o.shape[max(len(o.shape) - 2, 0)] == n  # noqa: E731
    y, _ = w.variable(where=fits)
    doubt = OVERFLOW if np.dtype(t.dtype).kind in "fc" else ""
    w.append(f"jnp.matmul({x}, {y})", 8.0, "relative", doubt=doubt)


def einsum(w: Writer) -> None:
    x, t = w.variable("fc", lambda t: len(t.shape) in (1, 2) and 0 not in t.shape)
    y = w.like(t)
    letters = "ij"[: len(t.shape)]
    formula = w.choose([f"{letters},{letters}->", f"{letters},{letters}->{letters[::-1]}"])
    if len(t.shape) == 1:
        formula = w.choose([formula, "i,j->ij"])
    w.append(f"jnp.einsum('{formula}', {x}, {y})", 8.0, "relative", doubt=OVERFLOW)


def of_this_package(w: Writer) -> None:
    """Cross products, short sums, the largest of a batch."""
    kind = w.integer(0, 2)
    if kind == 0:
        x, t = w.variable("f", lambda t: t.shape[-1:] == (3,))
        w.append(f"cross_product.cross({x}, {w.like(t)})", 8.0, "relative", doubt=OVERFLOW)
    elif kind == 1:
        x, t = w.variable("fc", lambda t: t.shape and 0 not in t.shape)
        axis = w.integer(0, len(t.shape) - 1)
        code = f"sums.short_sum({x}, {w.like(t)}, axis={axis})"
        w.append(code, 8.0, "relative", doubt=OVERFLOW)
    else:
        k, _ = w.variable("iu", lambda t: t.shape == ())
        w.append(f"lockstep.lockstep_max(jnp.int64({k})) * 0 + 1")


def _square(w: Writer, kinds: str = "f", may_be_singular: bool = True) -> str:
    """Return a square matrix."""
    x, t = w.variable(kinds, lambda t: len(t.shape) == 2 and t.shape[0] == t.shape[1] > 0)
    # Rounding decides whether the last pivot of a singular matrix is zero, and so whether
    # derivatives of its factors are numbers.
    special = w.integer(0, 9) if may_be_singular and not w.reverse else 9
    n = t.shape[0]
    code = {
        0: f"jnp.outer({x}[0], {x}[:, 0])",
        1: f"{x}.at[{w.integer(0, n - 1)}].set(0)",
        2: f"{x}.at[0].set({x}[{n - 1}])",
    }.get(special)
    if code is not None:
        # A line of its own: errors of factors are as if this matrix were another one.
        result = w.append(code, 4.0, "relative")
        if result is None:
            raise UnavailableError
        return w.operand(result[0])
    if special == 3 and t.dtype in ("float64", "complex128"):
        return f"({x} * {w.choose(['1e-170', '1e160', '1e-300'])})"
    if special == 4:
        return f"jnp.zeros_like({x})"
    return f"({x} + {float(n)} * jnp.eye({n}, dtype={x}.dtype))"


def factorisation(w: Writer) -> None:
    """Return a condition on factors of any matrix: true, or a matrix that is not finite."""
    A = _square(w)
    small = "jnp.max(jnp.abs({rest})) <= " + BOUND.format(x="A")
    unit = "jnp.max(jnp.abs(q.T @ q - jnp.eye(len(q)))) <= 200 * jnp.finfo(A.dtype).eps"
    code = w.choose([
        "(lambda A: (lambda q, r: (" + small.format(rest="q @ r - A") + ", " + unit
        + "))(*jnp.linalg.qr(A)))",
        "(lambda A: (lambda p, l, u: (" + small.format(rest="p @ l @ u - A")
        + "))(*jax.scipy.linalg.lu(A)))",
        "(lambda A: (lambda q, s, r: (" + small.format(rest="(q * s) @ r - A") + ", " + unit
        + "))(*jnp.linalg.svd(A)))",
        "(lambda A: (lambda e, q: (" + small.format(rest="(q * e) @ q.T - A") + ", " + unit
        + "))(*jnp.linalg.eigh(A)))(0.5 * (A + A.T))",
    ])  # fmt: skip
    if "svd" in code or "eigh" in code:
        # LAPACK's iterations may not end for a matrix that is not finite, or have any result.
        A = f"(lambda A: jnp.where(jnp.all(jnp.isfinite(A)), A, 0))({A})"
    if "eigh" in code:
        code = code.replace("(0.5 * (A + A.T))", "")
        A = f"(lambda A: 0.5 * (A + A.T))({A})"
    w.append(f"{code}({A})")


def linear_algebra(w: Writer) -> None:
    kind = w.integer(0, 9)
    # Solutions for singular matrices, and logarithms of their determinants, are those of roundings.
    A = _square(w, "fc" if kind in (0, 1, 2) else "f", may_be_singular=kind not in (0, 1, 3, 9))
    inverse = w.choose(["linalg.inverse", "mass_matrix.inverse_root"])
    spd = f"(lambda A: A @ A.T + 0.5 * jnp.eye(len(A), dtype=A.dtype))({A})"
    code = [
        f"linalg.inverse({A})", f"jnp.linalg.inv({A})", f"jnp.linalg.det({A})",
        f"jnp.linalg.slogdet({A})[1]", f"jnp.linalg.cholesky({w.choose([spd, A])})",
        f"jnp.linalg.svd({A}, compute_uv=False)", f"jnp.linalg.eigvalsh({A})",
        f"jnp.abs(jnp.diag(jnp.linalg.qr({A})[1]))", f"{inverse}({spd})",
        f"(lambda A: jnp.linalg.solve(A, jnp.sin(A[0])))({A})",
    ][kind]  # fmt: skip
    w.append(code, 16.0, "normwise", doubt=OVERFLOW)


def triangular(w: Writer) -> None:
    x, t = w.variable("f", lambda t: len(t.shape) == 2 and t.shape[0] == t.shape[1] > 0)
    b = w.like(t)
    lower, transposed = w.chance(0.5), w.choose([0, 1])
    side, unit = w.chance(0.5), w.chance(0.3)
    w.append(
        f"lax.linalg.triangular_solve({x}, {b}, left_side={side}, lower={lower}, "
        f"transpose_a={bool(transposed)}, unit_diagonal={unit})",
        16.0, "relative", doubt=OVERFLOW,
    )  # fmt: skip


def tridiagonal(w: Writer) -> None:
    x, t = w.variable("f", lambda t: len(t.shape) == 1 and 3 <= t.shape[0] <= 5)
    y = w.like(t)
    w.append(
        f"lax.linalg.tridiagonal_solve(jnp.sin({x}).at[0].set(0), 3.0 + jnp.sin({y}), "
        f"jnp.cos({x}).at[-1].set(0), {y}[:, None])",
        16.0, "relative", doubt=OVERFLOW,
    )  # fmt: skip


OPERATIONS = {
    reduction: 3, bitwise_reduction: 0.5, reduction_by_function: 0.3, cumulative: 1,
    product: 2, einsum: 1, of_this_package: 1, factorisation: 0.7,
    linear_algebra: 1.2, triangular: 0.4, tridiagonal: 0.3,
}  # fmt: skip
