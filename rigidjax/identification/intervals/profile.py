"""Profile likelihoods by continuation."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ...io.document import interval_text
from ..search.least_squares import Minimum
from ..search.losses import Squares
from ..search.optimum import Optimum
from ..transforms import Orientation
from .constrained_fit import HeldComponent

# Increase of the root of the statistic from one point of the grid to the next.
_STEP = 0.5
# Error of the root of the statistic at the ends of the interval, and iterations to reach it.
_EXACT, _ITERATIONS = 1e-4, 12
# Largest number of points on each side.
_MAX_POINTS = 60
# Distance to a bound, in standard deviations, at which it counts as reached.
_REACHED = 1e-3
# Decrease of the deviance along the profile that shows another minimum.
_LOWER = 1e-2


def acceptance(root: float, below: float, above: float, freedom: float = np.inf) -> float:
    r"""Return the probability that the root of the likelihood ratio is below a value.

    The true value of a parameter has distances to its bounds of `below` and `above` standard
    deviations. An unbounded estimate is normal around it; an estimate beyond a bound is moved
    there. The statistic is the decrease of the deviance from the true value to the estimate,
    $q = z^2$ inside the bounds and $d\,(2|z| - d)$ for an estimate that is moved to the bound at
    the distance $d$. Exact for linear models.

    **Arguments:** `root`, $\sqrt q$; `below`, `above`, not negative; `freedom`, degrees of freedom
    of the estimated noise, infinite for given noise.
    **Source:** Cowan, Cranmer, Gross, Vitells, Eur. Phys. J. C 71 (2011) 1554, section 3.4, for one
    bound.
    """
    from scipy import special

    probability = 1.0
    for distance in (below, above):
        reach = root if root <= distance else None
        if reach is None and distance > 0:
            reach = 0.5 * (distance + root**2 / distance)
        if reach is not None:
            is_normal = np.isinf(freedom)
            tail = special.ndtr(-reach) if is_normal else special.stdtr(freedom, -reach)
            probability -= float(tail)
    return probability


def critical_root(level: float, below: float, above: float, freedom: float = np.inf) -> float:
    """Return the root of the likelihood ratio that is exceeded with probability 1 - `level`.

    **Arguments:** see `acceptance`.
    """
    from scipy import optimize

    if not acceptance(0.0, below, above, freedom) < level:
        return 0.0
    upper = 1.0
    while acceptance(upper, below, above, freedom) < level:
        upper *= 2.0
    root: Any = optimize.brentq(lambda x: acceptance(x, below, above, freedom) - level, 0.0, upper)
    return float(root)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Profile:
    r"""Profile likelihood of one estimate.

    **Attributes:**

    - `label`, `unit`, `estimate`: of the parameter.
    - `grid` (P,): values of the parameter, increasing.
    - `statistic` (P,): increase of the deviance (the sum of squares over the variance) from the
      optimum to the constrained optimum at each value, after all other parameters are fitted again.
    - `paths` (P, k): values of all estimates there, in the order of `Fit.labels`.
    - `level`: the probability, in (0, 1).
    - `interval`: the values that a likelihood-ratio test at this level accepts. It ends at a bound
      of the parameter if all values up to it are accepted, and is infinite where the data do not
      limit the parameter.
    - `linearised`: the interval of the linearisation, of `Fit.confidence_intervals`.
    - `notes`: reasons not to trust the interval.
    """

    label: str
    unit: str
    estimate: float
    grid: Float[np.ndarray, " P"]
    statistic: Float[np.ndarray, " P"]
    paths: Float[np.ndarray, "P k"]
    level: float
    interval: tuple[float, float]
    linearised: tuple[float, float]
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Sentence that compares the interval with that of the linearisation."""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.label}: the {100 * self.level:g} % interval of the profile is "
            f"{_text(self.interval)}{unit}, that of the linearisation {_text(self.linearised)}"
            f"{unit}."
        )

    def __repr__(self) -> str:
        return "\n".join([self.sentence, *self.notes])


class _Point(NamedTuple):
    """Constrained optimum: value of the parameter, root of the statistic, excess, and minimum.

    `excess` is the root minus its critical value.
    """

    value: float
    root: float
    excess: float
    minimum: Minimum


