r"""The inertia of a tennis racket from the rates that a phone on its strings measured in flight.

Five tosses, gyroscope only. The model is free rotation with quadratic drag,
$I\dot\Omega = -c|\Omega|\Omega - \Omega \times I\Omega$. Free rotation tells only ratios of the
moments and the drag; the scale rests on $I_3$ (about the handle), which the authors of the data
measured on a torsion pendulum.
"""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike

from ..bodies import FixedPointBody, QuadraticDrag
from ..formulations import AbstractFormulation, NullSpace
from .data.csv import read_csv
from .data.measurements import Measurements
from .fit.identify import identify
from .fit.result import Fit
from .parameters import Experiment, Parameter
from .sensors import Gyroscope
from .transforms import Positive, PrincipalInertia

# Principal moments that the authors measured on pendulums, kg m^2: about the normal of the strings,
# across the handle, about the handle. The first two are known to 3.8e-3 and 5.7e-3, the last to
# 0.076e-3. They violate the triangle inequality.
PENDULUM_INERTIA = (20.7e-3, 18.8e-3, 1.391e-3)
START_DRAG = 1e-5

COLUMNS = ("omega1_rad_s", "omega2_rad_s", "omega3_rad_s")

_FILE = pathlib.Path("datasets", "racket_flips", "flips.csv")


class RacketCase(NamedTuple):
    """The arguments of `rj.identify`."""

    model: AbstractFormulation
    measurements: list[Measurements]
    parameters: tuple[Parameter, ...]


def data_path(path: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """The measured tosses: `path`, or `datasets/racket_flips/flips.csv` beside the package.

    **Errors:** `FileNotFoundError` that asks for the file.
    """
    if path is not None:
        if not pathlib.Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        return pathlib.Path(path)
    beside = pathlib.Path(__file__).resolve().parents[2] / _FILE
    if not beside.is_file():
        raise FileNotFoundError(
            f"The measured tosses are not part of an installed package: there is no {beside}. Get "
            f"{_FILE.as_posix()} from the source repository and name it with `--data FILE` "
            "(in Python `path=...`)."
        )
    return beside


def racket_case(
    path: str | os.PathLike[str] | None = None,
    *,
    inertia: ArrayLike | Sequence[float] = PENDULUM_INERTIA,
    drag: float = START_DRAG,
    start_rates: ArrayLike | Sequence[Sequence[float]] | None = None,
) -> RacketCase:
    r"""Model, measurements and parameters: $I_1$, $I_2$, $c$, and the start rates of each toss.

    **Arguments:** `path`, see `data_path`; `inertia`, start values, (3,) kg m^2, of which $I_3$ is
    kept; `drag`, start value of $c$, kg m^2; `start_rates`, (B, 3) rad/s, `None` for the first
    samples.
    **Errors:** those of `read_csv` and `data_path`.
    """
    columns = {Gyroscope(): COLUMNS}  # pyright: ignore[reportUnhashable]
    measurements = read_csv(data_path(path), columns, time="time_s", run="trial")
    # Not checked here: a start that violates the triangle inequality is moved by the fit.
    body = FixedPointBody(np.asarray(inertia), moment=QuadraticDrag(drag), physical=False)
    parameters = (
        Parameter(
            "inertia",
            _inertia,
            PrincipalInertia(fixed=("I3",)),
            unit="kg m^2",
            labels=("I1", "I2", "I3"),
        ),
        Parameter("drag", _drag, Positive(), unit="kg m^2", labels=("c",)),
        Parameter(
            "start rates",
            _start_rates,
            per_run=True,
            start=None if start_rates is None else _with_body_axis(start_rates),
            unit="rad/s",
            labels=("omega1", "omega2", "omega3"),
        ),
    )
    return RacketCase(NullSpace(body), measurements, parameters)


def fit_racket(path: str | os.PathLike[str] | None = None, **options: Any) -> Fit:
    """Fit the racket from the pendulum values; `options` are those of `rj.identify`."""
    return identify(*racket_case(path), **options)


def _inertia(experiment: Experiment) -> Any:
    return experiment.model.system.inertia  # pyright: ignore[reportAttributeAccessIssue]


def _drag(experiment: Experiment) -> Any:
    return experiment.model.system.moment.coefficient  # pyright: ignore[reportAttributeAccessIssue]


def _start_rates(experiment: Experiment) -> Any:
    return experiment.state0.angular_velocity


def _with_body_axis(rates: ArrayLike | Sequence[Sequence[float]]) -> Any:
    return np.asarray(rates)[:, None, :]
