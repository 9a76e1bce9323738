"""Search for a periodic motion of largest information within limits."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .motion_limits import WorkspaceBox, box_bounds
from .periodic import PeriodicMotion, TreeRows, fourier_basis

# Number of times that limits are tightened because the motion exceeds them between samples.
_NUM_ROUNDS = 6
# Relative excess over a limit that counts as round-off.
_ROUND_OFF = 1e-9
# Tolerance of the search, of the score and of the limits.
_TOLERANCE = 1e-5
# Relative distance that the search keeps from the limits, to allow for `_TOLERANCE`.
_MARGIN = 1e-4


class FoundTrajectory(NamedTuple):
    """A motion within the limits, its score, the fraction of limits it uses, and convergence."""

    motion: PeriodicMotion
    score: float
    reached: dict[str, float]
    converged: bool


class _Problem:
    """Score and limits as functions of free coefficients, flat, on a grid of times.

    A limit is a row 1 - g(x) >= 0, with g = 1 at the limit.
    """

    def __init__(
        self,
        rows: TreeRows,
        bounds: Mapping[str, np.ndarray],
        boxes: Sequence[WorkspaceBox],
        period: float,
        harmonics: int,
        from_rest: bool,
    ):
        self.rows, self.bounds, self.period, self.harmonics = rows, bounds, period, harmonics
        self.box = box_bounds(boxes)
        count = 2 * harmonics + 1
        start = fourier_basis(np.zeros(1), period, harmonics)[1:, 0]
        # Basis of the coefficients for which rate and acceleration at the start are zero.
        null = np.linalg.svd(start)[2][2:].T if from_rest else np.eye(count)
        self.null, self.shape = null, (null.shape[1], len(bounds["low"]))
        self.middle = 0.5 * (bounds["low"] + bounds["high"])
        self.half = 0.5 * (bounds["high"] - bounds["low"])

        b, (low, high) = bounds, self.box
        limited = {k: np.isfinite(b[k]) for k in ("rate", "acceleration", "torque")}
        always = np.ones(len(b["low"]), bool)
        # Whether there is an upper and a lower limit, by kind.
        self.sides = {"position": (always, always)}
        self.sides |= {k: (x, x) for k, x in limited.items()}
        self.sides["workspace"] = (np.isfinite(high), np.isfinite(low))

    def largest(self, kind: str, used: np.ndarray) -> np.ndarray:
        """Return the largest used fraction of the existing limits of a kind, (n,)."""
        upper, lower = self.sides[kind]
        above = np.where(upper, used, -np.inf).max(axis=0)
        return np.maximum(above, np.where(lower, -used, -np.inf).max(axis=0))

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return the coefficients (2 K + 1, f)."""
        c = self.null @ z.reshape(self.shape) * self.half
        c[0] += self.middle
        return c

    def inputs(self, z: np.ndarray, ts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates and derivatives (T, 3 f), and the basis (3, T, m)."""
        basis = fourier_basis(ts, self.period, self.harmonics)
        c = self.coefficients(z)
        return np.concatenate([part @ c for part in basis], axis=1), basis @ self.null

    def chain(self, slopes: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Convert derivatives in the inputs of one sample, (..., 3 f), to those in `z`, (..., m f).

        **Arguments:** `slopes` (T, ..., 3 f); `basis` (3, T, m).
        """
        f = self.shape[1]
        parts = slopes.reshape(*slopes.shape[:-1], 3, f)
        out = np.einsum("t...df,dtm->t...mf", parts, basis) * self.half
        return out.reshape(*out.shape[:-2], -1)

    def used(self, z: np.ndarray, ts: np.ndarray) -> dict[str, np.ndarray]:
        """Return the used fraction of the limits by kind, (T, n)."""
        x, _ = self.inputs(z, ts)
        q, v, a = np.split(x, 3, axis=1)
        torques, points = self.rows.evaluate_bounded(x)
        b, (low, high) = self.bounds, self.box
        center, size = _box_center(low, high)
        return {
            "position": (q - self.middle) / self.half,
            "rate": v / b["rate"],
            "acceleration": a / b["acceleration"],
            "torque": torques / b["torque"],
            "workspace": (points - center) / size,
        }

    def used_derivatives(self, z: np.ndarray, ts: np.ndarray) -> dict[str, np.ndarray]:
        """Return derivatives of `used` with respect to `z`, (T, n, m f) by kind."""
        x, basis = self.inputs(z, ts)
        f = self.shape[1]
        # The coordinates and their derivatives are linear in `z`: (3, T, f, m f).
        linear = np.einsum("dtm,fg->dtfmg", basis, np.diag(self.half)).reshape(3, len(ts), f, -1)
        nonlinear = self.chain(self.rows.differentiate_bounded(x), basis)
        b = self.bounds
        _, size = _box_center(*self.box)
        return {
            "position": linear[0] / self.half[:, None],
            "rate": linear[1] / b["rate"][:, None],
            "acceleration": linear[2] / b["acceleration"][:, None],
            "torque": nonlinear[:, :f] / b["torque"][:, None],
            "workspace": nonlinear[:, f:] / size[:, None],
        }

    def score(self, z: np.ndarray, ts: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the score and its derivatives with respect to `z`."""
        x, basis = self.inputs(z, ts)
        value, slope = self.rows.score(x)
        return value, self.chain(slope, basis).sum(axis=0)


def _box_center(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and half size of boxes; a box with one wall is measured from 1 m inside."""
    none = ~(np.isfinite(low) | np.isfinite(high))
    low, high = np.where(none, 0.0, low), np.where(none, 0.0, high)
    # A missing wall is 2 m from the other one.
    below = np.where(np.isfinite(low), low, high - 2.0)
    above = np.where(np.isfinite(high), high, low + 2.0)
    return 0.5 * (below + above), np.where(none, np.inf, 0.5 * (above - below))


def search_trajectory(
    rows: TreeRows,
    bounds: Mapping[str, np.ndarray],
    boxes: Sequence[WorkspaceBox],
    period: float,
    harmonics: int,
    grids: tuple[np.ndarray, np.ndarray],
    from_rest: bool,
    num_starts: int,
    max_iterations: int,
    seed: int,
) -> FoundTrajectory:
    """Return the best motion of all starts; see `design_trajectory` for the arguments.

    **Errors:** `ValueError` if no start leads to a motion within the limits.
    """
    problem = _Problem(rows, bounds, boxes, period, harmonics, from_rest)
    rng = np.random.default_rng(seed)
    best, worst = None, {}
    for _ in range(num_starts):
        # Random coefficients within the limits of positions, rates and accelerations.
        z = rng.normal(size=problem.shape)
        used = problem.used(z.ravel(), grids[1])
        linear = [np.abs(used[k]).max(axis=0) for k in ("position", "rate", "acceleration")]
        z = (0.7 * z / np.maximum(np.max(linear, axis=0), 1e-12)).ravel()
        found, excess = _search(problem, z, grids, max_iterations)
        worst = excess if not worst or max(excess.values()) < max(worst.values()) else worst
        if found is not None and (best is None or found.score > best.score):
            best = found
    if best is None:
        kinds = {name: f"{part:.3g}" for name, part in worst.items() if part > 1}
        raise ValueError(
            f"`design_trajectory`: no motion within the limits was found from {num_starts} starts; "
            f"the best one exceeds them by the factors {kinds}. Widen the limits, use a "
            "longer period, fewer harmonics or more starts. Gravity alone may exceed a torque "
            "limit."
        )
    return best


def _search(
    problem: _Problem, z: np.ndarray, grids: tuple[np.ndarray, np.ndarray], max_iterations: int
) -> tuple[FoundTrajectory | None, dict[str, float]]:
    """Return the motion from one start, `None` if it exceeds a limit, and the used fractions."""
    # Imported here because it takes long.
    from scipy.optimize import minimize

    coarse, fine = grids
    keep = np.concatenate(
        [
            np.tile(side, (len(coarse), 1)).ravel()
            for k in problem.sides
            for side in problem.sides[k]
        ]
    )
    margins: dict[str, Any] = {}
    reached: dict[str, float] = {}
    for _ in range(_NUM_ROUNDS):

        def rows(z: np.ndarray, margins: Mapping[str, Any] = dict(margins)) -> np.ndarray:
            used = problem.used(z, coarse)
            kept = [
                (1 - margins.get(k, _MARGIN) - x, 1 - margins.get(k, _MARGIN) + x)
                for k, x in used.items()
            ]
            return np.concatenate([part.ravel() for pair in kept for part in pair])

        def slopes(z: np.ndarray) -> np.ndarray:
            used = problem.used_derivatives(z, coarse)
            return np.concatenate(
                [s * x.reshape(-1, x.shape[2]) for x in used.values() for s in (-1, 1)]
            )

        result = minimize(
            lambda z: tuple(-x for x in problem.score(z, coarse)),
            z,
            jac=True,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda z, keep=keep, rows=rows: rows(z)[keep],
                "jac": lambda z, keep=keep: slopes(z)[keep],
            },
            options={"maxiter": max_iterations, "ftol": _TOLERANCE},
        )
        z = np.asarray(result.x)
        used = {k: problem.largest(k, x) for k, x in problem.used(z, fine).items() if x.size}
        reached = {k: float(x.max()) for k, x in used.items() if x.max() > 0}
        if max(reached.values()) <= 1 + _ROUND_OFF:
            motion = PeriodicMotion(problem.coefficients(z), problem.period)
            score = problem.score(z, coarse)[0]
            return FoundTrajectory(motion, score, reached, bool(result.success)), reached
        for kind, part in used.items():
            excess = np.maximum(part - 1, 0.0)
            margins[kind] = margins.get(kind, _MARGIN) + np.where(
                excess > 0, 1.2 * excess + _MARGIN, 0.0
            )
    return None, reached
