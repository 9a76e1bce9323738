"""One period of 20 ms of 4,096 double pendulums: `rj.Stepper`, RK4 written by hand, MuJoCo.

All programs start from the same states with the same torques at the elbow, and take turns in one
process. RK4 makes the fewest steps whose error is not above that of the first row, in the kernel of
`rj.native.jit` and in XLA's; MuJoCo's RK4 likewise, by `mujoco.rollout` with one thread for each
core. Errors are the largest of all angles (rad) and rates (rad/s) after the period, against RK4
with 500 steps.
"""

import os
from collections.abc import Callable
from typing import Any

import _common as common
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

PERIOD = 0.02
BATCH = 4096
GRAVITY = 9.81
LENGTH, CENTRE, MASS, INERTIA = 1.0, 0.5, 1.0, 0.1
MAX_STEPS = 200


def make_model() -> rj.Relative:
    """Return two links on hinges, with a motor at the second one."""
    moments = (INERTIA, INERTIA, 0.01)
    upper = rj.Body("upper", MASS, moments, position=(0, 0, -CENTRE))
    lower = rj.Body("lower", MASS, moments, position=(0, 0, -LENGTH - CENTRE))
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), (0, 1, 0), name="shoulder"),
        rj.Revolute("upper", "lower", (0, 0, -LENGTH), (0, 1, 0), name="elbow"),
    ]
    forces = [rj.Gravity((0, 0, -GRAVITY)), rj.Motor("elbow", torque=rj.Input("u"))]
    return rj.Relative(rj.System([upper, lower], joints, forces))


def rates(y: jax.Array, u: jax.Array) -> jax.Array:
    """Return the rates of the angles and their rates, written for this system alone."""
    q1, q2, v1, v2 = y
    a = MASS * LENGTH * CENTRE * jnp.cos(q2)
    m22 = INERTIA + MASS * CENTRE**2
    m12 = m22 + a
    m11 = m22 + INERTIA + MASS * (CENTRE**2 + LENGTH**2) + 2 * a
    h = MASS * LENGTH * CENTRE * jnp.sin(q2)
    g2 = -MASS * GRAVITY * CENTRE * jnp.sin(q1 + q2)
    g1 = -MASS * GRAVITY * (CENTRE + LENGTH) * jnp.sin(q1) + g2
    b1 = g1 + h * v2 * (2 * v1 + v2)
    b2 = u + g2 - h * v1**2
    det = m11 * m22 - m12**2
    return jnp.stack([v1, v2, (m22 * b1 - m12 * b2) / det, (m11 * b2 - m12 * b1) / det])


def runge_kutta(count: int, y: jax.Array, u: jax.Array) -> jax.Array:
    """Return the unknowns after the period by RK4 with `count` steps."""
    h = PERIOD / count

    def step(_, y):
        k1 = rates(y, u)
        k2 = rates(y + h / 2 * k1, u)
        k3 = rates(y + h / 2 * k2, u)
        k4 = rates(y + h * k3, u)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return jax.lax.fori_loop(0, count, step, y)


MJCF = f"""
<mujoco>
  <option gravity="0 0 -{GRAVITY}" integrator="RK4" timestep="{{step}}"/>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0"/>
      <inertial pos="0 0 -{CENTRE}" mass="{MASS}" diaginertia="{INERTIA} {INERTIA} 0.01"/>
      <body name="lower" pos="0 0 -{LENGTH}">
        <joint name="elbow" axis="0 1 0"/>
        <inertial pos="0 0 -{CENTRE}" mass="{MASS}" diaginertia="{INERTIA} {INERTIA} 0.01"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="elbow"/></actuator>
</mujoco>
"""


