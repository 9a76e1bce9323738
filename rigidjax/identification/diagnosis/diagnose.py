"""Search for the cause of residuals that are not white, by refits with one suspect each."""

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...io.document import estimate_text, std_text
from ..data.measurements import Runs
from ..experiment.linearised_runs import separate_runs
from ..search.evaluation import evaluate
from ..search.losses import Squares
from ..search.optimum import Optimum
from ..search.problem import FitProblem, make_problem
from .suspects import Suspect, extend, sensor_suspects

# Number of suspects that are refitted, of steps of a refit, and relative decrease at its end.
_REFITTED, _STEPS, _ENOUGH = 6, 10, 1e-3
# Part of the sum of squares that the best cause must remove, and part of that for the others.
_LEAST, _BEHIND = 0.05, 0.5
# Reduction of the sum of squares that hundreds of wrong suspects hardly reach, in units of noise.
_SURE = 15.0
# Part of the sum of squares that is left if another sign, unit or order of the data is right.
_NEARLY_ALL = 1e-2
# Change of the residuals by a unit of a component that has no effect, relative.
_NO_EFFECT = 1e-9
# Factors between a unit and others in which its samples may be by mistake.
_FACTORS = {
    "rad": {"degrees": np.pi / 180, "revolutions": 2 * np.pi},
    "rad/s": {"degrees per second": np.pi / 180, "revolutions per minute": np.pi / 30},
    "m": {"millimetres": 1e-3, "centimetres": 1e-2, "inches": 0.0254, "feet": 0.3048},
    "m/s": {"millimetres per second": 1e-3, "kilometres per hour": 1 / 3.6},
    "m/s^2": {"multiples of g": 9.80665},
}


class Cause(NamedTuple):
    """A change of the model or the data that explains residuals.

    **Attributes:** `text`; `explained`, the part of the sum of squares above that of the best cause
    that it removes; `values` and `std` of its parameters, empty for signs, units and exchanges.
    """

    text: str
    explained: float
    values: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


class _Refit(NamedTuple):
    suspect: Suspect
    cost: float
    values: np.ndarray
    std: np.ndarray

    def cause(self, explained: float) -> Cause:
        """Return the cause, with its values in the text."""
        pairs = zip(self.values.tolist(), self.std.tolist(), strict=True)
        pairs = [pair for pair in pairs if pair[1] > 0]  # The others have no effect.
        numbers = ", ".join(f"{estimate_text(x, s)} +- {std_text(s)}" for x, s in pairs)
        text = self.suspect.text.format(f"{numbers} {self.suspect.unit}".strip())
        return Cause(text, explained, tuple(x for x, _ in pairs), tuple(s for _, s in pairs))


def find_causes(optimum: Optimum, noise_is_known: bool) -> tuple[Cause, ...]:
    """Return what explains the residuals of a fit best, at most three, the best first.

    Each suspect is added to the fit alone: what the model may lack (friction, loads, springs, other
    gains and delays of motors, gravity, masses, points, start), errors of sensors (bias, drift,
    scale, delay, clock, mounting, jump, play), and if residuals are large other signs, units and
    exchanges. Suspects are ranked by the sum of squares after a refit with a penalty of log(N) for
    each number (Schwarz's criterion). None is returned for prediction errors and robust losses, and
    if the best suspect removes less than a twentieth of the sum of squares or what is by chance.
    """
    problem, runs = optimum.problem, optimum.runs
    if problem.predictor is not None or not isinstance(optimum.search.loss, Squares):
        return ()
    residuals = optimum.evaluate().residuals
    is_wrong = runs.contradict(residuals)
    cost = float(np.sum(np.asarray(residuals) ** 2))
    refits = _refit_data(optimum) if is_wrong else []
    if not any(refit.cost < _NEARLY_ALL * cost for refit in refits):
        refits += _refit_suspects(optimum, is_wrong)
    least = min((refit.cost for refit in refits), default=np.inf)
    scale = max(least / runs.num_samples, 1.0 if noise_is_known else 1e-300)
    penalty = scale * np.log(runs.num_samples)
    if cost - least < max(_LEAST * cost, _SURE * scale + penalty):
        return ()
    refits.sort(key=lambda refit: refit.cost + penalty * len(refit.values))
    parts = [(cost - refit.cost) / (cost - least) for refit in refits]
    return tuple(
        refit.cause(p) for refit, p in list(zip(refits, parts, strict=True))[:3] if p > _BEHIND
    )


