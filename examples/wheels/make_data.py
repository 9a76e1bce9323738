"""Write the simulated data of this example: `python examples/wheels/make_data.py`.

The wheels of a spacecraft at rest get commands twice a second, each held until the next one, which
take effect after a delay. A gyroscope with normal noise is read at the same times.
"""

import csv
import pathlib

import jax
import numpy as np

import rigidjax as rj

INERTIA = [[11.0, 0.4, -0.2], [0.4, 9.0, 0.3], [-0.2, 0.3, 8.5]]  # kg m^2
DELAY = 0.13  # s
NOISE = 0.01  # deg/s


def main() -> None:
    """Simulate, add noise, and write the file beside this one."""
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(11)
    path = pathlib.Path(__file__).parent / "wheels.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["run", "t_s", "tx", "ty", "tz", "gx", "gy", "gz"])
        for run, end in (("first", 20.0), ("second", 12.0)):
            ts = np.arange(0.0, end + 0.1, 0.5)
            command = np.round(rng.normal(scale=200.0, size=(len(ts), 3)))
            wheels = rj.Signal(ts, 1e-3 * command, "hold", delay=DELAY, extrapolation="constant")
            model = rj.NullSpace(rj.FixedPointBody(INERTIA, moment=wheels))
            solution = rj.simulate(model, rj.State(), end, ts=ts, rtol=1e-11, atol=1e-11)
            exact = np.degrees(np.asarray(solution.states.angular_velocity[:, 0]))
            read = exact + NOISE * rng.normal(size=exact.shape)
            rows.writerows(
                [run, f"{t:.1f}", *(f"{x:.0f}" for x in torque), *(f"{x:.4f}" for x in rate)]
                for t, torque, rate in zip(ts, command, read, strict=True)
            )


if __name__ == "__main__":
    main()
