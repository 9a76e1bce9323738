r"""Inertia in every form, and what makes one physical.

Two forms are used below for the inertia about one point: principal moments (3,) in principal axes,
or a symmetric tensor (3, 3). Functions that take either return the form that they got. All in
kg m^2. The Euler tensor $E = \int x x^T\,dm = \frac12 \mathrm{tr}(I)\,1 - I$ of a mass
distribution is positive semidefinite, and every positive semidefinite $E$ belongs to one. The
forms that include mass and centre of mass are in `mass_properties.py`.
"""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..checks import (
    ArrayInput,
    as_leaf,
    check,
    check_all,
    finite_leaf,
    finite_rule,
    float_array,
    is_traced,
)
from .euler_equations import symmetric_components


def euler_tensor(inertia: Float[Array, "3"] | Float[Array, "3 3"]) -> Array:
    r"""Euler tensor $E = \frac12 \mathrm{tr}(I)\,1 - I$ of an inertia.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2.
    **Returns:** the same shape: its principal values (3,) in the order of the moments, or (3, 3).
    **Source:** Lang (18).
    """
    if inertia.ndim == 1:
        i1, i2, i3 = inertia[0], inertia[1], inertia[2]
        # Not sum/2 - I: the difference of two large moments is exact where the result is small.
        return 0.5 * jnp.stack([i2 - i1 + i3, i3 - i2 + i1, i1 - i3 + i2])
    half_trace = 0.5 * (inertia[0, 0] + inertia[1, 1] + inertia[2, 2])
    return half_trace * jnp.eye(3, dtype=inertia.dtype) - inertia


def inertia_from_euler_tensor(euler: Float[Array, "3"] | Float[Array, "3 3"]) -> Array:
    r"""Inertia $I = \mathrm{tr}(E)\,1 - E$ of an Euler tensor.

    **Arguments:** `euler`, principal values (3,) or tensor (3, 3), kg m^2.
    **Returns:** the same shape, kg m^2.
    **Source:** Lang (18).
    """
    if euler.ndim == 1:
        e1, e2, e3 = euler[0], euler[1], euler[2]
        return jnp.stack([e2 + e3, e3 + e1, e1 + e2])
    trace = euler[0, 0] + euler[1, 1] + euler[2, 2]
    return trace * jnp.eye(3, dtype=euler.dtype) - euler


def inertia_tensor(inertia: Float[Array, "3"] | Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """Symmetric tensor (3, 3) of principal moments (3,); a tensor is returned as it is."""
    return jnp.diag(inertia) if inertia.ndim == 1 else inertia


def rotate_inertia(
    inertia: Float[Array, "3"] | Float[Array, "3 3"], R: Float[Array, "3 3"]
) -> Float[Array, "3 3"]:
    r"""Inertia in other axes, $R I R^T$.

    **Arguments:** `inertia`, (3,) or (3, 3), in the old axes; `R`, (3, 3), old to new components.
    **Returns:** tensor (3, 3) in the new axes.
    """
    return R @ inertia_tensor(inertia) @ R.T


def shift_inertia(
    inertia: Float[Array, "3"] | Float[Array, "3 3"],
    mass: Float[Array, ""],
    offset: Float[Array, "3"],
) -> Float[Array, "3 3"]:
    r"""Inertia about another point than the centre of mass, $I + m(|d|^2 1 - d d^T)$.

    A negative `mass` goes the other way, from any point to the centre of mass.

    **Arguments:** `inertia` about the centre of mass, (3,) or (3, 3), kg m^2; `mass`, kg; `offset`,
    $d$ between the centre of mass and the point, (3,) m, in the axes of the inertia.
    **Returns:** tensor (3, 3), kg m^2.
    """
    square = offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]
    outer = offset[:, None] * offset[None, :]
    identity = jnp.eye(3, dtype=offset.dtype)
    return inertia_tensor(inertia) + mass * (square * identity - outer)