def _rebuild(runs: Runs, values: Sequence[np.ndarray], factors: Sequence[Any]) -> Runs:
    """Return the runs with other samples, and weights divided by factors of each sensor."""
    weights = [w / f for w, f in zip(runs.weights, factors, strict=True)]
    return dataclasses.replace(runs, values=tuple(values), weights=tuple(weights))


def _refit_data(optimum: Optimum) -> list[_Refit]:
    """Return refits with other signs, units and exchanged channels and sensors."""
    runs, problem = optimum.runs, optimum.problem
    values = [np.asarray(v) for v in runs.values]
    refits, ones = [], [1.0] * len(values)
    names = np.array([optimum.table.labels[k] for k in optimum.table.fitted_indices])
    plain = _make_trial(problem, optimum, names, np.ones(len(names), bool))

    def refit(text: str, changed: Sequence[np.ndarray], factors: Sequence[float]) -> None:
        new = problem.with_samples(_rebuild(runs, changed, factors))
        columns = _Columns(Suspect(text, ()), np.zeros(0, int))
        found = _refit(plain._replace(problem=new), columns, plain.points[0])
        refits.extend([] if found is None else [found])

    def replace(k: int, value: np.ndarray) -> list[np.ndarray]:
        return [value if i == k else v for i, v in enumerate(values)]

    for k, sensor in enumerate(runs.sensors):
        if sensor.value_shape not in ((), (len(sensor.channels),)):
            continue
        refit(f"the {sensor.name} has the opposite sign", replace(k, -values[k]), ones)
        unit = sensor.unit_in(problem.model)
        for other, factor in _FACTORS.get(unit, {}).items():
            factors = [factor if i == k else 1.0 for i in range(len(values))]
            text = f"the {sensor.name} is in {other}, not {unit}"
            refit(text, replace(k, values[k] * factor), factors)
        size = len(sensor.channels)
        for i in range(size if size > 1 else 0):
            flipped = values[k].copy()
            flipped[..., i] *= -1
            text = f"the channel {sensor.channels[i]} of the {sensor.name} has the opposite sign"
            refit(text, replace(k, flipped), ones)
            for j in range(i):
                order = np.arange(size)
                order[[i, j]] = j, i
                names = f"{sensor.channels[j]} and {sensor.channels[i]}"
                text = f"the channels {names} of the {sensor.name} are exchanged"
                refit(text, replace(k, values[k][..., order]), ones)
        for j in range(k):
            if type(runs.sensors[j]) is type(sensor) and values[j].shape == values[k].shape:
                swapped = replace(k, values[j])
                swapped[j] = values[k]
                text = f"the {runs.sensors[j].name} and the {sensor.name} are exchanged"
                refit(text, swapped, ones)
    return refits


