"""Revolutions in states, and runs that continue from states and from unknowns."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.ensembles.store import Store

STIFFNESS, INERTIA = 1.0, 0.1
OMEGA = np.sqrt(STIFFNESS / INERTIA)
ROTOR = rj.Body("rotor", 1.0, (INERTIA,) * 3)
HINGE = rj.Revolute("ground", "rotor", (0, 0, 0), (0, 0, 1), name="h")
WOUND = rj.System(ROTOR, HINGE, [rj.TorsionSpring("h", STIFFNESS)])
RUN, RELATIVE, BEGIN = rj.NullSpace(WOUND), rj.Relative(WOUND), WOUND.reference_state()
ROD = rj.Body("rod", 1.3, (1e-2, 0.05, 0.06), (0.4, 0, 0))
ARM = rj.Body("arm", 0.7, (1e-2, 0.03, 0.02), (1.0, 0.1, 0))
# A hinge with a law and a ball joint, whose rotation needs more than one chart.
PENDULUM = rj.System(
    [ROD, ARM],
    [
        rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="h"),
        rj.Spherical("rod", "arm", (0.8, 0, 0), name="b"),
    ],
    [rj.Gravity((0, 0, -9.81)), rj.TorsionSpring("h", 0.3)],
)
START = rj.jointed_state(PENDULUM, {"h": 10.0}, {"h": 9.0, "b": (1.0, 12.0, -9.0)})


def last(states):
    return jax.tree.map(lambda leaf: leaf[-1], states)


def test_wound_up_spring_unwinds():
    run = eqx.filter_jit(lambda state, t0, t1: rj.simulate(RELATIVE, state, t1, t0=t0))
    q0, t1 = 10 * np.pi, 0.3
    state = rj.jointed_state(WOUND, {"h": q0})
    half = run(state, 0.0, 0.5 * t1)
    np.testing.assert_allclose(
        half.coordinates["h"][0, 0], q0 * np.cos(0.5 * OMEGA * t1), rtol=1e-6
    )
    sol = run(last(half.states), 0.5 * t1, t1)
    np.testing.assert_allclose(sol.coordinates["h"][0, 0], q0 * np.cos(OMEGA * t1), rtol=1e-6)
    np.testing.assert_allclose(sol.energy, 0.5 * STIFFNESS * q0**2, rtol=1e-6)
    # The state by its orientation alone has the principal angle.
    plain = rj.State(state.position, state.orientation, state.velocity, state.angular_velocity)
    assert abs(run(plain, 0.0, t1).energy[0]) < 1e-6
    again = RELATIVE.decode(jnp.array(0.0), RELATIVE.encode(state))
    assert again.angle_names == ("h",)
    np.testing.assert_allclose(again.angles["h"], q0, rtol=1e-15)


def test_state_accepts_angles_by_name():
    half = [[np.cos(0.5), 0, 0, np.sin(0.5)]]
    state = rj.State(orientation=half, angles={"h": 1.0 + 4 * np.pi + 0.4})
    y = RELATIVE.encode(state)
    np.testing.assert_allclose(y, [1.0 + 4 * np.pi, 0.0], atol=1e-12)
    assert len(jax.tree.leaves(rj.State(orientation=half))) == 4
    with pytest.raises(ValueError, match="There is no joint called 'g'"):
        RELATIVE.encode(rj.State(angles={"g": 1.0}))
    with pytest.raises(ValueError, match="the Spherical 'b' has none"):
        rj.NullSpace(PENDULUM).encode(START.with_angles(("b",), jnp.zeros(1)))
    with pytest.raises(TypeError, match="mapping from names of joints"):
        rj.State(angles=[1.0])  # pyright: ignore[reportArgumentType]


GEARS = rj.System(
    [rj.Body(name, 1.0, (0.1,) * 3) for name in "hgk"],
    [
        *(rj.Revolute("ground", name, (0, 0, 0), (0, 0, 1), name=name) for name in "hgk"),
        rj.Coupling("g", "h", -0.5, offset=0.3),
        rj.Coupling("g", "k", 0.4),
    ],
)


@pytest.mark.parametrize("formulation", [rj.NullSpace, rj.Relative])
def test_coupled_joints_count_revolutions_across_restarts(formulation):
    """A wheel that two others drive, in four pieces at constant rates."""
    model = formulation(GEARS)
    run = eqx.filter_jit(lambda state, t0, t1: rj.simulate(model, state, t1, t0=t0))
    state = rj.jointed_state(GEARS, {}, {"h": 15.0})
    for t0 in (0.0, 0.5, 1.0, 1.5):
        sol = run(state, t0, t0 + 0.5)
        state = last(sol.states)
    again = rj.simulate(model, y0=sol.ys[-1], t0=2.0, t1=2.1)
    for found, t in ((sol, 2.0), (again, 2.1)):
        expected = [15 * t, 0.3 - 7.5 * t, (0.3 - 7.5 * t) / 0.4]
        coordinates = [found.coordinates[joint][-1, 0] for joint in GEARS.angle_names]
        np.testing.assert_allclose(coordinates, expected, atol=2e-6)
        np.testing.assert_allclose(found.states.joint_angles[-1], expected, atol=2e-6)


def test_missing_revolutions_of_coupled_joints_raise():
    state = rj.jointed_state(GEARS, {"h": 15.0})
    match = r"violate the joint 'coupling g by k'.*angles=\{'g': ..., 'k': ...\}\)`. Got 1.26"
    with pytest.raises(ValueError, match=match):
        rj.NullSpace(GEARS).encode(rj.State(state.position, state.orientation))


def test_run_continues_exactly_from_unknowns():
    model, options = rj.Relative(PENDULUM), {"dt": 0.002, "solver": diffrax.Dopri5()}
    whole = rj.simulate(model, START, 0.16, **options).ys[-1]
    first = rj.simulate(model, START, 0.08, **options)
    second = rj.simulate(model, y0=first.ys[-1], t0=0.08, t1=0.16, **options)
    assert jnp.max(jnp.abs(second.ys[-1] - whole)) < 1e-13 * jnp.max(jnp.abs(whole))
    assert second.coordinates["h"][0, 0] > 10.0


def test_invalid_unknowns_raise():
    model, charted = RUN, rj.NullSpace(WOUND, rj.RotationVector())
    y0 = model.encode(WOUND.reference_state())
    with pytest.raises(ValueError, match="got both"):
        rj.simulate(model, rj.State(), 1.0, y0=y0)
    with pytest.raises(ValueError, match="got neither"):
        rj.simulate(model, t1=1.0)
    with pytest.raises(TypeError, match=r"simulate\(t1=...\)` is needed"):
        rj.simulate(model, y0=y0)
    with pytest.raises(TypeError, match="takes unknowns of the model as `y0=`"):
        rj.simulate(model, y0, 1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="A `State` is given as `state0`"):
        rj.simulate(model, y0=rj.State(), t1=1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"must have shape \(9,\).*got shape \(1, 9\)"):
        rj.simulate(model, y0=y0[None], t1=1.0)
    with pytest.raises(TypeError, match=r"must be float64 as the model; got float32"):
        rj.simulate(model, y0=y0.astype(jnp.float32), t1=1.0)
    with pytest.raises(ValueError, match="must be finite"):
        rj.simulate(model, y0=y0.at[0].set(jnp.nan), t1=1.0)
    with pytest.raises(ValueError, match="violates the constraints of `Quaternion`"):
        rj.simulate(model, y0=y0.at[3].set(1.1), t1=1.0)
    with pytest.raises(ValueError, match="violate the joint 'h'"):
        rj.simulate(model, y0=y0.at[0].set(0.2), t1=1.0)
    with pytest.raises(ValueError, match="references of moving charts"):
        rj.simulate(model, y0=rj.formulations.Charted(y0, jnp.eye(1, 4)), t1=1.0)
    # Unknowns in the fixed chart start a run that moves its charts.
    y0 = charted.encode(rj.jointed_state(WOUND, {"h": 7.0}))
    sol = rj.simulate(charted, y0=y0, t1=0.1)
    np.testing.assert_allclose(sol.coordinates["h"][0, 0], 7 * np.cos(0.1 * OMEGA), rtol=1e-6)
    bad = jax.vmap(lambda y0: rj.simulate(model, y0=y0, t1=0.1, throw=False).result)
    y0 = model.encode(WOUND.reference_state())
    result = bad(jnp.stack([y0, y0.at[0].set(0.2), y0.at[3].set(1.1)]))
    assert (result == rj.RESULTS.invalid_input).tolist() == [False, True, True]


def test_files_preserve_revolutions(tmp_path):
    sol = rj.simulate(RUN, rj.jointed_state(WOUND, {"h": 31.0}), 0.3, ts=[0.1, 0.3])
    rj.io.save(sol, tmp_path / "run.nc")
    data = rj.io.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(data.joint_angles.sel(joint="h"), sol.coordinates["h"][:, 0])
    states = rj.io.states_of(data)
    assert jax.tree.structure(states) == jax.tree.structure(sol.states)
    for ours, theirs in zip(*map(jax.tree.leaves, (states, sol.states)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    end = rj.io.states_of(data.isel(time=-1))
    np.testing.assert_array_equal(end.angles["h"], sol.states.angles["h"][-1])


VMAPPED = {
    "t0": lambda x: rj.simulate(RUN, BEGIN, 0.8, t0=x),
    "t0 and ts": lambda x: rj.simulate(RUN, BEGIN, 0.8, t0=x, ts=[0.5, 0.8]),
    "t0 and dt": lambda x: rj.simulate(RUN, BEGIN, 0.8, t0=x, dt=0.05, solver=diffrax.Dopri5()),
    "t1": lambda x: rj.simulate(RUN, BEGIN, 0.8 + x),
    "rtol": lambda x: rj.simulate(RUN, BEGIN, 0.8, rtol=1e-6 * (1 + x)),
}


@pytest.mark.parametrize("name", VMAPPED)
def test_eager_vmap_over_one_argument(name):
    values = jnp.array([0.0, 0.2])
    many = jax.vmap(lambda x: VMAPPED[name](x).ts)(values)
    one = jnp.stack([VMAPPED[name](x).ts for x in values])
    np.testing.assert_array_equal(many, one)


def test_constant_axis_is_checked_against_traced_one():
    build = lambda axis: rj.Universal("a", "b", (0, 0, 0), axis, (0.0, 1.0, 0.0)).axis1  # noqa: E731
    axes = jnp.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(jax.vmap(build)(axes), axes)


def test_ensembles_preserve_revolutions(tmp_path):
    def run(member):
        return rj.simulate(RUN, rj.jointed_state(WOUND, {"h": member["q0"]}), 0.1, ts=[0.05, 0.1])

    q0 = np.array([31.0, -7.0])
    found = rj.ensemble(run, {"q0": q0}, progress=False)
    expected = q0[:, None] * np.cos(OMEGA * np.array([0.05, 0.1]))
    np.testing.assert_allclose(found.outputs["joint_angles"][..., 0], expected, rtol=1e-6)
    stored = tmp_path / "ensemble.zarr"
    rj.ensemble(run, {"q0": q0}, out=stored, progress=False)
    for data in (found.to_xarray(), Store(stored).to_xarray()):
        ends = rj.io.states_of(data.isel(time=-1))
        np.testing.assert_allclose(ends.angles["h"], expected[:, -1], rtol=1e-6)
