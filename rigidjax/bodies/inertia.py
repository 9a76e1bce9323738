r"""Conversion of inertias between their forms, and conditions for a physical inertia.

The inertia about a point is given as principal moments (3,) in principal axes, or as a symmetric
tensor (3, 3), in kg m^2. Functions that accept both return the form of their argument. The Euler
tensor $E = \int x x^T\,dm = \frac12 \mathrm{tr}(I)\,1 - I$ of a mass distribution is positive
semidefinite, and every positive semidefinite $E$ belongs to a mass distribution. Forms that include
mass and centre of mass are in `mass_properties.py`.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..annotations import Flag, Matrix3, Scalar, Vector3
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


def euler_tensor(inertia: Vector3 | Matrix3) -> Array:
    r"""Return the Euler tensor $E = \frac12 \mathrm{tr}(I)\,1 - I$ of an inertia.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2.
    **Returns:** principal values (3,) in the order of the moments, or the tensor (3, 3).
    **Source:** Lang (18).
    """
    if inertia.ndim == 1:
        i1, i2, i3 = inertia[0], inertia[1], inertia[2]
        # Not sum/2 - I: the difference of two large moments is exact if the result is small.
        return 0.5 * jnp.stack([i2 - i1 + i3, i3 - i2 + i1, i1 - i3 + i2])
    half_trace = 0.5 * (inertia[0, 0] + inertia[1, 1] + inertia[2, 2])
    return half_trace * jnp.eye(3, dtype=inertia.dtype) - inertia


def inertia_from_euler_tensor(euler: Vector3 | Matrix3) -> Array:
    r"""Return the inertia $I = \mathrm{tr}(E)\,1 - E$ of an Euler tensor.

    **Arguments:** `euler`, principal values (3,) or tensor (3, 3), kg m^2.
    **Returns:** principal moments (3,) or tensor (3, 3), kg m^2.
    **Source:** Lang (18).
    """
    if euler.ndim == 1:
        e1, e2, e3 = euler[0], euler[1], euler[2]
        return jnp.stack([e2 + e3, e3 + e1, e1 + e2])
    trace = euler[0, 0] + euler[1, 1] + euler[2, 2]
    return trace * jnp.eye(3, dtype=euler.dtype) - euler


def inertia_tensor(inertia: Vector3 | Matrix3) -> Matrix3:
    """Return the tensor (3, 3) of principal moments (3,); a tensor is returned unchanged."""
    return jnp.diag(inertia) if inertia.ndim == 1 else inertia


def rotate_inertia(inertia: Vector3 | Matrix3, R: Matrix3) -> Matrix3:
    r"""Return the inertia in other axes, $R I R^T$.

    **Arguments:** `inertia`, (3,) or (3, 3), in the old axes; `R`, (3, 3), old to new components.
    **Returns:** tensor (3, 3) in the new axes.
    """
    return R @ inertia_tensor(inertia) @ R.T


def shift_inertia(inertia: Vector3 | Matrix3, mass: Scalar, offset: Vector3) -> Matrix3:
    r"""Return the inertia $I + m(|d|^2 1 - d d^T)$ about a point off the centre of mass.

    A negative `mass` converts in the other direction, from a point to the centre of mass.

    **Arguments:** `inertia` about the centre of mass, (3,) or (3, 3), kg m^2; `mass`, kg; `offset`,
    $d$, the vector between the centre of mass and the point, (3,) m, in the axes of the inertia.
    **Returns:** tensor (3, 3), kg m^2.
    """
    square = offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]
    outer = offset[:, None] * offset[None, :]
    identity = jnp.eye(3, dtype=offset.dtype)
    return inertia_tensor(inertia) + mass * (square * identity - outer)


def principal_axes(inertia: Matrix3) -> tuple[Vector3, Matrix3]:
    """Return principal moments in ascending order, and the rotation from principal to given axes.

    If moments are equal, the axes are not unique and have no derivative.

    **Arguments:** `inertia`, (3, 3), kg m^2.
    **Returns:** moments (3,), and a right-handed matrix (3, 3) whose columns are the axes:
    `rotate_inertia(moments, axes)` is `inertia`.
    """
    moments, axes = jnp.linalg.eigh(inertia)
    last = jnp.cross(axes[:, 0], axes[:, 1])
    return moments, jnp.stack([axes[:, 0], axes[:, 1], last], axis=1)


def principal_euler_values(inertia: Vector3 | Matrix3) -> Vector3:
    r"""Return the principal values of the Euler tensor, none negative for a physical body.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2.
    **Returns:** $E_1, E_2, E_3$, (3,), in the order of the principal moments; for a tensor
    ascending, and without a derivative where they are equal.
    """
    if inertia.ndim == 1:
        return euler_tensor(inertia)
    return jnp.linalg.eigvalsh(euler_tensor(inertia))


class NearestPhysical(NamedTuple):
    """A physical inertia, and whether it differs from the given one."""

    inertia: Array
    moved: Flag


def nearest_physical(inertia: ArrayInput, margin: ArrayInput = 0.0) -> NearestPhysical:
    r"""Return the physical inertia closest to a given one in the Frobenius norm.

    It minimises $|\Delta I|^2 = |\Delta E|^2 + \mathrm{tr}(\Delta E)^2$ subject to
    $E_i + \Delta E_i \ge$ `margin` $\cdot |\mathrm{tr} E|$ for the principal Euler values. The
    closed-form solution compares one candidate for each set of active bounds. The principal axes do
    not change. Derivatives with respect to principal moments are exact; those with respect to a
    tensor with equal moments are exact only if it is physical already.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `margin`, smallest admissible
    $E_i/|\mathrm{tr} E|$, below 1/3.
    **Returns:** the inertia in the form of the argument, and `moved`, whether it changed.
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
    # The second `where` keeps the derivative of `eigh` away from tensors that do not change.
    distinct = jnp.diag(jnp.arange(1, 4, dtype=tensor.dtype))
    moments, axes = principal_axes(jnp.where(moved, tensor, distinct))
    nearest, _ = _nearest_principal(moments, bound)
    return NearestPhysical(jnp.where(moved, rotate_inertia(nearest, axes), tensor), moved)