class _Trial(NamedTuple):
    """A least-squares problem that is refitted.

    **Attributes:** `problem`; `labels` of its coordinates (U,); `fitted`, which are those of the
    fit, not of suspects; `points`, coordinates of the start and of the optimum of the fit;
    `limits` of the coordinates, (2, U), or `None`; `num_shared`, of shared coordinates.
    """

    problem: FitProblem
    labels: np.ndarray
    fitted: np.ndarray
    points: tuple[np.ndarray, ...]
    limits: np.ndarray | None
    num_shared: int

    def rows(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return residuals (B, N), their derivatives (B, N, U) at coordinates, and these, clipped.

        Residuals of a run that cannot be simulated are not finite.
        """
        x = x if self.limits is None else np.clip(x, *self.limits)
        shared, per_run = (
            x[: self.num_shared],
            x[self.num_shared :].reshape(self.problem.num_runs, -1),
        )
        evaluation = evaluate(self.problem, jnp.asarray(shared), jnp.asarray(per_run))
        r = np.array(evaluation.residuals)
        r[~np.asarray(evaluation.okay)] = np.nan
        J = separate_runs(np.asarray(evaluation.coordinate_rows()), self.num_shared, np)
        return r, J.reshape(*r.shape, -1), x


def _make_trial(
    problem: FitProblem, optimum: Optimum, labels: np.ndarray, fitted: np.ndarray
) -> _Trial:
    start, limits = problem.start_coordinates(), problem.limits()
    points = []
    for point in (
        optimum.problem.start_coordinates(),
        (optimum.minimum.shared, optimum.minimum.per_run),
    ):
        x = _flat(start)
        x[fitted] = _flat(point)
        points.append(x)
    if limits is not None:
        limits = np.stack(
            [_flat([part.lower for part in limits]), _flat([part.upper for part in limits])]
        )
    return _Trial(problem, labels, fitted, tuple(points), limits, start[0].size)


def _flat(arrays: Sequence[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(array).reshape(-1) for array in arrays])


def _extend_problem(optimum: Optimum) -> tuple[_Trial, list[Suspect]]:
    """Return the fit with all that its model may lack as parameters, and the suspects."""
    problem, runs = optimum.problem, optimum.runs

    def of_run(b: int, tree: Any) -> Any:
        return jax.tree.map(lambda x: x[b], tree)

    first = [*problem.shared, *(x[0] for x in problem.runs.per_run)]
    experiment = problem.experiment(first, of_run(0, problem.runs))
    model, trials, suspects = extend(problem.model, experiment, problem.parameters)
    states = [of_run(b, problem.runs.state0) for b in range(problem.num_runs)]
    parameters = [*problem.shared_parameters, *trials, *problem.per_run_parameters]
    new, table, _ = make_problem(model, runs, states, parameters, problem.simulation)
    names = [p.name for p in problem.per_run_parameters]
    given = dict(zip(names, problem.runs.per_run, strict=True))
    own = zip(new.per_run_parameters, new.runs.per_run, strict=True)
    data = dataclasses.replace(
        new.runs,
        per_run=tuple(given.get(p.name, leaf) for p, leaf in own),
        whitening=problem.runs.whitening,
    )
    shared = (*problem.shared, *new.shared[len(problem.shared) :])
    new = dataclasses.replace(new, shared=shared, runs=data)
    labels = np.array([table.labels[k] for k in table.fitted_indices])
    fitted = ~np.char.startswith(labels, "trial ")
    return _make_trial(new, optimum, labels, fitted), suspects


class _Columns(NamedTuple):
    """A suspect and its derivatives: `own`, coordinates of the problem, or `change(r)`, a function
    of the residuals (B, N) that returns the change of residuals by a sensor, (B, N, m)."""

    suspect: Suspect
    own: np.ndarray
    change: Callable[[np.ndarray], np.ndarray] | None = None


def _sensor_columns(optimum: Optimum, problem: FitProblem) -> list[_Columns]:
    """Return the suspects of each sensor, and a delay of all."""
    runs, found, delays = optimum.runs, [], []
    ts, none = np.asarray(runs.ts), np.zeros(0, int)
    sizes = np.cumsum([0, *(w[0].size for w in runs.weights)])
    for k, sensor in enumerate(runs.sensors):
        weights, measured = np.asarray(runs.weights[k]), np.asarray(runs.values[k])
        if measured.size != weights.size:
            continue

        def change(r, columns, w=weights, measured=measured, rows=slice(*sizes[k : k + 2])):
            plain = np.where(w > 0, r[:, rows].reshape(w.shape) / np.where(w > 0, w, 1.0), 0.0)
            changes = w[..., None] * columns(measured.reshape(w.shape) + plain)
            full = np.zeros((*r.shape, changes.shape[-1]))
            full[:, rows] = changes.reshape(*full[:, rows].shape)
            if not problem.runs.whitening:
                return full
            return np.asarray(jax.vmap(lambda run, x: run.whiten(x))(problem.runs, full))

        suspects = sensor_suspects(sensor.name, sensor.unit_in(problem.model), sensor.channels, ts)
        changes = [functools.partial(change, columns=columns) for _, columns in suspects]
        found += [_Columns(s, none, c) for (s, _), c in zip(suspects, changes, strict=True)]
        delays.append(changes[0])
    if len(delays) > 1:
        all_late = Suspect("all sensors are late by {}", (), "s")
        found.append(_Columns(all_late, none, lambda r: np.sum([d(r) for d in delays], axis=0)))
    return found


def _refit_suspects(optimum: Optimum, is_wrong: bool) -> list[_Refit]:
    """Refit with the suspects that promise most at the optimum, and those with starts of their
    own.

    **Arguments:** `is_wrong`, whether residuals are as large as readings.
    """
    trial, suspects = _extend_problem(optimum)
    names = [(label, re.split(r"[\[:]", label)[0]) for label in trial.labels]
    columns = [
        _Columns(
            s, np.flatnonzero([label in s.labels or name in s.labels for label, name in names])
        )
        for s in suspects
    ]
    columns += _sensor_columns(optimum, trial.problem)
    point = trial.points[0 if is_wrong else 1]  # The optimum of a wrong model may be absurd.
    r, rows, _ = trial.rows(point)
    if not np.isfinite(r).all():
        return []
    flat = rows.reshape(r.size, -1)
    basis = _orthonormal(flat[:, trial.fitted])
    rest = r.reshape(-1) - basis @ (basis.T @ r.reshape(-1))

    def promise(c: _Columns) -> float:
        G = flat[:, c.own] if c.change is None else c.change(r).reshape(r.size, -1)
        Q = _orthonormal(G - basis @ (basis.T @ G), float(np.linalg.norm(G)))
        return float(np.sum((Q.T @ rest) ** 2)) - np.log(r.size) * Q.shape[1]

    columns.sort(key=promise, reverse=True)
    best: dict[str, _Columns] = {}
    for c in columns:  # The best time at which a sensor may jump.
        best.setdefault(c.suspect.text.split(" at t =")[0], c)
    refits = []
    for n, c in enumerate(best.values()):
        starts = [0.0] if n < _REFITTED else []
        starts += c.suspect.starts if is_wrong else []
        found = [_refit(trial, c, point, start) for start in starts]
        found = [refit for refit in found if refit is not None and c.suspect.admits(refit.values)]
        if found:
            refits.append(min(found, key=lambda refit: refit.cost))
    return refits


def _orthonormal(G: np.ndarray, size: float = 0.0) -> np.ndarray:
    """Return an orthonormal basis of the columns, relative to their sizes or to `size`."""
    norms = np.linalg.norm(G, axis=0)
    norms = np.where(norms > 1e-6 * size, norms, np.inf)
    U, s, _ = np.linalg.svd(G / norms, full_matrices=False)
    return U[:, s > 1e-6 * max(s.max(initial=0.0), 1e-300)]


def _refit(trial: _Trial, c: _Columns, x: np.ndarray, start: float = 0.0) -> _Refit | None:
    """Minimise over the coordinates of the fit and of one suspect, by Levenberg-Marquardt."""
    free = np.union1d(np.flatnonzero(trial.fitted), c.own)
    x, zero, damping = x.copy(), x[c.own].copy(), 1e-3
    x[c.own] = zero * (1 + start) if zero.any() else start
    phi, last = None, None
    for _ in range(_STEPS):
        r, rows, x = trial.rows(x)
        J = rows.reshape(r.size, -1)[:, free]
        if c.change is not None:
            G = c.change(r).reshape(r.size, -1)
            phi = np.zeros(G.shape[1]) if phi is None else phi
            r, J = r + (G @ phi).reshape(r.shape), np.concatenate([J, G], axis=1)
        cost = float(np.sum(r**2))
        if np.isfinite(cost) and np.isfinite(J).all() and (last is None or cost < last[0]):
            is_done = last is not None and last[0] - cost < _ENOUGH * cost
            last, damping = (cost, x, phi, r, J), damping / 5
            if is_done:
                break
        elif last is None:
            return None
        else:
            damping *= 8
        cost, x, phi, r, J = last
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > _NO_EFFECT * np.sqrt(cost), size, 1.0)
        step = (
            -np.linalg.lstsq(
                np.concatenate([J / size, np.sqrt(damping) * np.eye(len(size))]),
                np.concatenate([r.reshape(-1), np.zeros(len(size))]),
                rcond=None,
            )[0]
            / size
        )
        x, moved = x.copy(), len(free)
        x[free] += step[:moved]
        phi = None if phi is None else phi + step[moved:]
    assert last is not None
    cost, x, phi, r, J = last
    size = np.linalg.norm(J, axis=0)
    size = np.where(size > _NO_EFFECT * np.sqrt(cost), size, np.inf)
    inverse = np.linalg.pinv(J / size, rcond=1e-9)
    variance = np.sum(inverse**2, axis=1) / size**2 * cost / max(r.size - len(size), 1)
    own = np.isin(free, c.own) if phi is None else np.arange(J.shape[1]) >= len(free)
    values = x[c.own] - zero if phi is None else phi
    return _Refit(c.suspect, cost, values, np.sqrt(variance[own]))