def profile(
    optimum: Optimum,
    label: str,
    *,
    level: float,
    std: float,
    linearised: tuple[float, float],
    variance: float,
    freedom: float,
) -> Profile:
    """Follow the constrained optimum on both sides of an estimate; see `Fit.profile`.

    **Arguments:** `std`, standard deviation of the estimate; `linearised`, its interval;
    `variance` of a weighted residual; `freedom`, degrees of freedom of the estimated noise,
    infinite for given noise.
    """
    labels = optimum.table.subset(optimum.table.fitted_indices).labels
    if label not in labels:
        raise ValueError(f"`Fit.profile(name=...)` must be one of {labels}; got {label!r}.")
    if not 0 < level < 1:
        raise ValueError(
            f"`Fit.profile(level=...)` lies between 0 and 1, such as 0.95 for 95 %; got {level!r}."
        )
    if isinstance(optimum.parameter_of(label).transform, Orientation):
        raise ValueError(
            f"`Fit.profile(name={label!r})`: a component of an orientation has no value that can "
            "be held. Use the linearised interval or posterior samples."
        )
    if not isinstance(optimum.search.loss, Squares):
        raise ValueError(
            f"`Fit.profile` is for fits by least squares; got the loss "
            f"{type(optimum.search.loss).__name__}. Use posterior samples."
        )
    if not np.isfinite(std):
        raise ValueError(
            f"`Fit.profile(name={label!r})`: the data do not determine this parameter."
        )
    held = HeldComponent.new(optimum, label, std)
    tracer = _Tracer(held, std, variance, freedom, level)
    below, above = tracer.trace(-1), tracer.trace(1)
    points = [*below[::-1], tracer.start, *above]
    order = np.argsort([p.value for p in points])
    points = [points[k] for k in order]
    if min(p.root for p in points) < -np.sqrt(_LOWER):
        best = min(points, key=lambda p: p.root)
        tracer.notes.append(
            f"The sum of squares is lower at {label} = {best.value:.6g}: the fit ended in a local "
            "minimum. Start it there."
        )
    indices = optimum.table.fitted_indices
    return Profile(
        label=label,
        unit=optimum.table.units[held.index],
        estimate=tracer.start.value,
        grid=np.array([p.value for p in points]),
        statistic=np.array([p.root * abs(p.root) for p in points]),
        paths=np.stack([p.minimum.last.components[indices] for p in points]),
        level=level,
        interval=(tracer.ends[-1], tracer.ends[1]),
        linearised=linearised,
        notes=tuple(tracer.notes),
    )


class _Tracer:
    """Continuation from the optimum to both ends of the interval."""

    def __init__(
        self, held: HeldComponent, std: float, variance: float, freedom: float, level: float
    ):
        self.held, self.std, self.variance = held, std, variance
        self.freedom, self.level = freedom, level
        self.notes: list[str] = []
        self.ends: dict[int, float] = {}
        self.start = self._point(held.start)

    def _point(self, minimum: Minimum) -> _Point:
        value = self.held.value(minimum)
        gain = (self.held.cost(minimum) - self.held.cost(self.held.start)) / self.variance
        root = float(np.sign(gain) * np.sqrt(np.abs(gain)))
        lower, upper = self.held.limits
        below, above = (max(x, 0.0) / self.std for x in (value - lower, upper - value))
        critical = critical_root(self.level, below, above, self.freedom)
        return _Point(value, root, root - critical, minimum)

    def trace(self, side: int) -> list[_Point]:
        """Return the points on one side, and store the end of the interval."""
        limit = self.held.limits[0 if side < 0 else 1]
        if side * (limit - self.start.value) <= _REACHED * self.std:
            self.ends[side] = limit
            return []
        points, last = [], self.start
        length = _STEP * np.sqrt(self.variance) / self.held.slope(last.minimum)
        while len(points) < _MAX_POINTS:
            point = self._next(last, side * length, limit)
            if point is None:
                return self._end_open(side, points, "its fits do not converge")
            points.append(point)
            if point.excess > 0:
                return self._find_end(side, points, last)
            if side * (limit - point.value) <= _REACHED * self.std:
                self.ends[side] = limit
                return points
            if abs(point.value - last.value) < 1e-3 * length:
                self.ends[side] = point.value
                self.notes.append(
                    f"{self.held.label} reaches {point.value:.6g}, beyond which no inertia is "
                    "physical."
                )
                return points
            gained = max(point.root - last.root, 0.1 * _STEP)
            length = abs(point.value - last.value) * min(max(_STEP / gained, 0.5), 2.0)
            last = point
        return self._end_open(side, points, f"the data still allow it after {_MAX_POINTS} points")

    def _next(self, last: _Point, change: float, limit: float) -> _Point | None:
        """Return the constrained optimum after a step, halved until the fit converges."""
        for _ in range(4):
            target = last.value + change
            target = min(target, limit) if change > 0 else max(target, limit)
            minimum = self.held.solve(last.minimum, target)
            if minimum is not None:
                return self._point(minimum)
            change *= 0.5
        return None

    def _find_end(self, side: int, points: list[_Point], inner: _Point) -> list[_Point]:
        """Return the points, with further ones added that approach the end of the interval."""
        outer = points[-1]
        heights = [inner.excess, outer.excess]
        for _ in range(_ITERATIONS):
            share = heights[0] / (heights[0] - heights[1])
            target = inner.value + share * (outer.value - inner.value)
            point = self._next(inner, target - inner.value, target)
            if point is None:
                return self._end_open(side, points, "its fits do not converge")
            points.append(point)
            self.ends[side] = point.value
            if abs(point.excess) < _EXACT:
                break
            # The Illinois method: an end that stays counts half.
            if point.excess > 0:
                outer, heights = point, [0.5 * heights[0], point.excess]
            else:
                inner, heights = point, [point.excess, 0.5 * heights[1]]
        return points

    def _end_open(self, side: int, points: list[_Point], reason: str) -> list[_Point]:
        self.ends[side] = side * np.inf
        word = "below" if side < 0 else "above"
        value = points[-1].value if points else self.start.value
        self.notes.append(f"{self.held.label} has no end {word}: beyond {value:.6g} {reason}.")
        return points


def _text(interval: tuple[float, float]) -> str:
    if np.isfinite(interval).all():
        return interval_text(interval)
    return f"{interval[0]:.6g} to {interval[1]:.6g}"
