"""Periodic trajectories that excite the base parameters of a tree, within limits."""

import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import ArrayLike

from ...formulations import AbstractFormulation
from ...io.files import write_text
from ...mechanics import System, rate_labels
from ...signals.fourier import FourierSeries
from ..regression.base_parameters import BaseParameters
from ..regression.regressor import check_tree
from .motion_limits import MotionLimits, WorkspaceBox, stack_limits
from .periodic import PeriodicMotion, TreeRows
from .trajectory_search import search_trajectory

# Samples per period of the highest harmonic at which limits are imposed, and checked.
_COARSE, _FINE = 8, 80


@dataclasses.dataclass(frozen=True, repr=False)
class Trajectory:
    """A periodic motion of a tree for the estimation of its base parameters.

    **Attributes:**

    - `system`, `rows`: the tree, and the rows of its inverse dynamics.
    - `labels`: of the coordinates, (f,).
    - `period`: its length, s.
    - `motion`: coordinates as functions of time.
    - `base`: the base parameters that it determines.
    - `condition`: of the columns of unit length, see `BaseParameters.condition`.
    - `score`: mean logarithm of the information on the base parameters, by which trajectories of
      one design compare.
    - `reached`: for each kind of limit the largest part of it that is used, on a grid of 80 points
      per period of the highest harmonic; at most 1.
    - `converged`: whether the search met its tolerance.
    """

    system: System
    labels: tuple[str, ...]
    period: float
    motion: PeriodicMotion
    rows: TreeRows
    base: BaseParameters
    condition: float
    score: float
    reached: dict[str, float]
    converged: bool

    def __repr__(self) -> str:
        used = ", ".join(f"{name} {100 * part:.1f} %" for name, part in self.reached.items())
        lines = [
            f"Trajectory of {len(self.labels)} coordinates, period {self.period:g} s, "
            f"{self.motion.num_harmonics} harmonics",
            f"{self.base.rank} base parameters, condition {self.condition:.3g}, score "
            f"{self.score:.4g}",
            f"limits used: {used}",
        ]
        if not self.converged:
            lines.append("Not converged: the score was still growing. Allow more iterations.")
        return "\n".join(lines)

    def series(self, label: str) -> FourierSeries:
        """Return a coordinate as a law, such as the `motion` of a joint.

        **Errors:** `ValueError` for an unknown label.
        """
        if label not in self.labels:
            raise ValueError(
                f"`Trajectory.series` takes one of {list(self.labels)}; got {label!r}."
            )
        return self.motion.series(self.labels.index(label))

    def samples(self, ts: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coordinates and their first and second derivatives at times (T,) s, (T, f) each.

        For a free rotation they are its rotation vector and the derivatives of that vector.
        """
        return self.motion(np.asarray(ts, float))

    def torques(self, ts: ArrayLike) -> np.ndarray:
        """Return the torques at times (T,) s, (T, f), of the nominal parameters."""
        return self.rows.evaluate_bounded(np.concatenate(self.samples(ts), axis=1))[0]

    def to_csv(self, path: str | os.PathLike[str], rate: float, force: bool = False) -> None:
        """Write one period as a CSV file: `time_s`, and q, v, a and tau of each coordinate.

        **Arguments:** `path`, of a text file; `rate`, of the samples, Hz, from the start to the end
        of the period; `force`, whether to replace an existing file.
        **Errors:** `ValueError` for a rate that does not resolve the highest harmonic;
        `FileExistsError` without `force`; `OSError`.
        """
        highest = self.motion.num_harmonics / self.period
        if not rate > 2 * highest:
            raise ValueError(
                f"`to_csv(rate=...)` must be above {2 * highest:g} Hz, twice the highest harmonic; "
                f"got {rate}."
            )
        ts = np.linspace(0.0, self.period, int(np.ceil(self.period * rate)) + 1)
        parts = [*self.samples(ts), self.torques(ts)]
        names = [f"{k}.{label}" for k in ("q", "v", "a", "tau") for label in self.labels]
        table = np.column_stack([ts, *parts])
        lines = [",".join(["time_s", *names])]
        lines += [",".join(f"{x:.17g}" for x in row) for row in table]
        write_text(path, "\n".join(lines) + "\n", force)


def design_trajectory(
    model: System | AbstractFormulation,
    limits: Mapping[str, MotionLimits],
    *,
    period: float,
    harmonics: int = 5,
    workspace: Sequence[WorkspaceBox] = (),
    terms: Sequence[str] = (),
    nominal: Mapping[str, float] | None = None,
    from_rest: bool = True,
    num_starts: int = 3,
    max_iterations: int = 100,
    seed: int = 0,
) -> Trajectory:
    r"""Design a periodic motion that determines the base parameters of a tree as well as possible.

    Every coordinate is a finite Fourier series. Sequential quadratic programming (SLSQP of SciPy)
    with exact derivatives maximises $\frac{1}{r}\log\det(W^T W)$, with the columns $W$ of $r$
    combinations of the base parameters in the inverse dynamics, weighted by the torque limits, over
    one period. All limits are imposed at 8 samples per period of the highest harmonic, and checked
    at 80; where one is exceeded between samples, it is tightened there and the search goes on. The
    torques are those of the masses and inertias of the model.

    Coordinates are joint coordinates. A ball joint has its rotation vector, and a free body its
    position and its rotation vector: something else moves it, such as the flange of another
    robot, and the torques are the wrench that it takes. The motion of a floating base that nothing
    drives follows from the dynamics; plan it by `design_experiment`.

    **Arguments:**

    - `model`, a tree; its forces other than gravity are known, and count for the torques.
    - `limits` of every coordinate, by its name in `rj.rate_labels(system)`. For a model file
      they are `{name: MotionLimits(x.position, x.rate, torque=x.effort) for name, x in
      robot.limits.items()}`.
    - `period`: its length, s.
    - `harmonics`: their number; the highest has the frequency harmonics / period.
    - `workspace`: boxes that points of bodies must not leave.
    - `terms`: torque terms of joints that are to be estimated too, as in `joint_data`.
    - `nominal`: values of such terms for the torques, by label, such as `{"hip.viscous": 2.0}`.
    - `from_rest`: whether rates and accelerations are zero at the start of the period.
    - `num_starts`, `seed`: number and seed of the random starts.
    - `max_iterations`: for each start.

    **Returns:** a `Trajectory`, of the best start.
    **Errors:** `ValueError` for arguments that do not fit, for models that are no trees, and if no
    start leads to a motion within the limits.
    **Source:** Swevers et al., IEEE Trans. Robotics and Automation 13 (1997) 730; base parameters:
    Gautier, J. Robotic Systems 8 (1991) 485.
    """
    system = check_tree(model)
    labels = rate_labels(system)
    bounds = stack_limits(limits, labels)
    if not 0 < period < np.inf:
        raise ValueError(f"`design_trajectory(period=...)` must be positive, s; got {period}.")
    if harmonics < 2 or num_starts < 1 or max_iterations < 1:
        raise ValueError(
            "`design_trajectory` needs at least 2 harmonics, 1 start and 1 iteration; got "
            f"{harmonics}, {num_starts} and {max_iterations}."
        )
    rows = TreeRows(system, labels, workspace, terms, nominal or {}, bounds)
    coarse, fine = (period * np.arange(n * harmonics) / (n * harmonics) for n in (_COARSE, _FINE))
    found = search_trajectory(
        rows, bounds, workspace, period, harmonics, (coarse, fine), from_rest, num_starts,
        max_iterations, seed,
    )  # fmt: skip
    return Trajectory(
        system=system,
        labels=labels,
        period=float(period),
        rows=rows,
        base=rows.base,
        condition=rows.condition(np.concatenate(found.motion(fine), axis=1)),
        **found._asdict(),
    )
