"""Named inputs: values, signals, policies; what they may not be."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import rigidjax as rj

CART = rj.Body.box("cart", (0.2, 0.2, 0.2), mass=1.0)
POLE = rj.Body("pole", 0.3, (4e-3, 4e-3, 1e-3), position=(0, 0, 0.5))
SYSTEM = rj.System(
    [CART, POLE],
    [
        rj.Prismatic("ground", "cart", axis=(1, 0, 0), name="slide"),
        rj.Revolute("cart", "pole", (0, 0, 0), axis=(0, 1, 0), name="hinge"),
    ],
    [rj.Gravity((0, 0, -9.81)), rj.Motor("slide", rj.Input("force"))],
)
MODEL = rj.Relative(SYSTEM)
START = rj.jointed_state(SYSTEM, {"hinge": 0.1})
TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def feedback(t, view):
    q, v = view.coordinates, view.rates
    return 20 * q["hinge"][0] + 4 * v["hinge"][0] + 0.1 * v["slide"][0]


def test_a_policy_is_evaluated_with_the_equations():
    """Near the upright pose the closed loop is linear: compare with the matrix exponential."""
    small = 1e-6
    start = rj.jointed_state(SYSTEM, {"hinge": small})
    M = MODEL.mass_matrix(0.0, MODEL.encode(start))
    K = np.diag([0.0, -0.3 * 9.81 * 0.5])  # generalised forces are -K q
    G, D = np.array([[0, 20.0], [0, 0]]), np.array([[0.1, 4.0], [0, 0]])
    A = np.block(
        [[np.zeros((2, 2)), np.eye(2)], [np.linalg.solve(M, G - K), np.linalg.solve(M, D)]]
    )
    expected = scipy.linalg.expm(A) @ [0, small, 0, 0]
    tight = {"rtol": 1e-9, "atol": 1e-15}
    run = rj.simulate(MODEL, start, 1.0, inputs={"force": feedback}, **tight)
    found = np.concatenate([run.coordinates[name] for name in ("slide", "hinge")], axis=-1)
    np.testing.assert_allclose(found[0], expected[:2], rtol=2e-7, atol=1e-13)
    force = 20 * expected[1] + 4 * expected[3] + 0.1 * expected[2]
    np.testing.assert_allclose(run.inputs["force"][0], force, rtol=1e-6)


def test_entries_of_a_vector_and_sensors():
    body = rj.Body("craft", 2.0, (0.3, 0.4, 0.5))
    wheel = rj.Input("wheels", 3)
    system = rj.System(body, (), rj.Torque("craft", wheel, frame="body"))
    gyroscope = rj.Gyroscope("craft")
    run = rj.simulate(
        rj.NullSpace(system),
        rj.State(angular_velocity=(0.1, -0.2, 0.3)),
        1.0,
        inputs={"wheels": lambda t, view: -2.0 * view.sensors[gyroscope]},
        **TIGHT,
    )
    assert run.inputs["wheels"].shape == (1, 3)
    np.testing.assert_allclose(run.inputs["wheels"], -2.0 * run.states.angular_velocity[:, 0])
    # A moment of minus twice the rate: the rate of the kinetic energy is negative and large.
    start = 0.5 * np.sum(np.array([0.3, 0.4, 0.5]) * np.array([0.1, -0.2, 0.3]) ** 2)
    assert run.energy[0] < start * np.exp(-2 * 2.0 / 0.5)
    data = run.to_xarray()["input_wheels"]
    np.testing.assert_array_equal(data.values, run.inputs["wheels"])
    assert wheel[1].select(jnp.arange(3.0)) == 1.0 and len(list(wheel)) == 3


def simulate(value, model=MODEL, **options):
    return rj.simulate(model, START, 0.1, inputs={"force": value}, **options)


def test_wrong_inputs():
    with pytest.raises(ValueError, match="no input called 'forces'. Did you mean 'force'"):
        rj.simulate(MODEL, START, 0.1, inputs={"forces": 1.0})
    with pytest.raises(TypeError, match="must be a dict of values by name"):
        rj.simulate(MODEL, START, 0.1, inputs=[1.0])
    with pytest.raises(ValueError, match=r"inputs=...\)\['force'\]` must have shape \(\)"):
        simulate([1.0, 2.0])
    with pytest.raises(ValueError, match=r"Signal of values of shape \(\)"):
        simulate(rj.Signal([0, 1], np.zeros((2, 3))))
    with pytest.raises(ValueError, match=r"The policy of the input 'force' must return shape \(\)"):
        simulate(lambda t, view: view.coordinates["hinge"])
    with pytest.raises(TypeError, match=r"must be a function policy\(t, view\)"):
        simulate(lambda t: 1.0)
    for policy in (
        lambda t, view: float(t),
        lambda t, view: 1.0 if t > 0.5 else 0.0,
        lambda t, view: np.sin(view.rates["hinge"][0]),
    ):
        with pytest.raises(TypeError, match="'force' needs known numbers, but JAX traces it"):
            simulate(policy)
    with pytest.raises(TypeError, match="must return a number or an array; got None"):
        simulate(lambda t, view: None)
    rates = []

    def remember(t, view):
        rates.append(view.rates["hinge"][0])
        return rates[0]

    with pytest.raises(ValueError, match="remembers from an earlier call"):
        simulate(remember)
    with pytest.raises(KeyError, match="no joint called 'hinges'"):
        simulate(lambda t, view: view.coordinates["hinges"][0])
    with pytest.raises(rj.SimulationError, match="no longer finite"):
        simulate(lambda t, view: jnp.nan * t, dt=0.01)
    with pytest.raises(ValueError, match="does not integrate policies"):
        simulate(feedback, rj.NullSpace(SYSTEM), solver=rj.solvers.EnergyMomentum(), dt=0.01)
    required = rj.Motor("slide", rj.Input("force", default=None))
    model = rj.Relative(rj.System(SYSTEM.bodies, SYSTEM.joints, required))
    with pytest.raises(
        ValueError, match="has no value for the input 'force', which has no default"
    ):
        rj.simulate(model, START, 0.1, inputs={})
    with pytest.raises(ValueError, match="The input 'force' has no value here"):
        rj.simulate(model, START, 0.1)
    accelerometer = rj.Accelerometer("pole", (0, 0, 0))
    with pytest.raises(ValueError, match="cannot depend on forces or accelerations"):
        simulate(lambda t, view: view.sensors[accelerometer][0])
    driven = rj.Revolute("ground", "pole", (0, 0, 0), axis=(0, 1, 0), motion=rj.Input("angle"))
    model = rj.NullSpace(rj.System(POLE, driven))
    with pytest.raises(ValueError, match="'angle' prescribes the motion"):
        rj.simulate(model, rj.State(position=(0, 0, 0.5)), 0.1, inputs={"angle": feedback})
    point = rj.FixedPointBody((1.0, 2.0, 3.0), moment=rj.Input("m", 3))
    with pytest.raises(TypeError, match="`FixedPointBody` takes values and signals"):
        rj.simulate(rj.NullSpace(point), rj.State(), 0.1, inputs={"m": feedback})
    free = rj.System(rj.Body("b", 1.0, (1.0, 1.0, 1.0)), (), rj.Torque("b", rj.Input("m", 3)))
    with pytest.raises(ValueError, match="`EulerParameters` takes values and signals"):
        rj.simulate(rj.EulerParameters(free), rj.State(), 0.1, inputs={"m": feedback})


def test_wrong_declarations():
    with pytest.raises(TypeError, match=r"`Input\(name=...\)` must be a text"):
        rj.Input(3)
    with pytest.raises(ValueError, match="must not be empty"):
        rj.Input("")
    with pytest.raises(ValueError, match="must be an integer above 0 or None"):
        rj.Input("u", 0)
    with pytest.raises(ValueError, match="is a scalar and has no entries"):
        rj.Input("u")[0]
    with pytest.raises(ValueError, match="has the entries 0 to 2; got 3"):
        rj.Input("u", 3)[3]
    forces = [rj.Motor("slide", rj.Input("u")), rj.Motor("hinge", rj.Input("u", 2)[0])]
    model = rj.Relative(rj.System(SYSTEM.bodies, SYSTEM.joints, forces))
    with pytest.raises(ValueError, match="has the sizes None and 2 in one model"):
        rj.simulate(model, START, 0.1, inputs={"u": 0.0})


def test_policies_with_a_model_run_as_kernels():
    """A failed check gives NaN: a kernel cannot raise, and the error of the run says where."""

    def hold(*joints):
        find = functools.partial(MODEL.inverse_dynamics, actuated=joints)
        return lambda t, view: find(t, MODEL.encode(view.state), jnp.zeros(2))[0]

    sol = rj.simulate(MODEL, START, 0.1, inputs={"force": hold("slide", "hinge")})
    assert sol.stats["backend"] == "native", sol.stats["backend"].why_not
    with pytest.raises(
        rj.SimulationError, match="are infinite or NaN at t = 0 s.*no step succeeds"
    ):
        rj.simulate(MODEL, START, 0.1, inputs={"force": hold("slide")}, max_steps=1000)
