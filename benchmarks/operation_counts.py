"""Lang's Table 1 for the right-hand sides of this package: scalar operations, counted in the jaxpr.

The jaxpr of `model.vector_field` is counted after dead-code elimination, one operation per element
of each result. The inertia is an input, so that operations on it alone count in every evaluation,
as in Lang's table. Slicing and joining arrays is free.
"""

import math
from collections import Counter
from typing import Any

import _common as common
import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.interpreters import partial_eval

import rigidjax as rj
from rigidjax.bodies import AxialGravityPotential

KINDS = {
    "add": "+",
    "sub": "+",
    "neg": "-",
    "mul": "*",
    "div": "/",
    "square": "square",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "sqrt": "sqrt",
    "select_n": "select",
    "lt": "compare",
    "gt": "compare",
    "ge": "compare",
    "le": "compare",
    "eq": "compare",
    "sign": "compare",
    "not": "logic",
    "and": "logic",
    "or": "logic",
}
FREE = {
    "broadcast_in_dim",
    "concatenate",
    "convert_element_type",
    "copy",
    "dynamic_slice",
    "gather",
    "iota",
    "reshape",
    "rev",
    "slice",
    "split",
    "squeeze",
    "stack",
    "stop_gradient",
    "transpose",
    "unstack",
}

# Lang, Table 1. His "-" are subtractions or changes of sign, so that only totals are comparable.
LANG = {
    "null space, quaternion": {"+": 5, "-": 7, "*": 18, "/": 6},
    "null space, directors": {"-": 12, "*": 24, "/": 3},
    "absolute, quaternion": {"+": 17, "-": 4, "*": 24, "/": 3, "square": 4},
    "absolute, directors": {"+": 16, "-": 1, "*": 10, "square": 9},
    "Euler angles": {"+": 2, "-": 5, "*": 14, "/": 5, "sin": 2, "cos": 2},
}


def lu_operations(n: int) -> int:
    """Return the operations of Gaussian elimination of n dense equations without pivoting, and of
    their solution.
    """
    elimination = sum(k + 2 * k * k for k in range(1, n))
    substitution = 2 * n * (n - 1) + n
    return elimination + substitution


def count(function: Any, *args: Any) -> Counter:
    """Return the scalar operations of a traced function, by kind."""
    traced = jax.make_jaxpr(function)(*args).jaxpr
    live, _ = partial_eval.dce_jaxpr(traced, [True] * len(traced.outvars))
    total: Counter = Counter()
    _count(live, total)
    return total


def _count(jaxpr: Jaxpr, total: Counter) -> None:
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inner = [v for v in equation.params.values() if isinstance(v, ClosedJaxpr | Jaxpr)]
        size = sum(math.prod(v.aval.shape) for v in equation.outvars)
        if name in FREE:
            continue
        if name in ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "remat"):
            for part in inner:
                _count(part.jaxpr if isinstance(part, ClosedJaxpr) else part, total)
        elif name == "integer_pow" and equation.params["y"] == 2:
            total["square"] += size
        elif name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            terms = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
            total["*"] += terms * size
            total["+"] += (terms - 1) * size
        elif name == "cross_product":
            total["*"] += 2 * size
            total["+"] += size
        elif name in KINDS:
            total[KINDS[name]] += size
        else:
            raise ValueError(f"The operation {name!r} is neither known as free nor as counted.")


def count_model(model: Any) -> Counter:
    """Return the operations of one evaluation of a right-hand side."""
    y = jnp.zeros(model.num_unknowns)
    return count(lambda model, t, y: model.vector_field(t, y), model, 0.0, y)


def lang_tangential(p, v, psi, inertia):
    r"""Evaluate Lang (40) as printed, $M^\sharp(p)\psi - |v|^2 p$ with $\psi$ given, in
    components.
    """
    p0, p1, p2, p3 = p
    s0, s1, s2, s3 = psi
    # -Im(conj(p) psi); the inertia is passed as 4 I, which includes the factor 1/4 of M#.
    c1 = (p1 * s0 - p0 * s1 + p2 * s3 - p3 * s2) / inertia[0]
    c2 = (p2 * s0 - p0 * s2 + p3 * s1 - p1 * s3) / inertia[1]
    c3 = (p3 * s0 - p0 * s3 + p1 * s2 - p2 * s1) / inertia[2]
    s = jnp.square(v[0]) + jnp.square(v[1]) + jnp.square(v[2]) + jnp.square(v[3])
    return (
        p1 * c1 + p2 * c2 + p3 * c3 - s * p0,
        p3 * c2 - p0 * c1 - p2 * c3 - s * p1,
        p1 * c3 - p0 * c2 - p3 * c1 - s * p2,
        p2 * c1 - p0 * c3 - p1 * c2 - s * p3,
    )


