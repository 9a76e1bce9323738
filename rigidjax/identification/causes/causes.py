"""Search for the cause of residuals that are not white, by refits with one suspect each."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

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
from ..search.uncertainty import contradict
from .suspects import Suspect, extend, sensor_suspects

# Number of suspects that are refitted, of steps of a refit, and relative decrease at its end.
_REFITTED, _STEPS, _ENOUGH = 6, 20, 1e-4
# Part of the sum of squares that the best cause must remove, and part of that for the others.
_LEAST, _BEHIND = 0.05, 0.5
# Reduction of the sum of squares that hundreds of wrong suspects hardly reach, in units of noise.
_SURE = 15.0
# Part of the sum of squares that is left if another sign, unit or order of the data is right.
_NEARLY_ALL = 1e-2
# Change of the residuals by a unit of a component that has no effect, relative.
_NO_EFFECT = 1e-9
# Residuals of a run that fails, relative to those at the start.
_FAILED = 1e3
# Standard deviations, relative to values, above which values are not stated.
_UNKNOWN = 100.0
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
        pairs = list(zip(self.values.tolist(), self.std.tolist(), strict=True))
        known = [(x, s) for x, s in pairs if 0 < s < _UNKNOWN * abs(x)]
        numbers = ", ".join(f"{estimate_text(x, s)} +- {std_text(s)}" for x, s in known)
        numbers = f"{numbers} {self.suspect.unit}".strip() if known else "unknown"
        text = self.suspect.text.format(numbers)
        return Cause(text, explained, tuple(x for x, _ in pairs), tuple(s for _, s in pairs))


def find_causes(optimum: Optimum, noise_is_known: bool) -> tuple[Cause, ...]:
    """Return what explains the residuals of a fit best, at most three, the best first.

    Each suspect is added to the fit alone: what the model may lack (friction, loads, springs, other
    gains and delays of motors, gravity, masses, points, start), errors of sensors (bias, drift,
    scale, delay, clock, mounting, jump, play), and if residuals are large other signs, units and
    exchanges. Suspects are ranked by the sum of squares after a refit with a penalty of log(N) for
    each number (Schwarz's criterion). There is none for prediction errors and robust losses, and
    if the best suspect reduces the sum of squares by less than 5 %, or not more than chance would.
    """
    problem, runs = optimum.problem, optimum.runs
    if problem.predictor is not None or not isinstance(optimum.search.loss, Squares):
        return ()
    residuals = optimum.evaluate().residuals
    is_wrong = contradict(runs, residuals)
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
    plain = _make_trial(problem, optimum)

    def refit(text: str, changed: Sequence[np.ndarray], factors: Sequence[float]) -> None:
        new = problem.with_samples(_rebuild(runs, changed, factors))
        columns = _Columns(Suspect(text, ()), np.zeros(0, int))
        found = _refit(plain._replace(problem=new), columns, plain.start)
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

    **Attributes:** `problem`; `names`, label and parameter of its coordinates (U,); `fitted`, which
    are those of the fit, not of suspects; `start` and `end` of the fit, coordinates (U,) with the
    suspects at zero; `limits` of the coordinates, (2, U); `num_shared`, of shared coordinates.
    """

    problem: FitProblem
    names: list[tuple[str, str]]
    fitted: np.ndarray
    start: np.ndarray
    end: np.ndarray
    limits: np.ndarray
    num_shared: int

    def rows(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals (B, N) and their derivatives (B, N, U) at coordinates.

        Residuals of a run that cannot be simulated are not finite.
        """
        dtype, count = self.problem.runs.ts.dtype, self.num_shared
        shared = jnp.asarray(x[:count], dtype)
        per_run = jnp.asarray(x[count:].reshape(self.problem.num_runs, -1), dtype)
        evaluation = evaluate(self.problem, shared, per_run)
        r = np.array(evaluation.residuals, float)
        r[~np.asarray(evaluation.okay)] = np.nan
        J = separate_runs(np.asarray(evaluation.coordinate_rows(), float), count, np)
        return r, J.reshape(*r.shape, -1)


def _make_trial(problem: FitProblem, optimum: Optimum, suspects: Sequence[str] = ()) -> _Trial:
    """Return the trial of a problem. **Arguments:** `suspects`, names of their parameters."""
    table = problem.component_table(optimum.runs.names)
    chosen = table.fitted_indices
    names = [(table.labels[k], problem.parameter_of(int(table.groups[k])).name) for k in chosen]
    fitted = np.array([name not in suspects for _, name in names])
    own = problem.start_coordinates()
    start, end = _flat(own), _flat(own)
    start[fitted] = _flat(optimum.problem.start_coordinates())
    end[fitted] = _flat((optimum.minimum.shared, optimum.minimum.per_run))
    ends = np.array([-np.inf, np.inf])[:, None] * np.ones(start.size)
    if (limits := problem.limits()) is not None:
        ends = np.stack([_flat([x.lower for x in limits]), _flat([x.upper for x in limits])])
    return _Trial(problem, names, fitted, start, end, ends, own[0].size)


def _flat(arrays: Sequence[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(array, float).reshape(-1) for array in arrays])


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
    new, *_ = make_problem(model, runs, states, parameters, problem.simulation)
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
    return _make_trial(new, optimum, [p.name for p in trials]), suspects


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
    columns = [
        _Columns(s, np.flatnonzero([bool({*names} & {*s.labels}) for names in trial.names]))
        for s in suspects
    ]
    columns += _sensor_columns(optimum, trial.problem)
    point = trial.start if is_wrong else trial.end  # The optimum of a wrong model may be absurd.
    r, rows = trial.rows(point)
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
    for c in columns:
        best.setdefault(c.suspect.group or c.suspect.text, c)
    refits = []
    for n, c in enumerate(best.values()):
        starts = [0.0] if n < _REFITTED else []
        starts += c.suspect.starts if is_wrong else ()
        found = [_refit(trial, c, point, start) for start in starts]
        found = [refit for refit in found if refit is not None]
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
    """Return the least squares over the coordinates of the fit and of one suspect.

    `None` if the start cannot be simulated, and for impossible values.
    **Arguments:** `x`, coordinates; `start` of the suspect, relative to a value that is not zero.
    """
    # Imported here because it takes long.
    from scipy.optimize import least_squares

    free = np.union1d(np.flatnonzero(trial.fitted), c.own)
    x, zero = x.copy(), x[c.own].copy()
    x[c.own] = zero * (1 + start) if zero.any() else start

    @functools.lru_cache(maxsize=4)
    def evaluate_at(data: bytes) -> tuple[np.ndarray, np.ndarray]:
        v = np.frombuffer(data)
        x[free] = np.clip(v[: len(free)], *trial.limits[:, free])
        r, rows = trial.rows(x)
        J = rows.reshape(r.size, -1)[:, free]
        if c.change is not None:
            G = c.change(r).reshape(r.size, -1)
            r, J = r + (G @ v[len(free) :]).reshape(r.shape), np.concatenate([J, G], axis=1)
        return r.reshape(-1), J

    r, _ = trial.rows(x)
    count = 0 if c.change is None else c.change(r).shape[-1]
    first = np.append(x[free], np.zeros(count))
    worst = _FAILED * np.linalg.norm(r) / np.sqrt(r.size)
    if not np.isfinite(worst) or r.size < first.size:
        return None
    found = least_squares(
        lambda v: np.nan_to_num(evaluate_at(v.tobytes())[0], nan=worst), first,
        cast(Any, lambda v: evaluate_at(v.tobytes())[1]),
        method="lm", x_scale="jac", ftol=_ENOUGH, max_nfev=_STEPS,
    )  # fmt: skip
    size = np.linalg.norm(found.jac, axis=0)
    size = np.where(size > _NO_EFFECT * np.sqrt(2 * found.cost), size, np.inf)
    inverse = np.linalg.pinv(found.jac / size, rcond=1e-9)
    freedom = max(found.fun.size - len(size), 1)
    variance = np.sum(inverse**2, axis=1) / size**2 * 2 * found.cost / freedom
    own = np.isin(free, c.own) if c.change is None else np.arange(len(size)) >= len(free)
    values = found.x[own] - (zero if c.change is None else 0.0)
    if c.suspect.is_positive and np.sum(values) < 0:
        return None
    return _Refit(c.suspect, float(2 * found.cost), values, np.sqrt(variance[own]))
