"""A table of values over time, its integral, and a body that a signal of it turns."""

from typing import Any

import diffrax
import numpy as np
from scipy.interpolate import PPoly

import rigidjax as rj

TS = np.array([0.0, 0.31, 0.5, 0.62, 1.0, 1.3])
X = np.array([1.0, -2.0, 3.0, 0.5, 1.5, -1.0])
INERTIA, END = 0.3, 1.1


def table(kind: str) -> PPoly:
    """Return the table between its samples, constant outside."""
    slopes = np.diff(X) / np.diff(TS) if kind == "linear" else np.zeros(len(X) - 1)
    coefficients = np.array([[0.0, *slopes, 0.0], [X[0], *X]])
    return PPoly(coefficients, np.array([-10.0, *TS, 10.0]))


def integral(kind: str, rate: float = 1.0, shift: float = 0.0) -> float:
    """Return the integral of the table at `rate * t + shift` from 0 to `END`."""
    return float(table(kind).integrate(shift, rate * END + shift)) / rate


def spin(moment: Any, t1: float = END, **options: Any) -> tuple[Any, rj.Solution]:
    """Return the angular velocity at the end about the third axis, and the solution."""
    steps = {} if "dt" in options else {"rtol": 1e-9, "atol": 1e-9}
    options = {"solver": diffrax.Dopri5(), "max_steps": 500} | steps | options
    model = rj.NullSpace(rj.FixedPointBody((0.5, 0.4, INERTIA), moment=moment))
    sol = rj.simulate(model, rj.State(), t1, **options)
    return sol.states.angular_velocity[-1, 0, 2], sol