def _nearest_principal(moments: Vector3, margin: Scalar) -> tuple[Vector3, Flag]:
    """Return the nearest physical principal moments, and whether they changed."""
    euler = euler_tensor(moments)
    bound = margin * jnp.abs(euler[0] + euler[1] + euler[2])
    deficit = bound - euler
    active = jnp.array(list(itertools.product([False, True], repeat=3)))
    # Free components change by -trace, those at their bounds by their deficit.
    trace = jnp.where(active, deficit[None], 0.0).sum(axis=1) / (
        4 - active.sum(axis=1, dtype=deficit.dtype)
    )
    change = jnp.where(active, deficit[None], -trace[:, None])
    cost = (change**2).sum(axis=1) + change.sum(axis=1) ** 2
    admissible = jnp.where(active, True, change >= deficit[None]).all(axis=1)
    best = jnp.argmin(jnp.where(admissible, cost, jnp.inf))
    moved = (deficit > 0).any()
    nearest = inertia_from_euler_tensor(jnp.where(active[best], bound, euler + change[best]))
    return jnp.where(moved, nearest, moments), moved


def checked_inertia(
    inertia: Any, argument: str, physical: bool = True, regular: bool = False
) -> Array:
    r"""Check the shape and symmetry of an inertia and, if `physical`, its Euler tensor.

    Principal Euler values may be negative by 32 rounding errors of the trace, because they are
    exactly zero for a flat body or a thin rod.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `argument`, its name in messages; `physical`,
    whether to check the Euler tensor; `regular`, whether the inertia must be invertible.
    **Returns:** the array; a tensor is symmetrised.
    **Errors:** `ValueError`, or an error at run time if traced; for an inertia that is not physical
    it names the negative principal Euler value.
    """
    value = float_array(inertia, argument, (3,), (3, 3))
    singular = (
        f"`{argument}` must be positive (definite): without inertia the rotation has no equation."
    )
    if value.ndim == 1:
        rules = [finite_rule(argument), (lambda i: i >= 0, f"`{argument}` must not be negative.")]
        if physical:
            rules += [(_euler_value_is_valid(k), _non_physical(argument, k)) for k in range(3)]
        if regular:
            rules.append((lambda i: i > 0, singular))
        return as_leaf(check_all(value, rules))
    rules = [finite_rule(argument), (_is_symmetric, f"`{argument}` must be symmetric.")]
    if physical:
        rules.append((_euler_tensor_is_valid, _non_physical_tensor(argument, value)))
    if regular:
        rules.append((lambda i: _pivots_are_positive(*symmetric_components(i)), singular))
    value = check_all(value, rules)
    return as_leaf(0.5 * (value + value.T))


