r"""Multiple shooting: runs in segments whose gaps are closed in stages.

Over a long run of a chaotic system a trajectory depends so strongly on its parameters that the sum
of squares has a local minimum at every turn. Over a segment it does not. So every segment gets a
start of its own, found from its samples, and the gaps between segments count as residuals, with a
weight that grows until they are closed.

**Source:** Bock (1983), in Numerical Treatment of Inverse Problems in Differential and Integral
Equations; the weights of the gaps in place of constraints: Voss, Timmer, Kurths, Int. J.
Bifurcation Chaos 14 (2004) 1905.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..state import State
from ..system import System
from .block_elimination import solve
from .displacement import Directions, independent_rates, loop_rows_at, num_rates, selection
from .least_squares import Minimum
from .measurements import Runs
from .problem import Problem
from .segments import Cut, Linearised, Segments, Unknowns, cut, linearise

# Weights of the gaps, relative to their size and the noise, one stage after the other.
_WEIGHTS = (1.0, 3e1, 1e3, 1e5, 1e7)
# Gaps below this part of the size of the motion are closed.
_CLOSED = 1e-7
# Relative decrease of the cost below which a stage ends, and iterations of a stage.
_ENOUGH, _MAX_ITERATIONS = 1e-3, 20
_START_ITERATIONS = 15
# Steps of the solver that a segment may take at least.
_MIN_STEPS = 128
# Parts of a segment whose samples count for its start, one after the other.
_HORIZONS = (0.1, 0.3, 1.0)
# Damping relative to the columns of the Jacobian: at first, and by what it changes.
_DAMPING, _DOWN, _UP, _MOST = 1e-2, 0.2, 5.0, 1e12
# A segment whose residuals are this many times the median of all has a wrong start.
_BAD = 3.0


@dataclasses.dataclass(frozen=True)
class Shot:
    """What multiple shooting found: the problem to go on from, and what to report.

    `gap`, the largest at the end, relative to the size of the motion; `iterations`, `failures`.
    """

    problem: Problem
    count: int
    gap: float
    iterations: int
    failures: int

    @property
    def closed(self) -> bool:
        """Whether the segments join to one trajectory."""
        return self.gap < _CLOSED

    def notes(self, converged: bool) -> list[str]:
        """Notes for the fit, whose undivided run has `converged` or not."""
        out = [
            f"Multiple shooting: {self.count} segments in each run, {self.iterations} iterations, "
            f"{self.failures} of them with a simulation that failed; the largest gap at the end "
            f"is {self.gap:.2g} of the size of the motion."
        ]
        if not self.closed:
            out.append(
                "The gaps between the segments could not be closed: no trajectory of the model "
                "follows these data over whole runs. Shorter runs, or noise in the model."
            )
        if not converged:
            out.append(
                "The undivided run did not converge from what multiple shooting found: over its "
                "length small changes grow too much (chaos), or it starts too far off. Its parts "
                "may still be fitted as runs of their own."
            )
        return out


def shoot(problem: Problem, runs: Runs, segments: int) -> Shot:
    """Parameters and start of a problem from multiple shooting.

    **Arguments:** `segments`, their number in each run, at least 2.
    **Errors:** `ValueError` for more segments than the samples allow, and for a joint with a force
    that depends on turns beyond pi, which a segment does not know of.
    """
    first = jax.tree.map(lambda leaf: leaf[0], problem.runs.state0)
    independent = independent_rates(problem.model, first)
    shooting = _Shooting(problem, runs, cut(runs, segments, 2 * len(independent)), independent)
    at, found = shooting.start()
    at, found = shooting.join(at, found)
    shooting.check_angles(found)
    return Shot(
        _with_leaves(problem, at),
        segments,
        float(np.abs(found.gaps / shooting.size).max()),
        shooting.iterations,
        shooting.failures,
    )


class _Shooting:
    """The segments as they are being fitted; `bases` move along with the starts."""

    def __init__(self, problem: Problem, runs: Runs, pieces: Cut, independent: tuple[int, ...]):
        how = problem.simulation
        # A trial that turns much too fast is to fail early: all segments wait for it.
        steps = max(_MIN_STEPS, 2 * how.max_steps // pieces.ts.shape[1])
        how = dataclasses.replace(how, max_steps=min(how.max_steps, steps))
        self.problem = dataclasses.replace(problem, simulation=how)
        self.cut, self.independent = pieces, independent
        self.noise: Any = 1.0 if runs.noise_is_known else None
        self.bases = _guesses(problem, runs, pieces)
        self.iterations = self.failures = 0
        self.size = np.ones(12 * self.bases.position.shape[-2])

    def linearise(self, at: Unknowns) -> Any:
        """All segments at these unknowns, on the host."""
        segments = Segments(self.problem, self.cut, self.bases, self.directions())
        found = jax.tree.map(np.asarray, linearise(segments, jax.tree.map(jnp.asarray, at)))
        self.iterations += 1
        self.failures += not found.okay.all()
        return found

    def directions(self) -> Directions:
        """Directions in which the starts are changed, at the bases."""
        model, shape = self.problem.model, self.cut.ts.shape[:2]
        f, k = num_rates(model), len(self.independent)
        if k == f:
            one = selection(self.independent, f, str(self.cut.ts.dtype))
            return jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape, *x.shape)), one)
        # The null space of the loops where the segment starts: no joint is singular in it.
        J = loop_rows_at(model.system, self.bases)
        basis = np.swapaxes(np.linalg.svd(J)[2], -1, -2)
        return Directions(jnp.asarray(basis[..., f - k :]), jnp.asarray(basis[..., : f - k]))

    def rebased(self, at: Unknowns, found: Linearised) -> Unknowns:
        """The same point with changes counted from the starts that were found."""
        self.bases = jax.tree.map(jnp.asarray, found.states)
        return eqx.tree_at(lambda u: u.change, at, np.zeros_like(at.change))

    # First the starts alone, from the samples of each segment.

    def start(self) -> tuple[Unknowns, Linearised]:
        """Starts that fit the segments each for itself, with the parameters as they are."""
        shared, own = self.problem.start()
        shape = (*self.cut.ts.shape[:2], 2 * len(self.independent))
        at = Unknowns(shared, own, jnp.zeros(shape, own.dtype))
        at, found = self.fit_starts(at, self.within(_HORIZONS[0]))
        for horizon in _HORIZONS[1:]:
            at, found = self.fit_starts(at, self.within(horizon))
        for _ in range(shape[1]):
            cost = _costs(found)
            bad = ~(cost <= _BAD**2 * np.median(cost, axis=1, keepdims=True))
            # One behind another that is bad is guessed when that is good.
            again = np.pad(bad[:, 1:] & ~bad[:, :-1], ((0, 0), (1, 0)))
            if not again.any():
                break
            before = self.bases
            self.bases = _continued(self.bases, found.final, again)
            at, new = self.fit_starts(at, self.within(1.0))
            better = again & (_costs(new) < cost)
            self.bases = _mixed(better, self.bases, before)
            found = _chosen(better, new, found)
            if not better.any():
                break
        found = self.linearise(at)
        self.size = _sizes(self.bases)
        if self.noise is None:
            counts = sum(np.count_nonzero(w) for w in self.cut.weights)
            self.noise = float(np.sqrt(np.sum(_costs(found)) / counts))
        return at, found

    def within(self, horizon: float) -> np.ndarray:
        """Which residuals lie in this part of their segment, (N,), three samples at least."""
        length = self.cut.ts.shape[2]
        first = np.arange(length) < max(3, np.ceil(horizon * length))
        return np.concatenate([np.repeat(first, w.shape[-1]) for w in self.cut.weights])

    def fit_starts(self, at: Unknowns, within: np.ndarray) -> tuple[Unknowns, Linearised]:
        """Levenberg-Marquardt for every segment at once, each with a damping of its own."""
        found = self.linearise(at)
        damping = np.full(at.change.shape[:2], _DAMPING)
        for _ in range(_START_ITERATIONS):
            step = _own_step(found, within, at.change.shape[-1], damping)
            trial = eqx.tree_at(lambda u: u.change, at, at.change + step)
            new = self.linearise(trial)
            old_cost, new_cost = _costs(found, within), _costs(new, within)
            better = new_cost < old_cost
            change = np.where(better[..., None], trial.change, at.change)
            at = eqx.tree_at(lambda u: u.change, at, change)
            found = _chosen(better, new, found)
            damping = np.clip(damping * np.where(better, _DOWN, _UP), 0.0, _MOST)
            # A part of what is left, or of the noise.
            floor = _ENOUGH * (old_cost + np.count_nonzero(within) * (self.noise or 0.0) ** 2)
            if not np.any(better & (old_cost - new_cost > floor)):
                break
        return self.rebased(at, found), found

    # Then everything, with gaps that count more and more.

    def join(self, at: Unknowns, found: Linearised) -> tuple[Unknowns, Linearised]:
        """Parameters and starts with which the gaps are closed."""
        for weight in _WEIGHTS:
            at, found = self.fit_all(at, found, weight * self.noise / self.size)
            at = self.rebased(at, found)
            found = self.linearise(at)
            if np.abs(found.gaps / self.size).max() < 1e-2 * _CLOSED:
                break
        return at, found

    def fit_all(self, at: Unknowns, found: Linearised, weight: np.ndarray):
        """Levenberg-Marquardt with the structure of the segments."""
        damping, scale = _DAMPING, None
        cost = _total(found, weight)
        for _ in range(_MAX_ITERATIONS):
            data, gaps = _rows(found, weight)
            scale = _column_sizes(at, data[1], gaps, scale)
            step = solve(data, gaps, tuple(np.sqrt(damping) * x for x in scale))
            trial = jax.tree.map(np.add, at, Unknowns(*map(jnp.asarray, step)))
            new = self.linearise(trial)
            new_cost = _total(new, weight)
            if not new_cost < cost:
                damping *= _UP
                if damping > _MOST:
                    break
                continue
            gain, at, found, cost = cost - new_cost, trial, new, new_cost
            damping *= _DOWN
            if gain <= _ENOUGH * cost:
                break
        return at, found

    def check_angles(self, found: Linearised) -> None:
        """`ValueError` if a force depends on turns that a segment does not know of."""
        system = self.problem.model.system
        if not isinstance(system, System):
            return
        tracked = system.tracked_joints
        for j in system.force_joints:
            if j in tracked and np.abs(found.angles[..., tracked.index(j)]).max() > np.pi:
                raise ValueError(
                    f"`identify(segments=...)`: a force depends on the angle of the joint "
                    f"{system.joints[j].name!r}, which goes beyond pi. A segment starts in "
                    "(-pi, pi] and does not know of earlier turns; fit without `segments`."
                )


def _guesses(problem: Problem, runs: Runs, pieces: Cut) -> State:
    """The start state of the run at every node, improved by what sensors read there."""
    states = []
    for b in range(problem.num_runs):
        given = jax.tree.map(lambda leaf, b=b: leaf[b], problem.runs.state0)
        for k in range(pieces.ts.shape[1]):
            state = given
            for sensor, values in zip(runs.sensors, pieces.values, strict=True):
                state = sensor.start(problem.model, state, values[b, k, 0])
            states.append(state)
    shape = pieces.ts.shape[:2]
    return jax.tree.map(lambda *x: jnp.stack(x).reshape(*shape, *x[0].shape), *states)


def _costs(found: Any, within: Any = True) -> np.ndarray:
    """Sum of squares of every segment; infinite where the simulation fails."""
    return np.where(found.okay, np.sum(found.residuals**2, axis=2, where=within), np.inf)


def _total(found: Any, weight: np.ndarray) -> float:
    """Sum of squares with gaps."""
    gaps = np.sum((weight * found.gaps) ** 2)
    return float(np.sum(_costs(found)) + (gaps if np.isfinite(gaps) else np.inf))


def _own_step(found: Any, within: np.ndarray, n: int, damping: np.ndarray) -> np.ndarray:
    """Damped steps of the starts of all segments, (B, K, n)."""
    use = found.okay[..., None] & within
    J = np.where(use[..., None], found.jacobian[..., -n:], 0.0)
    r = np.where(use, found.residuals, 0.0)
    size = np.linalg.norm(J, axis=2)
    D = np.sqrt(damping)[..., None] * np.where(size > 0, size, 1.0)
    rows = np.concatenate([J, D[..., None] * np.eye(n)], axis=2)
    right = np.concatenate([r, np.zeros_like(D)], axis=2)
    return -(np.linalg.pinv(rows) @ right[..., None])[..., 0]


def _chosen(better: np.ndarray, new: Linearised, old: Linearised) -> Linearised:
    """`new` in the segments where it is better. Gaps belong to no segment: they are left as old."""

    def pick(a, b):
        return np.where(better.reshape(*better.shape, *(1,) * (a.ndim - 2)), a, b)

    fields = ("residuals", "jacobian", "states", "final", "angles", "okay")
    return eqx.tree_at(
        lambda f: [getattr(f, name) for name in fields],
        old,
        [jax.tree.map(pick, getattr(new, name), getattr(old, name)) for name in fields],
    )


def _mixed(mask: np.ndarray, first: State, second: State) -> State:
    def pick(a, b):
        return jnp.where(mask.reshape(*mask.shape, *(1,) * (a.ndim - 2)), a, b)

    return jax.tree.map(pick, first, second)


def _continued(bases: State, final: State, again: np.ndarray) -> State:
    """Bases of these segments where the segments before them end."""
    shifted = jax.tree.map(lambda x: np.concatenate([x[:, :1], x[:, :-1]], axis=1), final)
    return _mixed(again, shifted, bases)


def _sizes(bases: State) -> np.ndarray:
    """Size of the motion for every entry of a gap: spread of positions, 1 rad, rms velocities."""

    def rms(x):
        return max(float(np.sqrt(np.mean(np.square(x)))), 1e-12)

    x = np.asarray(bases.position)
    spread = x - x.mean(axis=(0, 1))
    sizes = (rms(spread), 1.0, rms(bases.velocity), rms(bases.angular_velocity))
    return np.repeat(sizes, 3 * x.shape[-2])


def _rows(found: Any, weight: np.ndarray):
    """Residuals and gaps with their derivatives, weighted."""
    data = found.residuals, found.jacobian
    columns = weight[:, None]
    return data, (weight * found.gaps, columns * found.ends, columns * found.starts)


def _column_sizes(at: Unknowns, J: np.ndarray, gaps, before):
    """Norms of the columns of the Jacobian, the largest so far."""
    _, ends, starts = gaps
    squares = np.sum(J**2, axis=2)
    squares[:, :-1] += np.sum(ends**2, axis=2)
    squares[:, 1:] += np.sum(starts**2, axis=2)
    S, P = at.shared.size, at.own.shape[1]
    sizes = (
        squares[..., :S].sum(axis=(0, 1)),
        squares[..., S : S + P].sum(axis=1),
        squares[..., S + P :],
    )
    # What nothing depends on, such as the change of a first start, is not moved.
    sizes = [np.sqrt(np.where(x > 0, x, 1.0)) for x in sizes]
    return (
        sizes if before is None else [np.maximum(a, b) for a, b in zip(sizes, before, strict=True)]
    )


def _with_leaves(problem: Problem, at: Unknowns) -> Problem:
    """The problem that starts from these coordinates."""
    count = len(problem.shared_parameters)
    shared, own = jnp.asarray(at.shared), jnp.asarray(at.own)
    leaves = jax.vmap(lambda own, run: problem.leaves(shared, own, run))(own, problem.runs)
    return eqx.tree_at(
        lambda p: (p.shared, p.runs.own),
        problem,
        (tuple(leaf[0] for leaf in leaves[:count]), tuple(leaves[count:])),
    )


def started_from(problem: Problem, minimum: Minimum) -> Minimum:
    """The minimum with the components at the start of this problem as those it started from."""
    shared, own = problem.start()
    transforms = [p.transform for p in problem.parameters]
    count = len(problem.shared_parameters)

    def components(own, run):
        leaves = problem.leaves(shared, own, run)
        values = [t.estimates(leaf) for t, leaf in zip(transforms, leaves, strict=True)]
        none = jnp.zeros(0, own.dtype)
        return jnp.concatenate([none, *values[:count]]), jnp.concatenate([none, *values[count:]])

    first, second = jax.vmap(components)(own, problem.runs)
    return eqx.tree_at(lambda m: (m.first.shared, m.first.own), minimum, (first[0], second))
