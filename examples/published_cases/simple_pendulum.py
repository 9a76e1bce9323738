"""The driven simple pendulum: its moments and friction by regression of the measured torque.

`python examples/published_cases/simple_pendulum.py` prints the values of docs/published_cases.md.
"""

import pathlib

import jax
import numpy as np
from scipy.signal import butter, filtfilt

import rigidjax as rj
from rigidjax import identification as ident

jax.config.update("jax_enable_x64", True)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "dfki_pendulums"
RECORDINGS = "ddp", "direct_collocation", "gravity_compensation"
GRAVITY = 9.81
# By scale and ruler: a weight of 0.6755 kg at 0.5 m.
FIRST_MOMENT, INERTIA = 0.6755 * 0.5, 0.6755 * 0.5**2


def pendulum():
    """Return a link on a hinge at the origin, which hangs along -z at the angle zero."""
    link = rj.Body("link", 1.0, (0.1, 0.1, 0.1))
    hinge = rj.Revolute("ground", "link", (0, 0, 0), (0, -1, 0), name="hinge")
    return rj.System(link, hinge, rj.Gravity((0, 0, -GRAVITY)))


def read(name):
    """Return uniform times, angles and torques of a recording."""
    raw = np.load(FOLDER / f"simple_{name}.npz")
    measured = raw["time"]
    ts = np.linspace(measured[0], measured[-1], len(measured))
    return ts, *(np.interp(ts, measured, raw[k].astype(float)) for k in ("position", "torque"))


def joint_data(system, name, cutoff=15.0):
    """Return filtered angles, derivatives and torques, without the ends and samples near rest."""
    ts, *columns = read(name)
    q, tau = (ident.lowpass(ts, x, cutoff) for x in columns)
    v, a = (ident.differentiate(ts, q, window=0.5 / cutoff, derivative=k) for k in (1, 2))
    inner = (ts > ts[0] + 2 / cutoff) & (ts < ts[-1] - 2 / cutoff) & (np.abs(v) > 0.1)
    columns = (x[inner, None] for x in (q, v, a, tau))
    return ident.joint_data(system, *columns, terms=("viscous", "coulomb", "offset"))


def by_cutoff(name, cutoff):
    """Return inertia, first moment, friction and offset by least squares on all samples."""
    ts, *columns = read(name)
    num, den = butter(4, cutoff, fs=1 / ts[1])
    q, tau = (filtfilt(num, den, x) for x in columns)
    v = np.gradient(q, ts[1])
    terms = np.gradient(v, ts[1]), GRAVITY * np.sin(q), v, np.tanh(v / 0.02), np.ones_like(q)
    inner = slice(50, -50)
    return np.linalg.lstsq(np.column_stack(terms)[inner], tau[inner])[0]


def main():
    """Print least squares by cutoff, and regressions with intervals."""
    print(f"by scale: first moment {FIRST_MOMENT:.4f} kg m, inertia {INERTIA:.4f} kg m^2")
    for name in RECORDINGS[:2]:
        for cutoff in (5.0, 10.0, 15.0, 40.0):
            values = np.round(by_cutoff(name, cutoff)[:2], 3)
            print(f"{name}, {cutoff:.0f} Hz: inertia and first moment {values}")
    for name in RECORDINGS:
        linear = ident.regress(joint_data(pendulum(), name))
        share = linear.rms / np.sqrt(np.mean(linear.data.torques**2, axis=0))
        print(f"{name}: residual {100 * share[0]:.1f} %; {linear.verdict}")
        for k, expression in enumerate(linear.base.expressions):
            print(f"  {expression}: {linear.values[k]:.4f} +- {linear.std[k]:.4f}")


if __name__ == "__main__":
    main()
