"""Actuators with states against exact solutions, and their energy balance."""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax.io.names import unknown_names

J, MASS, T1 = 0.3, 2.0, 1.5
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
START, SPEED = 0.4, -0.5
POINT, Z = (0.0, 1.0, 0.5), (0.0, 0.0, 1.0)
OPTIONS: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12}
PARAMETERS = {
    "lag": {"command": 0.7, "time_constant": 0.2, "initial": -0.4},
    "dc": {
        "command": 6.0, "resistance": 1.3, "inductance": 0.4, "torque_constant": 0.05,
        "gear": -8.0, "back_emf": 0.06, "initial": 0.5,
    },
    "pid": {
        "command": 1.2, "proportional": 3.0, "integral": 2.0, "derivative": 0.8,
        "filter_time": 0.05, "initial": (0.3, 0.1),
    },
    "servo": {
        "command": 0.9, "stiffness": 4.0, "damping": 0.6, "natural_frequency": 5.0,
        "damping_ratio": 0.7, "initial": (0.4, -0.2),
    },
    "pi": {"command": 2.0, "proportional": 0.5, "integral": 1.5, "initial": 0.2},
}  # fmt: skip
KINDS: dict[str, Any] = {
    "lag": rj.LaggedMotor, "dc": rj.DCMotor, "pid": rj.PIDController,
    "servo": rj.PositionServo, "pi": rj.PIController,
}  # fmt: skip


# Coordinates on which the actuators act: joint, component, and inertia.
PLACES = {
    "lag": ("plane", 0, MASS),
    "dc": ("plane", 2, J),
    "pid": ("sleeve", 1, J),
    "servo": ("plane", 1, MASS),
    "pi": ("sleeve", 0, MASS),
}
TS = (0.0, *(0.5 * T1 * (1 + NODES)), T1)


@functools.cache
def run():
    """Bodies on a planar and a cylindrical joint at their centres of mass, without gravity."""
    origin = (0.0, 0.0, 0.0)
    bodies = [
        rj.Body(name, MASS, (J, J, J), position=point)
        for name, point in (("plane", origin), ("sleeve", POINT))
    ]
    joints = [
        rj.Planar("ground", "plane", origin, Z, name="plane"),
        rj.Cylindrical("ground", "sleeve", POINT, Z, name="sleeve"),
    ]
    actuators = [
        kind(PLACES[name][0], **PARAMETERS[name], component=PLACES[name][1])
        for name, kind in KINDS.items()
    ]
    system = rj.System(bodies, joints, actuators)
    counts = {"plane": 3, "sleeve": 2}
    value, rate = ({name: np.full(n, x) for name, n in counts.items()} for x in (START, SPEED))
    state = rj.jointed_state(system, value, rate)
    return rj.simulate(rj.NullSpace(system), state, T1, ts=np.asarray(TS), **OPTIONS)


def motion(sol):
    """Coordinate, rate and states of every actuator at the saved times, one row for each time."""
    columns = []
    for joint, k, _ in PLACES.values():
        columns += [sol.coordinates[joint][:, k, None], sol.rates[joint][:, k, None]]
    states = jax.vmap(sol.model.layout.states)(jnp.asarray(sol.ys))
    return jnp.concatenate([*columns, states], axis=1)


def linear_system(name, p):
    """Return the matrix A of z' = A z with z = (q, q', states, 1)."""
    u, m = p["command"], PLACES[name][2]
    if name == "lag":
        tau = p["time_constant"]
        rows = [[0, 1, 0, 0], [0, 0, 1 / m, 0], [0, 0, -1 / tau, u / tau]]
    elif name == "dc":
        N, R, L = p["gear"], p["resistance"], p["inductance"]
        force = N * p["torque_constant"] / m
        rows = [[0, 1, 0, 0], [0, 0, force, 0], [0, -N * p["back_emf"] / L, -R / L, u / L]]
    elif name == "pid":
        kp, ki, kd, tau = (p[k] for k in ("proportional", "integral", "derivative", "filter_time"))
        rows = [
            [0, 1, 0, 0, 0],
            [-kp / m, 0, 1 / m, -kd / m, kp * u / m],
            [-ki, 0, 0, 0, ki * u],
            [0, 1 / tau, 0, -1 / tau, 0],
        ]
    elif name == "servo":
        k, c, w, zeta = (
            p[key] for key in ("stiffness", "damping", "natural_frequency", "damping_ratio")
        )
        rows = [
            [0, 1, 0, 0, 0],
            [-k / m, -c / m, k / m, c / m, 0],
            [0, 0, 0, 1, 0],
            [0, 0, -(w**2), -2 * zeta * w, w**2 * u],
        ]
    else:
        kp, ki = p["proportional"], p["integral"]
        rows = [[0, 1, 0, 0], [0, -kp / m, 1 / m, kp * u / m], [0, -ki, 0, ki * u]]
    rows.append([0] * len(rows[0]))
    return jnp.stack([jnp.stack([jnp.asarray(x, float) for x in row]) for row in rows])


