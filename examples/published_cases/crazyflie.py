"""A Crazyflie: moments of inertia by predictions one sample ahead, of both halves of a flight.

`python examples/published_cases/crazyflie.py log15.npz` prints values of
docs/published_cases/crazyflie.md. The log is that of
arplaboratory/data-driven-system-identification, as NumPy arrays: `time` (T,), s; `gyro_deg_s`
(T, 3); `motor_cmd_u16` (T, 4), of 65,535. Its samples at 125 Hz, commands below 25 Hz, are written
beside `crazyflie.toml`, which has the model.
"""

import pathlib
import sys

import jax
import numpy as np

import rigidjax as rj
from rigidjax import identification as ident

jax.config.update("jax_enable_x64", True)

CASE = pathlib.Path(__file__).with_suffix(".toml")
# Times at which the halves begin; their length; sampling periods of the data and of the log, s.
BEGINS, LENGTH, SPACING, LOGGED = (1.0, 17.0), 15.0, 0.008, 0.001


def write_data(path, out=CASE.with_suffix(".npz")):
    """Write times, numbers of the runs, rates, rad/s, and commands, from 0 to 1, of both halves."""
    log = {key: np.asarray(x, float) for key, x in np.load(path).items()}
    ts = log["time"] - log["time"][0]
    even = np.arange(0.0, ts[-1], LOGGED)
    rates, commands = (
        np.column_stack([np.interp(even, ts, column) for column in log[key].T])
        for key in ("gyro_deg_s", "motor_cmd_u16")
    )
    commands = ident.lowpass(even, commands / 65_535, 25.0)
    offsets = np.arange(0.0, LENGTH, SPACING)
    rows = np.round(np.add.outer(BEGINS, offsets) / LOGGED).astype(int).ravel()
    np.savez(
        out, t=np.tile(offsets, len(BEGINS)),
        run=np.repeat(range(len(BEGINS)), len(offsets)), rate=np.radians(rates[rows]),
        command=commands[rows],
    )  # fmt: skip


def main(path):
    """Print the estimates of both halves, and how much they differ."""
    write_data(path)
    case, found = rj.read_case(CASE), []
    for number, run in enumerate(case.measurements):
        state0 = case.state0[number] if isinstance(case.state0, list) else case.state0
        fit = rj.identify(
            case.model, run, case.parameters, state0=state0, throw=False, **case.options
        )
        found.append(np.array([(fit.estimates[x], fit.std[x]) for x in fit.labels]))
        print(fit.verdict)
        for label, (value, std) in zip(fit.labels, found[-1], strict=True):
            print(f"  {label.split(', ')[0]} {value:.4g} +- {std:.2g}")
        print("  noise of the disturbances, N m/sqrt(Hz):", fit.process_noise, flush=True)
    (first, s1), (second, s2) = (x[:2].T for x in found)
    z = (first - second) / np.hypot(s1, s2)
    print(f"moments of the halves differ by {np.sqrt(np.mean(z**2)):.2f} standard deviations (rms)")


if __name__ == "__main__":
    main(sys.argv[1])
