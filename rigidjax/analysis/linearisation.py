"""Equilibria, and linearisation about them in the motions that joints and loops permit."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from ..checks import ArrayInput, is_traced, is_tracing
from ..formulations import AbstractMinimalRates, Charted
from ..formulations.charts import Unknowns, join_chart, split_chart
from ..mechanics.dynamics.loops import loop_gradient
from ..state import State

# Largest number of Newton steps in the search for an equilibrium, largest number of halvings of a
# step, and largest step, in rad or relative to the size of the mechanism.
_MAX_STEPS, _MAX_HALVINGS, _MAX_LENGTH = 60, 30, 0.5
# Fraction of the largest singular value of the loop gradient below which others count as zero.
_CUTOFF = 1e-8

Complex = NDArray[np.complexfloating]


class Linearisation(eqx.Module):
    r"""Linearisation about a state, $\dot\eta = A\,\eta$ with $\eta = (\delta, \dot\delta)$.

    **Attributes:**

    - `matrix`, $A$, shape (2 r, 2 r), r the degrees of freedom.
    - `directions`, (f, r), the matrix in $\nu = $ `directions` $\dot\delta$; rows as in `labels`.
    - `labels` of the generalised velocities of the model.
    - `acceleration`, $\ddot\delta$ at the state itself, (r,), zero in an equilibrium.
    """

    matrix: Float[Array, "2r 2r"]
    directions: Float[Array, "f r"]
    acceleration: Float[Array, " r"]
    labels: tuple[str, ...] = eqx.field(static=True)

    @property
    def eigenvalues(self) -> Complex:
        """Eigenvalues of `matrix`, (2 r,) 1/s, sorted by |imaginary part|, then by real part."""
        return self._sort_eigenpairs()[0]

    @property
    def modes(self) -> np.ndarray:
        r"""Mode shapes in generalised velocities, (f, 2 r), one column for each eigenvalue."""
        vectors = self._sort_eigenpairs()[1]
        shapes = np.asarray(self.directions) @ vectors[: len(vectors) // 2]
        return shapes / np.linalg.norm(shapes, axis=0)

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies of the oscillating modes, rad/s, increasing."""
        values = self.eigenvalues
        return values.imag[values.imag > 0]

    @property
    def damping_ratios(self) -> np.ndarray:
        """Damping of the modes of `frequencies`, as a fraction of critical damping."""
        values = self.eigenvalues
        values = values[values.imag > 0]
        return -values.real / np.abs(values)

    @property
    def is_stable(self) -> bool:
        """Whether no mode grows, up to round-off."""
        values = self.eigenvalues
        return bool(np.all(values.real <= 1e-7 * max(1.0, np.max(np.abs(values), initial=0.0))))

    def _sort_eigenpairs(self) -> tuple[Complex, Complex]:
        values: Complex
        values, vectors = np.linalg.eig(np.asarray(self.matrix))
        order = np.lexsort((values.real, np.round(np.abs(values.imag), 12)))
        return values[order], vectors[:, order]


def linearize(model: AbstractMinimalRates, state: State, t: ArrayInput = 0.0) -> Linearisation:
    """Linearise the equations of motion about a state at rest, by exact derivatives.

    **Arguments:** `model`, `NullSpace` or `Relative`; `state`, usually an equilibrium (see
    `rj.equilibrium`); its own acceleration is not part of the linear equations; `t`, s.
    **Returns:** a `Linearisation`.
    **Errors:** `TypeError` for another model; `ValueError` for velocities that are not zero, or a
    state that violates the joints.
    """
    _check_arguments(model, state)
    if not np.all(np.asarray(state.velocity) == 0) or not np.all(
        np.asarray(state.angular_velocity) == 0
    ):
        raise ValueError(
            "`linearize(state=...)` takes a state at rest; got velocities. Use `state.at_rest()`."
        )
    y = _encode(model, state, t)
    N = _free_directions(model, t, y)
    return _linearise(model, t, y, jnp.asarray(N))[0]