def exact_end():
    """Return the motion at the end by matrix exponentials, in the order of `motion`."""
    joints, states = [], []
    for name, p in PARAMETERS.items():
        x = jnp.atleast_1d(jnp.asarray(p["initial"], float))
        z = jnp.concatenate([jnp.array([START, SPEED]), x, jnp.ones(1)])
        z = jax.scipy.linalg.expm(T1 * linear_system(name, p)) @ z
        joints, states = [*joints, z[:2]], [*states, z[2:-1]]
    return jnp.concatenate([*joints, *states])


def test_linear_actuators_move_as_the_matrix_exponential():
    assert run().stats["backend"] == "native"
    assert cases.error(motion(run())[-1], exact_end()) < 1e-9


def test_energy_is_the_work_of_the_actuators():
    """By Gauss-Legendre quadrature; a motor turns the supplied energy into work and heat."""
    sol, p = run(), PARAMETERS["dc"]
    rows, count = np.asarray(motion(sol)), 2 * len(KINDS)
    rates, states = rows[:, 1:count:2], rows[:, count:]
    u, e = PARAMETERS["pid"], PARAMETERS["servo"]
    i = states[:, 1]
    q_pid, q_servo = rows[:, 4], rows[:, 6]
    forces = [
        states[:, 0],
        p["gear"] * p["torque_constant"] * i,
        u["proportional"] * (u["command"] - q_pid) + states[:, 2] - u["derivative"] * states[:, 3],
        e["stiffness"] * (states[:, 4] - q_servo) + e["damping"] * (states[:, 5] - rates[:, 3]),
        PARAMETERS["pi"]["proportional"] * (PARAMETERS["pi"]["command"] - rates[:, 4])
        + states[:, 6],
    ]

    def integral(power):
        return 0.5 * T1 * WEIGHTS @ power[1:-1]

    work = sum(integral(Q * v) for Q, v in zip(forces, rates.T, strict=True))
    assert abs(sol.energy[-1] - sol.energy[0] - work) < 1e-9
    supplied = integral(p["command"] * i - p["resistance"] * i**2)
    converted = integral(p["gear"] * p["back_emf"] * i * rates[:, 1])
    stored = 0.5 * p["inductance"] * (i[-1] ** 2 - i[0] ** 2)
    assert abs(supplied - converted - stored) < 1e-9


def test_controllers_of_the_other_variable():
    """A PID controller of a rate, whose derivative is that of the filter; PI of a coordinate."""
    q, v, u, z, w = 0.4, -0.7, 1.3, 0.2, -0.6
    pid = rj.PIDController("h", 0.0, 3.0, 2.0, 0.8, 0.05, "rate")
    arguments = [jnp.array(x) for x in (0.0, [z, w], u, q, v)]
    assert cases.error(pid.force(*arguments), 3.0 * (u - v) + z - 0.8 * (v - w) / 0.05) < 1e-14
    assert cases.error(pid.rates(*arguments), [2.0 * (u - v), (v - w) / 0.05]) < 1e-14
    pi = rj.PIController("h", 0.0, 3.0, 2.0, "coordinate", limit=1.0)
    arguments[1] = jnp.array([z])
    raw = 3.0 * (u - q) + z
    assert raw > 1.0 and pi.force(*arguments) == 1.0
    assert cases.error(pi.rates(*arguments), [2.0 * (u - q) + 2.0 / 3.0 * (1.0 - raw)]) < 1e-14


def held_push(t, view, state):
    return 2.0, state


