"""A Crazyflie: moments of inertia by predictions one sample ahead, of both halves of a flight.

`python examples/published_cases/crazyflie.py log15.npz` prints values of docs/published_cases.md.
The log is that of arplaboratory/data-driven-system-identification, as NumPy arrays: `time` (T,), s;
`gyro_deg_s` (T, 3); `motor_cmd_u16` (T, 4), of 65,535. Moments of the rotors follow from their
commands by the lag and the map of the thrust, 0.0229 - 0.0123 u + 0.1285 u^2 N.
"""

import sys

import jax
import numpy as np

import rigidjax as rj
from rigidjax import identification as ident

jax.config.update("jax_enable_x64", True)

ARM, LAG, THRUST = 0.028, 0.07, (0.0229, -0.0123, 0.1285)
# Signs of the positions (x, y) of the rotors.
PLACES = np.array([(1, -1), (-1, -1), (-1, 1), (1, 1)])
EVERY = 4


def flight(path, begin, end):
    """Return times, angular velocities (T, 3), rad/s, and moments of the rotors (T, 3), N m."""
    log = {key: np.asarray(x, float) for key, x in np.load(path).items()}
    ts, commands = log["time"] - log["time"][0], log["motor_cmd_u16"] / 65_535
    speeds = np.empty_like(commands)
    speeds[0] = commands[0]
    for k, step in enumerate(np.diff(ts)):
        speeds[k + 1] = speeds[k] + (1 - np.exp(-step / LAG)) * (commands[k] - speeds[k])
    thrust = np.polynomial.polynomial.polyval(speeds, THRUST)
    moments = ARM * np.stack(
        [thrust @ PLACES[:, 1], -thrust @ PLACES[:, 0], np.zeros(len(ts))], axis=1
    )
    # The mean moment balances the offset of the centre of mass.
    moments -= moments.mean(axis=0)
    chosen = slice(*np.searchsorted(ts, (begin, end)), EVERY)
    return ts[chosen], np.radians(log["gyro_deg_s"][chosen]), moments[chosen]


def pieces(ts, rates, moments, length):
    """Return runs of this length, s, and their measured start states."""
    count, runs, states = round(length / np.median(np.diff(ts))), [], []
    for row in range(0, len(ts) - count, count):
        rows = slice(row, row + count + 1)
        t = ts[rows] - ts[row]
        inputs = {"moment": (t, moments[rows])}
        runs.append(rj.Measurements(t, {rj.Gyroscope(): rates[rows]}, inputs=inputs, name=f"{row}"))
        states.append(rj.State(angular_velocity=rates[row]))
    return runs, states


def fit(runs, states):
    """Fit Ixx and Iyy, and the start rates; noise of moment and gyroscope are estimated."""
    moments = 1.2e-5, 1.2e-5, 2.9e-5
    body = rj.FixedPointBody(moments, moment=rj.Input("moment", 3), physical=False)
    parameters = [
        rj.Parameter("body.inertia", transform=ident.Positive(which=(0, 1))),
        rj.Parameter("omega", lambda e: e.state0.angular_velocity, per_run=True),
    ]
    return rj.identify(
        rj.NullSpace(body), runs, parameters, state0=states, method="prediction-error",
        process_noise={"moment": None}, throw=False,
    )  # fmt: skip


def main(path):
    """Print the moments of the whole flight and of its halves, and how much these differ."""
    found = []
    for begin, end in ((1.0, 33.0), (1.0, 17.0), (17.0, 33.0)):
        result = fit(*pieces(*flight(path, begin, end), 0.5))
        labels = result.labels[:2]
        found.append(np.array([(result.estimates[x], result.std[x]) for x in labels]))
        print(f"{begin} to {end} s, {result.verdict}")
        print(
            "  ",
            *(
                f"{x} {1e5 * v:.3f} +- {1e5 * s:.3f}"
                for x, (v, s) in zip(labels, found[-1], strict=True)
            ),
        )
        print("  ", result.process_noise, flush=True)
    _, first, second = found
    z = (first[:, 0] - second[:, 0]) / np.hypot(first[:, 1], second[:, 1])
    print(f"halves differ by {np.sqrt(np.mean(z**2)):.2f} standard deviations (rms)")


if __name__ == "__main__":
    main(sys.argv[1])