def equilibrium(model: AbstractMinimalRates, state: State, t: ArrayInput = 0.0) -> State:
    """Return a state at rest near `state` in which all forces balance.

    Where the stiffness is not positive, a step descends in energy, by at most half a radian (or
    half the size of the mechanism); elsewhere it is a Newton step. A pendulum thus finds its lower
    equilibrium. A state that is already an equilibrium is returned, stable or not; `rj.linearize`
    tells whether it is stable. Directions without stiffness, such as those of a free body, are not
    changed.

    **Arguments:** `model`, `NullSpace` or `Relative`; `state`, a guess that satisfies the joints,
    whose velocities are ignored; `t`, s.
    **Errors:** `TypeError` for another model; `ValueError` if the search does not converge.
    """
    _check_arguments(model, state)
    y = _encode(model, state.at_rest(), t)
    current, largest = _evaluate_rest(model, t, y), 1e-300
    for _ in range(_MAX_STEPS):
        largest = max(largest, current.size, np.abs(current.stiffness).max(initial=0.0))
        if current.size <= 1e3 * np.finfo(current.acceleration.dtype).eps * largest:
            return model.decode(jnp.asarray(t, float), y)
        step = current.step()
        for _ in range(_MAX_HALVINGS):
            trial = _displace(model, t, y, current.directions @ jnp.asarray(step))
            after = _evaluate_rest(model, t, trial)
            if after.size < current.size or after.energy < current.energy:
                break
            step *= 0.5
        else:
            break
        y, current = trial, after
    raise ValueError(
        f"`equilibrium` found none: accelerations of {current.size:.3g} (rad/s^2 or m/s^2) remain "
        "and do not decrease. Pass a `state` closer to an equilibrium."
    )


class _RestState(NamedTuple):
    """Mass, stiffness, acceleration and energy of a state at rest, in its free directions."""

    directions: Array
    mass: np.ndarray
    stiffness: np.ndarray  # derivative of the accelerations
    acceleration: np.ndarray
    energy: float

    @property
    def size(self) -> float:
        size = float(np.abs(self.acceleration).max(initial=0.0))
        return size if np.isfinite(size) else np.inf

    def step(self) -> np.ndarray:
        """Return Newton's step, or a descent step if the stiffness is not positive."""
        factor = np.linalg.cholesky(self.mass)
        inner = -np.linalg.solve(factor, self.mass @ self.stiffness) @ np.linalg.inv(factor).T
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        flat = 1e-10 * np.abs(values).max(initial=0.0)
        if np.all(values > flat):
            step = np.linalg.solve(self.stiffness, -self.acceleration)
        else:
            keep = np.abs(values) > flat
            along = vectors[:, keep].T @ (factor.T @ self.acceleration) / np.abs(values[keep])
            step = np.linalg.solve(factor.T, vectors[:, keep] @ along)
        return step * min(1.0, _MAX_LENGTH / max(np.abs(step).max(initial=0.0), 1e-300))


def _evaluate_rest(model: AbstractMinimalRates, t: Any, y: Unknowns) -> _RestState:
    directions = jnp.asarray(_free_directions(model, t, y))
    linear, mass, energy = _linearise(model, t, y, directions)
    r = len(linear.acceleration)
    return _RestState(
        linear.directions,
        np.asarray(mass),
        np.asarray(linear.matrix)[r:, :r],
        np.asarray(linear.acceleration),
        float(energy),
    )


def _check_arguments(model: AbstractMinimalRates, state: State) -> None:
    if not isinstance(model, AbstractMinimalRates):
        raise TypeError(
            "`linearize` and `equilibrium` take a `NullSpace` or `Relative` model; got "
            f"`{type(model).__name__}`."
        )
    # A function under `jax.jit` may also build model and state from concrete values.
    if is_traced((model, state)) or is_tracing():
        raise ValueError(
            "`linearize` and `equilibrium` need concrete values: call them outside `jax.jit`."
        )


def _encode(model: AbstractMinimalRates, state: State, t: ArrayInput) -> Unknowns:
    checked = model.check_state(state, t).normalized()
    return model.chart(checked, t) if model.recharting else model.start(checked, t)