@pytest.mark.parametrize(
    "push", [lambda t, view: jnp.clip(9.0 - t, -2.0, 2.0), rj.SampledController(held_push, 0.1)]
)
def test_joint_torque_reads_the_force_that_acts(push):
    """A motor at the limit of its controller, and one with a lag at its own: 2 N and 2 N."""
    ball, rail = rj.Body.sphere("ball", 0.1, mass=2.0), rj.Prismatic("ground", "ball", (1, 0, 0))
    forces = [rj.Motor(rail, rj.Input("push")), rj.LaggedMotor(rail, 5.0, 0.3, limit=2.0)]
    system = rj.System(ball, rail, forces)
    sensor, ts = rj.JointTorque(rail), np.array([0.15, 0.35])
    start, inputs = system.reference_state(), {"push": push}
    sol = rj.simulate(rj.Relative(system), start, 0.4, ts=ts, inputs=inputs, **OPTIONS)
    read = sol.sensors[sensor]
    np.testing.assert_allclose(read, 4.0 - 2.0 * np.exp(-ts / 0.3), rtol=1e-9)


def test_policies_read_held_inputs_and_actuators_with_states():
    """A policy copies the force on another ball: a held value of 2 N, and a lag at its limit."""
    balls = [rj.Body.sphere(name, 0.1, mass=2.0) for name in ("ball", "copy")]
    rails = [rj.Prismatic("ground", ball.name, (1, 0, 0), name=ball.name) for ball in balls]
    forces = [rj.Motor(name, rj.Input(name)) for name in ("ball", "copy")]
    system = rj.System(balls, rails, [*forces, rj.LaggedMotor("ball", 5.0, 0.3, limit=2.0)])
    sensor, ts = rj.JointTorque("ball"), np.array([0.15, 0.35])
    inputs = {
        "ball": rj.SampledController(held_push, 0.1),
        "copy": lambda t, view: view.sensors[sensor],
    }
    start = system.reference_state()
    sol = rj.simulate(rj.Relative(system), start, 0.4, ts=ts, inputs=inputs, **OPTIONS)
    decay = np.exp(-ts / 0.3)
    np.testing.assert_allclose(sol.inputs["copy"], 4.0 - 2.0 * decay, rtol=1e-9)
    exact = 2.0 * ts - 0.3 * (1.0 - decay)
    np.testing.assert_allclose(sol.rates["copy"][:, 0], exact, rtol=1e-9)


def test_states_have_unique_names_and_runs_are_shown(tmp_path):
    sol = run()
    assert list(sol.to_xarray().unknown.values[-7:]) == [
        "plane.torque1", "plane.current3", "sleeve.integral_action2", "sleeve.filtered_rate2",
        "plane.set_point2", "plane.set_point_rate2", "sleeve.integral_action1",
    ]  # fmt: skip
    rj.view(sol).save(tmp_path / "run.html")
    twins = [rj.LaggedMotor("h", 1.0, 0.1)] * 2
    joint = rj.Revolute("ground", "b", (0.0, 0.0, 0.0), Z, name="h")
    model = rj.NullSpace(rj.System([rj.Body("b", 1.0, (J, J, J))], [joint], twins))
    assert unknown_names(model)[-2:] == ["h.torque", "h.torque (2)"]
    with pytest.raises(ValueError, match="`equilibrium` balances the forces on bodies; it does"):
        rj.equilibrium(model, model.system.reference_state())