def _is_symmetric(inertia: Array) -> Array:
    size = abs(inertia[0, 0]) + abs(inertia[1, 1]) + abs(inertia[2, 2])
    return abs(inertia - inertia.T) <= 1e-6 * size


def _tolerance(inertia: Array) -> float:
    return 32 * float(jnp.finfo(inertia.dtype).eps)


def _euler_value_is_valid(k: int) -> Callable[[Array], Array]:
    i, j = (k + 1) % 3, (k + 2) % 3

    def valid(inertia):
        total = abs(inertia[0]) + abs(inertia[1]) + abs(inertia[2])
        return inertia[i] - inertia[k] + inertia[j] >= -_tolerance(inertia) * total

    return valid


def _euler_tensor_is_valid(inertia: Array) -> Array:
    a, b, c, d, e, f = symmetric_components(inertia)
    half_trace = 0.5 * (a + b + c)
    shift = half_trace * (1 + _tolerance(inertia))
    # A point mass has a zero tensor, which is valid though its pivots are not positive.
    zero = (abs(inertia) == 0).all()
    return zero | _pivots_are_positive(shift - a, shift - b, shift - c, -d, -e, -f)


def _or_one(x: Scalar, good: Flag) -> Scalar:
    """Return `x` where `good` is true, 1 elsewhere; NumPy scalars stay NumPy scalars."""
    good = good.astype(x.dtype)
    return x * good + 1.0 * (1 - good)


def _pivots_are_positive(a: Array, b: Array, c: Array, d: Array, e: Array, f: Array) -> Array:
    """Return whether the symmetric matrix of Voigt components a to f has positive pivots."""
    # Pivots of the L D L^T factorisation; a pivot that is not positive is replaced by 1 as divisor.
    first = a > 0
    safe = _or_one(a, first)
    second_pivot = b - f * f / safe
    second = second_pivot > 0
    safe_second = _or_one(second_pivot, second)
    coupling = d - f * e / safe
    third = c - e * e / safe - coupling * coupling / safe_second > 0
    return first & second & third


def _non_physical(argument: str, k: int) -> str:
    i, j = (k + 1) % 3, (k + 2) % 3
    return (
        f"`{argument}` is not physical: the principal Euler value E{k + 1} = "
        f"(I{i + 1} + I{j + 1} - I{k + 1})/2 is negative, which no distribution of mass has. "
        f"Correct the moments, use `nearest_physical`, or pass physical=False."
    )


def _non_physical_tensor(argument: str, inertia: Array | np.ndarray) -> str:
    which = "the smallest principal Euler value"
    if not is_traced(inertia) and np.isfinite(inertia).all():
        symmetric = 0.5 * (inertia + inertia.T)
        euler = 0.5 * np.trace(symmetric) * np.eye(3) - symmetric
        which = f"{which}, {np.linalg.eigvalsh(euler)[0]:.6g},"
    return (
        f"`{argument}` is not physical: {which} is negative, which no distribution of mass has. "
        f"Correct the tensor, use `nearest_physical`, or pass physical=False."
    )