def _free_directions(model: AbstractMinimalRates, t: Any, y: Unknowns) -> np.ndarray:
    """Return a basis (f, r) of the generalised velocities that the loop constraints permit."""
    f = model.num_rates
    if not model.multibody.has_loops:
        return np.eye(f)
    J, scale = (np.asarray(part) for part in _scaled_loop_gradient(model, t, y))
    _, sizes, rows = np.linalg.svd(J)
    rank = int(np.sum(sizes > _CUTOFF * sizes.max(initial=0.0)))
    return scale[:, None] * rows[rank:].T


@eqx.filter_jit
def _scaled_loop_gradient(model: AbstractMinimalRates, t: Any, y: Unknowns) -> tuple[Array, Array]:
    at = model.configuration(t, y)
    loops = loop_gradient(at.prepared, at.t, at.poses, at.joint_frames)
    return loops.matrix, loops.scale


def _with_rates(model: AbstractMinimalRates, y: Unknowns, nu: Array) -> Unknowns:
    return join_chart(model.layout.with_velocities(split_chart(y)[0], nu), y)


@eqx.filter_jit
def _linearise(
    model: AbstractMinimalRates, t: Any, y: Unknowns, N: Float[Array, "f r"]
) -> tuple[Linearisation, Float[Array, "r r"], Float[Array, ""]]:
    """Return the linearisation in the directions `N`, their mass matrix, and the energy at rest."""
    values, _ = split_chart(y)
    t = jnp.asarray(t, values.dtype)
    first, f = model.layout.num_positions, model.num_rates

    def rates(y):
        return split_chart(model.vector_field(t, y))[0]

    still = _with_rates(model, y, jnp.zeros(f, values.dtype))

    def by_position(column):
        # The change of positions is their rate with these velocities.
        difference = rates(_with_rates(model, y, column)) - rates(still)
        change = jnp.where(np.arange(values.size) < first, difference, 0.0)
        change = join_chart(change, y)
        if isinstance(change, Charted):
            change = Charted(change.values, jnp.zeros_like(change.reference))
        return jax.jvp(rates, (still,), (change,))[1][first : first + f]

    def by_velocity(column):
        scaled_rates = lambda s: rates(_with_rates(model, y, s * column))  # noqa: E731
        zero = jnp.zeros((), values.dtype)
        return jax.jvp(scaled_rates, (zero,), (jnp.ones_like(zero),))[1][first : first + f]

    left_inverse = jnp.linalg.pinv(N)
    stiffness = left_inverse @ jax.vmap(by_position, 1, 1)(N)
    damping = left_inverse @ jax.vmap(by_velocity, 1, 1)(N)
    r = N.shape[1]
    top = jnp.concatenate([jnp.zeros((r, r)), jnp.eye(r)], axis=1)
    A = jnp.concatenate([top, jnp.concatenate([stiffness, damping], axis=1)])
    acceleration = left_inverse @ rates(still)[first : first + f]
    linear = Linearisation(A, N, acceleration, model.rate_labels)
    return linear, N.T @ model.mass_matrix(t, still) @ N, model.energy(t, still)


@eqx.filter_jit
def _displace(
    model: AbstractMinimalRates, t: Any, y: Unknowns, change: Float[Array, " f"]
) -> Unknowns:
    """Move by a finite `change` of generalised coordinates, and project onto the constraints."""
    values, _ = split_chart(y)
    first = model.layout.num_positions
    parts = 8

    def advance(_, y):
        along = split_chart(model.vector_field(t, _with_rates(model, y, change / parts)))[0]
        still = split_chart(model.vector_field(t, _with_rates(model, y, 0.0 * change)))[0]
        step = jnp.where(np.arange(values.size) < first, along - still, 0.0)
        here, _ = split_chart(y)
        return _with_rates(model, model.project(t, join_chart(here + step, y)), 0.0 * change)

    return jax.lax.fori_loop(0, parts, advance, y)