def psi_quaternion(p, v, inertia):
    r"""Evaluate $\psi = 8\,Q(v) I Q(v)^T p$, Lang (33) without applied moment, in components.

    The inertia is passed as 8 I, which includes the factor 8.
    """
    p0, p1, p2, p3 = p
    v0, v1, v2, v3 = v
    h1 = (v0 * p1 - v1 * p0 + v3 * p2 - v2 * p3) * inertia[0]
    h2 = (v0 * p2 - v2 * p0 + v1 * p3 - v3 * p1) * inertia[1]
    h3 = (v0 * p3 - v3 * p0 + v2 * p1 - v1 * p2) * inertia[2]
    return (
        -(v1 * h1) - v2 * h2 - v3 * h3,
        v0 * h1 + v2 * h3 - v3 * h2,
        v0 * h2 + v3 * h1 - v1 * h3,
        v0 * h3 + v1 * h2 - v2 * h1,
    )


def on_the_manifold(p, v, inertia):
    r"""Evaluate the shortest known form, for $|p| = 1$ and $\langle p, v\rangle = 0$ only.

    $\ddot p = p\,(-|h|^2, \dot\Omega/2)$ with $h = \Im(\bar p v) = \Omega/2$; signs are chosen to
    avoid negations.
    """
    p0, p1, p2, p3 = p
    v0, v1, v2, v3 = v
    h1 = p0 * v1 - p1 * v0 + p3 * v2 - p2 * v3
    h2 = p0 * v2 - p2 * v0 + p1 * v3 - p3 * v1
    h3 = p0 * v3 - p3 * v0 + p2 * v1 - p1 * v2
    d1, d2 = h1 + h1, h2 + h2
    c1 = (inertia[2] - inertia[1]) * d2 * h3 / inertia[0]
    c2 = (inertia[0] - inertia[2]) * d1 * h3 / inertia[1]
    c3 = (inertia[1] - inertia[0]) * d1 * h2 / inertia[2]
    s = h1 * h1 + h2 * h2 + h3 * h3
    return (
        p1 * c1 + p2 * c2 + p3 * c3 - s * p0,
        p3 * c2 - p0 * c1 - p2 * c3 - s * p1,
        p1 * c3 - p0 * c2 - p3 * c1 - s * p2,
        p2 * c1 - p0 * c3 - p1 * c2 - s * p3,
    )


def rows(smoke: bool) -> list[dict[str, Any]]:
    """Return one row per formulation (free and heavy body) and per variant of the quaternion
    form.
    """
    inertia = jnp.array([50.0, 42.0, 10.0])
    free = rj.FixedPointBody(inertia)
    heavy = rj.FixedPointBody(inertia, AxialGravityPotential(11.09 * 9.81))
    out = []

    def add(case, counts, **fields):
        counts = {kind: int(n) for kind, n in sorted(counts.items())}
        out.append({"case": case, "total": sum(counts.values()), "counts": counts, **fields})

    for name, make in common.FORMULATIONS.items():
        counts = count_model(make(free))
        lang = sum(LANG[name].values())
        lu = lu_operations(15) if name == "absolute, directors" else 0
        add(name, counts, body="free", lang=lang, lang_counts=LANG[name], lang_lu=lu)
    if smoke:
        return out
    for name, make in common.FORMULATIONS.items():
        add(name, count_model(make(heavy)), body="heavy top")

    p, v = tuple(jnp.ones(4)), tuple(jnp.ones(4))
    I = tuple(inertia)
    add("Lang (40), psi given", count(lang_tangential, p, v, p, I), body="free")
    add("psi of Lang (33)", count(psi_quaternion, p, v, I), body="free")
    add("shortest on the manifold", count(on_the_manifold, p, v, I), body="free")
    for rotation in (
        rj.RotationVector(),
        rj.RodriguesParameters(),
        rj.ConformalRotationVector(),
        rj.LinearParameters(),
        rj.EulerAngles("ZYX"),
    ):
        name = (
            f"Euler angles {rotation.sequence}"
            if isinstance(rotation, rj.EulerAngles)
            else (type(rotation).__name__)
        )
        model = rj.NullSpace(free, rotation, recharting=False)
        add(f"null space, {name}", count_model(model), body="free")
    return out


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    common.write("operation_counts", rows(options.smoke), options.smoke)