def make_rollout(count: int, y: np.ndarray, u: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a function that makes the period by MuJoCo with `count` steps."""
    import mujoco
    import mujoco.rollout

    model = mujoco.MjModel.from_xml_string(MJCF.format(step=PERIOD / count))
    threads = os.cpu_count() or 1
    data = [mujoco.MjData(model) for _ in range(threads)]
    start = np.concatenate([np.zeros((len(y), 1)), y], axis=1)
    control = np.repeat(u[:, None, None], count, axis=1)
    pool = mujoco.rollout.Rollout(nthread=threads)

    def run() -> np.ndarray:
        states, _ = pool.rollout(model, data, start, control)
        return states[:, -1, 1:5]

    return run


def fewest_steps(error_of: Callable[[int], float], limit: float) -> int:
    """Return the smallest number of steps whose error is at most `limit`."""
    for count in range(1, MAX_STEPS):
        if error_of(count) <= limit:
            return count
    raise ValueError(f"No number of steps below {MAX_STEPS} reaches the error {limit:.1e}.")


def make_stepper(**options: Any) -> tuple[Callable[..., Any], Any]:
    """Return the step of a batch of environments, and the state of one of them."""
    stepper = rj.Stepper(make_model(), PERIOD, **options)
    start = stepper.init(stepper.model.system.reference_state())
    return jax.jit(jax.vmap(lambda y, u: stepper.step(y, {"u": u}))), start


def measure(batch: int, repeats: int) -> list[dict[str, Any]]:
    """Return a row for each program."""
    rng = np.random.default_rng(20260101)
    y = jnp.asarray(rng.uniform(-3.0, 3.0, (batch, 4)))
    u = jnp.asarray(rng.uniform(-2.0, 2.0, batch))
    exact = jax.jit(jax.vmap(lambda y, u: runge_kutta(500, y, u)))(y, u)

    def error(found: Any) -> float:
        return float(np.abs(np.asarray(found) - np.asarray(exact)).max())

    runs: dict[str, Callable[[], Any]] = {}
    notes: dict[str, tuple[int, float, float]] = {}
    steppers = {
        "Stepper, one step of Dopri5": dict(solver=diffrax.Dopri5(), dt=PERIOD),
        "Stepper, Dopri5 at 1e-8": dict(solver=diffrax.Dopri5(), rtol=1e-8, atol=1e-8),
    }
    for name, options in steppers.items():
        step, one = make_stepper(**options)
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), one)
        start = eqx.tree_at(lambda s: s.unknowns, start, y)
        first = common.seconds(lambda step=step, start=start: step(start, u))
        end = step(start, u)
        runs[name] = lambda step=step, start=start: step(start, u).unknowns
        notes[name] = int(end.num_steps.max()), error(end.unknowns), first
    limit = notes["Stepper, one step of Dopri5"][1]

    def by_hand(count: int, native: bool) -> Callable[[], jax.Array]:
        function = lambda y, u: runge_kutta(count, y, u)  # noqa: E731
        compiled = jax.jit(jax.vmap(rj.native.jit(function) if native else function))
        return lambda: compiled(y, u)

    count = fewest_steps(lambda count: error(by_hand(count, True)()), limit)
    for name, native in (("RK4 by hand, native", True), ("RK4 by hand, XLA", False)):
        run = by_hand(count, native)
        first = common.seconds(run)
        runs[name], notes[name] = run, (count, error(run()), first)
    start = np.asarray(y), np.asarray(u)
    count = fewest_steps(lambda count: error(make_rollout(count, *start)()), limit)
    run = make_rollout(count, *start)
    first = common.seconds(run)
    runs["mujoco.rollout, RK4"], notes["mujoco.rollout, RK4"] = run, (count, error(run()), first)
    times = common.time_in_turn(runs, repeats)
    found = {name: common.summary(times[name]) for name in runs}
    base = found["RK4 by hand, native"]
    return [
        {
            "case": name,
            "batch": batch,
            "num_steps": notes[name][0],
            "error": notes[name][1],
            "first_seconds": notes[name][2],
            **found[name],
            **common.ratios(found[name], base),
            "nanoseconds": 1e9 * found[name]["run_seconds_min"] / batch,
        }
        for name in runs
    ]


def main() -> None:
    """Measure all programs; with `--smoke` a small batch."""
    options = common.arguments(__doc__ or "")
    common.double_precision()
    rows = measure(64, 3) if options.smoke else measure(BATCH, 50)
    common.write("stepping", rows, options.smoke)


if __name__ == "__main__":
    main()