def principal_axes(
    inertia: Float[Array, "3 3"],
) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Principal moments in ascending order, and the rotation from principal to given axes.

    The axes are not unique, and have no derivative, where moments are equal.

    **Arguments:** `inertia`, (3, 3), kg m^2.
    **Returns:** moments (3,), and a right-handed matrix (3, 3) whose columns are the axes:
    `rotate_inertia(moments, axes)` is `inertia`.
    """
    moments, axes = jnp.linalg.eigh(inertia)
    last = jnp.cross(axes[:, 0], axes[:, 1])
    return moments, jnp.stack([axes[:, 0], axes[:, 1], last], axis=1)


def principal_euler_values(
    inertia: Float[Array, "3"] | Float[Array, "3 3"],
) -> Float[Array, "3"]:
    r"""Principal values $E_1, E_2, E_3$ of the Euler tensor, none negative for a physical body.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2.
    **Returns:** (3,), in the order of the principal moments, or ascending for a tensor (whose
    eigenvalues have no derivative where they are equal).
    """
    if inertia.ndim == 1:
        return euler_tensor(inertia)
    return jnp.linalg.eigvalsh(euler_tensor(inertia))


class NearestPhysical(NamedTuple):
    """An inertia that some mass distribution has, and whether it had to be moved there."""

    inertia: Array
    moved: Bool[Array, ""]


def nearest_physical(inertia: ArrayInput, margin: ArrayInput = 0.0) -> NearestPhysical:
    r"""The physical inertia closest to a given one in the Frobenius norm.

    Minimises $|\Delta I|^2 = |\Delta E|^2 + \mathrm{tr}(\Delta E)^2$ with principal Euler values
    $E_i + \Delta E_i \ge$ `margin` $\cdot |\mathrm{tr} E|$, in closed form: each set of active
    bounds has one candidate, and the best admissible one is the answer. Principal axes stay. Exact
    derivatives for principal moments; for a tensor with equal moments only where it is not moved.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `margin`, smallest admissible
    $E_i/|\mathrm{tr} E|$, below 1/3.
    **Returns:** the inertia in the same form, and `moved`.
    **Errors:** `ValueError` for a wrong shape or margin.
    """
    name = "nearest_physical(inertia=...)"
    value = finite_leaf(inertia, name, (3,), (3, 3))
    bound = as_leaf(
        check(
            float_array(margin, "nearest_physical(margin=...)", ()),
            lambda m: (m >= 0) & (m < 1 / 3),
            "`nearest_physical(margin=...)` must be at least 0 and below 1/3.",
        )
    ).astype(value.dtype)
    if value.ndim == 1:
        return NearestPhysical(*_nearest_principal(value, bound))
    tensor = 0.5 * (value + value.T)
    _, moved = _nearest_principal(jnp.linalg.eigvalsh(tensor), bound)
    # The second `where` keeps the derivative of `eigh` away from tensors that stay.
    distinct = jnp.diag(jnp.arange(1, 4, dtype=tensor.dtype))
    moments, axes = principal_axes(jnp.where(moved, tensor, distinct))
    nearest, _ = _nearest_principal(moments, bound)
    return NearestPhysical(jnp.where(moved, rotate_inertia(nearest, axes), tensor), moved)


def _nearest_principal(moments, margin):
    euler = euler_tensor(moments)
    bound = margin * jnp.abs(euler[0] + euler[1] + euler[2])
    gap = bound - euler
    active = jnp.array(list(itertools.product([False, True], repeat=3)))
    # Free components all move by -trace; the active ones by their gap.
    trace = jnp.where(active, gap[None], 0.0).sum(axis=1) / (
        4 - active.sum(axis=1, dtype=gap.dtype)
    )
    change = jnp.where(active, gap[None], -trace[:, None])
    cost = (change**2).sum(axis=1) + change.sum(axis=1) ** 2
    admissible = jnp.where(active, True, change >= gap[None]).all(axis=1)
    best = jnp.argmin(jnp.where(admissible, cost, jnp.inf))
    moved = (gap > 0).any()
    nearest = inertia_from_euler_tensor(jnp.where(active[best], bound, euler + change[best]))
    return jnp.where(moved, nearest, moments), moved


def checked_inertia(
    inertia: Any, argument: str, physical: bool = True, regular: bool = False
) -> Array:
    r"""An inertia whose shape, symmetry and (unless `physical=False`) Euler tensor are checked.

    The Euler tensor is admitted down to $-32$ rounding errors of its trace, because a flat body
    or a thin rod has principal Euler values that are exactly zero.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `argument`, its name in messages; `regular`,
    whether every moment must be positive so that it can be inverted.
    **Returns:** the array, a tensor made symmetric to the last bit.
    **Errors:** `ValueError`, or a runtime error if traced, that names the principal Euler value.
    """
    value = float_array(inertia, argument, (3,), (3, 3))
    singular = (
        f"`{argument}` must be positive (definite): without inertia the rotation has no equation."
    )
    if value.ndim == 1:
        rules = [finite_rule(argument), (_is_not_negative, f"`{argument}` must not be negative.")]
        if physical:
            rules += [(_euler_value_is_valid(k), _non_physical(argument, k)) for k in range(3)]
        if regular:
            rules.append((lambda i: i > 0, singular))
        return as_leaf(check_all(value, rules))
    rules = [finite_rule(argument), (_is_symmetric, f"`{argument}` must be symmetric.")]
    if physical:
        rules.append((_euler_tensor_is_valid, _non_physical_tensor(argument, value)))
    if regular:
        rules.append((_is_positive_definite, singular))
    value = check_all(value, rules)
    return as_leaf(0.5 * (value + value.T))


def _is_not_negative(inertia):
    return inertia >= 0


def _is_symmetric(inertia):
    size = abs(inertia[0, 0]) + abs(inertia[1, 1]) + abs(inertia[2, 2])
    return abs(inertia - inertia.T) <= 1e-6 * size


def _tolerance(inertia):
    return 32 * float(jnp.finfo(inertia.dtype).eps)


def _euler_value_is_valid(k):
    i, j = (k + 1) % 3, (k + 2) % 3

    def valid(inertia):
        total = abs(inertia[0]) + abs(inertia[1]) + abs(inertia[2])
        return inertia[i] - inertia[k] + inertia[j] >= -_tolerance(inertia) * total

    return valid


def _euler_tensor_is_valid(inertia):
    a, b, c, d, e, f = symmetric_components(inertia)
    half_trace = 0.5 * (a + b + c)
    shift = half_trace * (1 + _tolerance(inertia))
    # A zero tensor is a point mass: admitted, though its pivots are not positive.
    zero = (abs(inertia) == 0).all()
    return zero | _pivots_are_positive(shift - a, shift - b, shift - c, -d, -e, -f)


def _is_positive_definite(inertia):
    return _pivots_are_positive(*symmetric_components(inertia))


def _or_one(x: Float[Array, ""], good: Bool[Array, ""]) -> Float[Array, ""]:
    """Return `x` where it is good, 1 elsewhere; NumPy scalars stay NumPy scalars."""
    good = good.astype(x.dtype)
    return x * good + 1.0 * (1 - good)


def _pivots_are_positive(a, b, c, d, e, f):
    """Whether the symmetric matrix with Voigt components a to f has three positive pivots."""
    # Pivots of an L D L^T decomposition in components; divisions by a bad pivot are replaced.
    first = a > 0
    safe = _or_one(a, first)
    second_pivot = b - f * f / safe
    second = second_pivot > 0
    safe_second = _or_one(second_pivot, second)
    coupling = d - f * e / safe
    third = c - e * e / safe - coupling * coupling / safe_second > 0
    return first & second & third


def _non_physical(argument, k):
    i, j = (k + 1) % 3, (k + 2) % 3
    return (
        f"`{argument}` is not physical: the principal Euler value E{k + 1} = "
        f"(I{i + 1} + I{j + 1} - I{k + 1})/2 is negative, which no distribution of mass has. "
        f"Correct the moments, use `nearest_physical`, or pass physical=False."
    )


def _non_physical_tensor(argument, inertia):
    which = "the smallest principal Euler value"
    if not is_traced(inertia) and np.isfinite(inertia).all():
        symmetric = 0.5 * (inertia + inertia.T)
        euler = 0.5 * np.trace(symmetric) * np.eye(3) - symmetric
        which = f"{which}, {np.linalg.eigvalsh(euler)[0]:.6g},"
    return (
        f"`{argument}` is not physical: {which} is negative, which no distribution of mass has. "
        f"Correct the tensor, use `nearest_physical`, or pass physical=False."
    )
