"""Write the simulated data of this example: `python examples/pendulum/make_data.py`.

An arm on a hinge with a damper is released at rest. Its angle is sampled at 50 Hz, its angular
velocity at 20 Hz by a clock that starts later, both with normal noise.
"""

import csv
import pathlib

import jax
import numpy as np

import rigidjax as rj

INERTIA3, DAMPING = 0.06, 0.12
NOISE_ANGLE, NOISE_RATE = 0.2, 1.0  # deg, deg/s


def main() -> None:
    """Simulate, add noise, and write both files beside this one."""
    jax.config.update("jax_enable_x64", True)
    arm = rj.Body("arm", 1.3, (0.02, 0.06, INERTIA3), position=(0.4, 0.0, 0.0))
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, 0, 1), name="hinge")
    damper = rj.TorsionSpring("hinge", stiffness=0.0, damping=DAMPING)
    system = rj.System(arm, hinge, damper, rj.Gravity((0, -9.81, 0)))
    model = rj.NullSpace(system.tracking(["hinge"]))
    rng = np.random.default_rng(7)
    folder = pathlib.Path(__file__).parent
    angle, gyroscope = rj.JointCoordinate("hinge"), rj.Gyroscope("arm")
    for name, heading, sensor, noise, ts in (
        ("angle.csv", ["t_ms", "angle_deg"], angle, NOISE_ANGLE, np.arange(0, 3.0, 0.02)),
        ("rates.csv", ["t_ms", "gx", "gy", "gz"], gyroscope, NOISE_RATE, np.arange(0.01, 3, 0.05)),
    ):
        times = np.concatenate([[0.0], ts]) if ts[0] > 0 else ts
        solution = rj.simulate(
            model, system.reference_state(), times[-1], ts=times, rtol=1e-11, atol=1e-11
        )
        read = jax.vmap(lambda t, y, sensor=sensor: sensor.predict(model, t, y))
        exact = np.asarray(read(solution.ts, solution.ys)).reshape(len(times), -1)[-len(ts) :]
        values = np.degrees(exact) + noise * rng.normal(size=exact.shape)
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(heading)
            rows.writerows(
                [f"{1e3 * t:.0f}", *(f"{x:.3f}" for x in row)]
                for t, row in zip(ts, values, strict=True)
            )


if __name__ == "__main__":
    main()
