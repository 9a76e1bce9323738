"""Equilibria, and small motions about them on the motions that joints and loops allow."""

from typing import NamedTuple

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

# Newton steps of the search for an equilibrium, halvings of one of them, and the largest step, rad
# or of the size of the mechanism.
_STEPS, _HALVINGS, _LONGEST = 60, 30, 0.5
# Singular values of the gradient of the loops below this part of the largest one count as zero.
_CUTOFF = 1e-8

Complex = NDArray[np.complexfloating]


class Linearisation(eqx.Module):
    r"""Small motions about a state, $\dot\eta = A\,\eta$ with $\eta = (\delta, \dot\delta)$.

    **Attributes:**

    - `matrix`, $A$, shape (2 r, 2 r), r the degrees of freedom.
    - `directions`, (f, r): $\nu = $ `directions` $\dot\delta$, named by `labels`.
    - `labels`, of the minimal velocities of the model.
    - `acceleration`, (r,), $\ddot\delta$ at the state itself, zero in an equilibrium.
    """

    matrix: Float[Array, "2r 2r"]
    directions: Float[Array, "f r"]
    acceleration: Float[Array, " r"]
    labels: tuple[str, ...] = eqx.field(static=True)

    @property
    def eigenvalues(self) -> Complex:
        """Eigenvalues of `matrix`, (2 r,), 1/s, by size of imaginary part, then by real part."""
        return self._sorted()[0]

    @property
    def modes(self) -> np.ndarray:
        r"""Shapes of the modes in the minimal velocities, (f, 2 r), one for each eigenvalue."""
        vectors = self._sorted()[1]
        shapes = np.asarray(self.directions) @ vectors[: len(vectors) // 2]
        return shapes / np.linalg.norm(shapes, axis=0)

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies of the modes that oscillate, rad/s, rising."""
        values = self.eigenvalues
        return values.imag[values.imag > 0]

    @property
    def damping_ratios(self) -> np.ndarray:
        """Damping of the modes of `frequencies`, as a part of critical damping."""
        values = self.eigenvalues
        values = values[values.imag > 0]
        return -values.real / np.abs(values)

    @property
    def is_stable(self) -> bool:
        """Whether no mode grows, up to round-off."""
        values = self.eigenvalues
        return bool(np.all(values.real <= 1e-7 * max(1.0, np.max(np.abs(values), initial=0.0))))

    def _sorted(self) -> tuple[Complex, Complex]:
        values: Complex
        values, vectors = np.linalg.eig(np.asarray(self.matrix))
        order = np.lexsort((values.real, np.round(np.abs(values.imag), 12)))
        return values[order], vectors[:, order]


def linearize(model: AbstractMinimalRates, state: State, t: ArrayInput = 0.0) -> Linearisation:
    """Small motions about a state at rest, by exact derivatives of the equations of motion.

    **Arguments:** `model`, `NullSpace` or `Relative`; `state`, best an equilibrium (see
    `rj.equilibrium`): elsewhere the motions of the state itself are left out; `t`, s.
    **Returns:** a `Linearisation`.
    **Errors:** `TypeError` for another model; `ValueError` for velocities that are not zero, or a
    state that the joints do not allow.
    """
    _check(model, state)
    if not np.all(np.asarray(state.velocity) == 0) or not np.all(
        np.asarray(state.angular_velocity) == 0
    ):
        raise ValueError("`linearize(state=...)` takes a state at rest; got velocities.")
    y = _start(model, state, t)
    N = _directions(model, t, y)
    return _linearised(model, t, y, jnp.asarray(N))[0]


def equilibrium(model: AbstractMinimalRates, state: State, t: ArrayInput = 0.0) -> State:
    """A state at rest near to `state` in which all forces balance.

    Downhill where forces push away, by steps of at most half a radian (or of the size of the
    mechanism), then Newton's iteration: so that a pendulum finds its way down. A state that
    balances already is returned, stable or not: `rj.linearize` says which. Directions in which
    nothing changes, such as those of a body in space, are left alone.

    **Arguments:** `model`, `NullSpace` or `Relative`; `state`, a guess that the joints allow, whose
    velocities do not matter; `t`, s.
    **Errors:** `TypeError` for another model; `ValueError` if none is found from there.
    """
    _check(model, state)
    y = _start(model, state.at_rest(), t)
    at, largest = _rest(model, t, y), 1e-300
    for _ in range(_STEPS):
        largest = max(largest, at.size, np.abs(at.stiffness).max(initial=0.0))
        if at.size <= 1e3 * np.finfo(at.acceleration.dtype).eps * largest:
            return model.decode(jnp.asarray(t, float), y)
        step = at.step()
        for _ in range(_HALVINGS):
            trial = _moved(model, t, y, at.directions @ jnp.asarray(step))
            after = _rest(model, t, trial)
            if after.size < at.size or after.energy < at.energy:
                break
            step *= 0.5
        else:
            break
        y, at = trial, after
    raise ValueError(
        f"`equilibrium` found none: accelerations of {at.size:.3g} (rad/s^2 or m/s^2) are left "
        "and do not get smaller. Give a `state` that is nearer to one."
    )


class _Rest(NamedTuple):
    """A state at rest: what its accelerations are, and how they change."""

    directions: Array
    mass: np.ndarray
    stiffness: np.ndarray  # change of the accelerations
    acceleration: np.ndarray
    energy: float

    @property
    def size(self) -> float:
        size = float(np.abs(self.acceleration).max(initial=0.0))
        return size if np.isfinite(size) else np.inf

    def step(self) -> np.ndarray:
        """Newton's step, or one downhill where the state is not stable."""
        root = np.linalg.cholesky(self.mass)
        inner = -np.linalg.solve(root, self.mass @ self.stiffness) @ np.linalg.inv(root).T
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        flat = 1e-10 * np.abs(values).max(initial=0.0)
        if np.all(values > flat):
            step = np.linalg.solve(self.stiffness, -self.acceleration)
        else:
            keep = np.abs(values) > flat
            along = vectors[:, keep].T @ (root.T @ self.acceleration) / np.abs(values[keep])
            step = np.linalg.solve(root.T, vectors[:, keep] @ along)
        return step * min(1.0, _LONGEST / max(np.abs(step).max(initial=0.0), 1e-300))


def _rest(model, t, y) -> _Rest:
    of, mass, energy = _linearised(model, t, y, jnp.asarray(_directions(model, t, y)))
    r = len(of.acceleration)
    stiffness = np.asarray(of.matrix)[r:, :r]
    rest = of.directions, np.asarray(mass), stiffness, np.asarray(of.acceleration), float(energy)
    return _Rest(*rest)


def _check(model, state) -> None:
    if not isinstance(model, AbstractMinimalRates):
        raise TypeError(
            "Small motions and equilibria are those of `NullSpace` and `Relative`; got "
            f"`{type(model).__name__}`."
        )
    # Also where a function under `jax.jit` makes the model or the state of known numbers.
    if is_traced((model, state)) or is_tracing():
        raise ValueError(
            "`linearize` and `equilibrium` need known values: call them outside of `jax.jit`."
        )


def _start(model: AbstractMinimalRates, state: State, t) -> Unknowns:
    checked = model.check_state(state, t).normalized()
    return model.chart(checked, t) if model.recharting else model.start(checked, t)


def _directions(model, t, y) -> np.ndarray:
    """Minimal velocities that closed loops leave free, as columns."""
    f = model.num_rates
    if not model.multibody.closes:
        return np.eye(f)
    J, scale = (np.asarray(part) for part in _loops(model, t, y))
    _, sizes, rows = np.linalg.svd(J)
    rank = int(np.sum(sizes > _CUTOFF * sizes.max(initial=0.0)))
    return scale[:, None] * rows[rank:].T


@eqx.filter_jit
def _loops(model, t, y):
    at = model.placed(t, y)
    loops = loop_gradient(at.prepared, at.t, at.poses, at.places)
    return loops.matrix, loops.scale


def _with_rates(model, y, nu) -> Unknowns:
    return join_chart(model.layout.with_velocities(split_chart(y)[0], nu), y)


@eqx.filter_jit
def _linearised(model, t, y, N) -> tuple[Linearisation, Array, Array]:
    """Small motions, the mass matrix of the directions, and the energy at rest."""
    values, _ = split_chart(y)
    t = jnp.asarray(t, values.dtype)
    first, f = model.layout.num_positions, model.num_rates

    def rates(y):
        return split_chart(model.vector_field(t, y))[0]

    still = _with_rates(model, y, jnp.zeros(f, values.dtype))

    def by_position(column):
        # Positions move as they do with these velocities.
        moved = rates(_with_rates(model, y, column)) - rates(still)
        change = jnp.where(np.arange(values.size) < first, moved, 0.0)
        change = join_chart(change, y)
        if isinstance(change, Charted):
            change = Charted(change.values, jnp.zeros_like(change.reference))
        return jax.jvp(rates, (still,), (change,))[1][first : first + f]

    def by_velocity(column):
        moved = lambda s: rates(_with_rates(model, y, s * column))  # noqa: E731
        zero = jnp.zeros((), values.dtype)
        return jax.jvp(moved, (zero,), (jnp.ones_like(zero),))[1][first : first + f]

    left = jnp.linalg.pinv(N)
    stiffness = left @ jax.vmap(by_position, 1, 1)(N)
    damping = left @ jax.vmap(by_velocity, 1, 1)(N)
    r = N.shape[1]
    top = jnp.concatenate([jnp.zeros((r, r)), jnp.eye(r)], axis=1)
    A = jnp.concatenate([top, jnp.concatenate([stiffness, damping], axis=1)])
    of = Linearisation(A, N, left @ rates(still)[first : first + f], model.rate_labels)
    return of, N.T @ model.mass_matrix(t, still) @ N, model.energy(t, still)


@eqx.filter_jit
def _moved(model, t, y, change) -> Unknowns:
    """The pose a finite motion further, closed again."""
    values, _ = split_chart(y)
    first = model.layout.num_positions
    parts = 8

    def further(_, y):
        along = split_chart(model.vector_field(t, _with_rates(model, y, change / parts)))[0]
        still = split_chart(model.vector_field(t, _with_rates(model, y, 0.0 * change)))[0]
        step = jnp.where(np.arange(values.size) < first, along - still, 0.0)
        here, _ = split_chart(y)
        return _with_rates(model, model.project(t, join_chart(here + step, y)), 0.0 * change)

    return jax.lax.fori_loop(0, parts, further, y)