class Metered(rj.AbstractActuator):
    """The lag of the documentation, with its work as a second state."""

    joint: str = eqx.field(static=True)
    command: Any
    time_constant: jax.Array
    component: int | None = eqx.field(static=True, default=None)
    num_states: ClassVar[int] = 2

    def rates(self, t, x, u, coordinate, rate):
        return jnp.stack([(u - x[0]) / self.time_constant, x[0] * rate])

    def force(self, t, x, u):
        return x[0]


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: rj.LaggedMotor("h", 1.0, 0.0), ValueError,
         r"`LaggedMotor\(time_constant=...\)` must be positive. Got 0"),
        (lambda: rj.LaggedMotor("h", 1.0, 0.1, limit=-2.0), ValueError,
         r"`LaggedMotor\(limit=...\)` must be positive"),
        (lambda: rj.LaggedMotor("h", lambda t: jnp.ones(2), 0.1), ValueError,
         r"`LaggedMotor\(command=...\)` must return a scalar; got shape \(2,\)"),
        (lambda: rj.LaggedMotor("h", rj.Input("u", 2), 0.1), ValueError,
         r"`LaggedMotor\(command=...\)` must return a scalar; got shape \(2,\)"),
        (lambda: rj.LaggedMotor("h", "u", 0.1), TypeError,
         r"`LaggedMotor\(command=...\)` must be real numbers; got 'u'"),
        (lambda: rj.LaggedMotor(3, 1.0, 0.1), TypeError, r"`LaggedMotor\(joint=...\)` takes a"),
        (lambda: rj.DCMotor("h", 1.0, -1.0, 0.1, 0.1), ValueError,
         r"`DCMotor\(resistance=...\)` must be positive. Got -1"),
        (lambda: rj.DCMotor("h", 1.0, 1.0, 0.0, 0.1), ValueError,
         r"`DCMotor\(inductance=...\)` must be positive"),
        (lambda: rj.DCMotor("h", 1.0, 1.0, 0.1, np.nan), ValueError,
         r"`DCMotor\(torque_constant=...\)` must be finite"),
        (lambda: rj.DCMotor("h", 1.0, 1.0, 0.1, 0.1, gear=0.0), ValueError,
         r"`DCMotor\(gear=...\)` must not be zero"),
        (lambda: rj.PIController("h", 1.0, 1.0, -2.0, limit=1.0), ValueError,
         r"`PIController\(tracking_time=...\)` is needed.*`integral` is negative. Got -2"),
        (lambda: rj.PIDController("h", 1.0, 1.0, 1.0, 1.0, 0.0), ValueError,
         r"`PIDController\(filter_time=...\)` must be positive"),
        (lambda: rj.PIDController("h", 1.0, 1.0, 1.0, 1.0, 0.1, "angle"), ValueError,
         r"`PIDController\(variable=...\)` must be \"coordinate\" or \"rate\"; got 'angle'"),
        (lambda: rj.PIController("h", 1.0, 1.0, 1.0, tracking_time=1.0), ValueError,
         r"`PIController\(tracking_time=...\)` has no effect without `limit`"),
        (lambda: rj.PIController("h", 1.0, 0.0, 1.0, limit=1.0), ValueError,
         r"`PIController\(tracking_time=...\)` is needed"),
        (lambda: rj.PositionServo("h", 1.0, -1.0, 1.0, 5.0), ValueError,
         r"`PositionServo\(stiffness=...\)` must not be negative"),
        (lambda: rj.PositionServo("h", 1.0, 1.0, 1.0, 5.0, initial=(0.0, 0.0, 0.0)), ValueError,
         r"`PositionServo\(initial=...\)` must have shape \(\) or \(2,\); got shape \(3,\)"),
        (lambda: rj.PositionServo("h", 1.0, 1.0, 1.0, 5.0, component=-1), ValueError,
         r"`PositionServo\(component=...\)` must be None or the number"),
    ],
)  # fmt: skip
def test_impossible_actuators_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()


def of_rates(function, count=1):
    """An actuator with these rates."""
    fields: dict[str, Any] = {"rates": function, "num_states": count}
    return type("Wrong", (Metered,), fields)("h", 0.0, jnp.array(1.0))


@pytest.mark.parametrize(
    ("actuator", "error", "match"),
    [
        (lambda: of_rates(lambda self, t, x, u: jnp.ones(3)), ValueError,
         r"`Wrong.rates` must return shape \(1,\); got \(3,\)"),
        (lambda: of_rates(lambda self, t, x: x), TypeError,
         r"must take \(t, x, u\) or \(t, x, u, coordinate, rate\); got"),
        (lambda: Metered("h", jnp.ones(2), jnp.array(1.0)), ValueError,
         r"`Metered\(command=...\)` must return a scalar; got shape \(2,\)"),
        (lambda: rj.LaggedMotor("other", 1.0, 0.1), ValueError, "no joint called 'other'"),
    ],
)  # fmt: skip
def test_systems_reject_actuators_that_do_not_fit(actuator, error, match):
    joint = rj.Revolute("ground", "b", (0.0, 0.0, 0.0), Z, name="h")
    with pytest.raises(error, match=match):
        rj.System([rj.Body("b", 1.0, (J, J, J))], [joint], [actuator()])
