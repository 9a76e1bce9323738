"""Unknowns: how many, their order, encode and decode, charts, messages."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems
from formulations import cases

import rigidjax as rj
from rigidjax.formulations import Charted
from rigidjax.rotations import euler_map

TOP, BODIES = cases.loaded_top(), cases.two_bodies()
ZERO = jnp.zeros(())


def test_batched_unknowns():
    """A model with stacked leaves has the unknowns of one model, also with multipliers."""
    model = rj.Absolute(rj.problems.four_bar().system, index=3)
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model)
    assert batch.num_unknowns == model.num_unknowns == 3 * 14 + 3 * 1 + 20


def test_order_of_the_unknowns():
    """Poses of all bodies, then velocities of all bodies, as Lang (58), (68)."""
    state = rj.State(
        position=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        orientation=[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]],
        velocity=[[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]],
        angular_velocity=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]],
    )
    y = rj.NullSpace(BODIES).encode(state)
    expected = [1, 2, 3, 1, 0, 0, 0, 4, 5, 6, 0, 1, 0, 0]
    expected += [7, 8, 9, 0.1, 0.2, 0.3, 10, 11, 12, 0.4, 0.5, 0.6]
    assert np.array_equal(y, np.array(expected))
    space = rj.NullSpace(BODIES, rates="space").encode(state)
    # A half turn about the first axis.
    assert np.allclose(space[-3:], [0.4, -0.5, -0.6], rtol=0, atol=1e-15)


@pytest.mark.float32
@pytest.mark.parametrize(
    "rotation", [rj.Quaternion(), rj.EulerAngles("ZXZ")], ids=cases.rotation_name
)
def test_encode_and_decode_are_inverse(rotation):
    for model in cases.models(BODIES, [rotation]):
        rng = np.random.default_rng(7)
        states = cases.random_states(rng, BODIES, 32, cases.reach(model))
        back = jax.jit(jax.vmap(lambda s, m=model: m.decode(ZERO, m.encode(s))))(states)
        assert cases.error(cases.attitude(back), cases.attitude(states)) < cases.round_off(1000)
        for name in ("position", "velocity"):
            assert np.array_equal(getattr(back, name), getattr(states, name))
        assert cases.error(back.angular_velocity, states.angular_velocity) < cases.round_off(5000)


SPECIAL = {
    "identity": (1.0, 0.0, 0.0, 0.0),
    "minus identity": (-1.0, 0.0, 0.0, 0.0),
    "half turn": (0.0, 0.6, 0.0, 0.8),
    "half turn about the first axis": (0.0, 1.0, 0.0, 0.0),
    "quarter turn about the second axis": (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0),
    "quarter turn about the third axis": (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)),
    "almost a half turn": (1e-9, 0.0, 1.0, 0.0),
    "almost the identity": (1.0, 0.0, 1e-9, 0.0),
}


@pytest.mark.parametrize(
    "rotation", [rj.RotationVector(), rj.EulerAngles("ZXZ")], ids=cases.rotation_name
)
def test_charts_at_special_rotations(rotation):
    """A state at the singularity of a parametrization starts in another chart, exactly."""
    omega = (1.0, 2.0, 3.0)
    states = jax.vmap(lambda p: rj.State(orientation=p, angular_velocity=omega))(
        jnp.array(list(SPECIAL.values()))
    )
    for model in (rj.NullSpace(TOP, rotation), rj.Absolute(TOP, rotation)):

        def there_and_back(state, model=model):
            y = model.chart(model.check_state(state))
            back = model.decode(ZERO, y)
            slope = jax.jvp(
                lambda y: model.decode(ZERO, y).orientation, (y,), (model.vector_field(ZERO, y),)
            )[1]
            return y, back, slope, model.singularity(ZERO, y)

        y, back, slope, distance = jax.jit(jax.vmap(there_and_back))(states)
        assert isinstance(y, Charted)
        assert cases.error(cases.attitude(back), cases.attitude(states)) < 1e-15
        assert cases.error(back.angular_velocity, states.angular_velocity) < 1e-14
        expected = jax.vmap(lambda p: rj.Quaternion().rate(p, jnp.array(omega)))(
            back.orientation[:, 0]
        )
        assert cases.error(slope[:, 0], expected) < 1e-14
        limit = 0.5 * rotation.singularity(rotation.center())
        assert np.all(distance >= limit * (1 - 1e-15))


def test_chart_is_the_identity_where_possible():
    state = rj.State(orientation=(0.96, 0.0, 0.28, 0.0), angular_velocity=(1.0, 2.0, 3.0))
    for rotation in cases.MINIMAL[:4]:
        model = rj.NullSpace(TOP, rotation)
        y = model.chart(model.check_state(state))
        assert np.array_equal(y.reference, [[1.0, 0.0, 0.0, 0.0]])
        np.testing.assert_allclose(y.values, model.encode(state), rtol=1e-15, atol=0)


@pytest.mark.parametrize("rotation", cases.MINIMAL, ids=cases.rotation_name)
def test_rechart_keeps_the_state(rotation):
    """One of two bodies approaches its singularity, and only its chart moves."""
    model = rj.Absolute(BODIES, rotation)
    rng = np.random.default_rng(11)
    state = jax.tree.map(lambda x: x[0], cases.random_states(rng, BODIES, 1))
    y = model.chart(state)
    center = rotation.center()
    # Body one to 0.1 rad of the singularity, along the first coordinate or the middle angle.
    index = 1 if isinstance(rotation, rj.EulerAngles) else 0
    distance = lambda s: rotation.singularity(center.at[index].add(s))  # noqa: E731
    grid = np.geomspace(0.01, 200.0, 4001)
    close = grid[int(np.argmax(np.asarray(jax.vmap(distance)(jnp.asarray(grid))) < 0.1))]
    a = center.at[index].add(close)
    layout = model.layout
    (x, coordinates), (v, rates) = layout.poses(y.values), layout.twists(y.values)
    rates = rates.at[0].set(rotation.rate(a, state.angular_velocity[0]))
    values = [layout.join(x, coordinates.at[0].set(a)), layout.join(v, rates)]
    y = Charted(jnp.concatenate(values), y.reference)
    moved_y, moved = model.rechart(ZERO, y)
    assert bool(moved)
    before, after = model.decode(ZERO, y), model.decode(ZERO, moved_y)
    assert cases.error(cases.attitude(after), cases.attitude(before)) < 1e-14
    assert cases.error(after.angular_velocity, before.angular_velocity) < 1e-12
    assert np.array_equal(after.position, before.position)
    assert np.array_equal(moved_y.reference[1], y.reference[1])
    assert float(model.singularity(ZERO, moved_y)) >= 0.5 * float(rotation.singularity(center))
    again, moved = model.rechart(ZERO, moved_y)
    assert not bool(moved)
    assert eqx.tree_equal(again, moved_y)


@pytest.mark.parametrize("formulation", [rj.NullSpace, rj.Absolute, rj.Relative])
def test_jaxpr_of_charts_does_not_grow_with_bodies(formulation):
    def size(count):
        bodies = [rj.Body(f"{i}", 1.0, (1.0, 2.0, 2.5), (i, 0.0, 0.0)) for i in range(count)]
        joints = [rj.Spherical("ground", body.name, body.position) for body in bodies[::2]]
        model = formulation(rj.System(bodies, joints), rj.RotationVector()).prepare()

        def charts(model, state):
            y = model.chart(state)
            return model.rechart(ZERO, y), model.singularity(ZERO, y)

        return str(jax.make_jaxpr(charts)(model, model.system.reference_state())).count(" = ")

    assert size(20) == size(60)


def test_models_do_not_leak_tracers():
    """One model is used inside several compiled functions and outside of them."""
    for system in (TOP, systems.case("pendulum").system):
        model = rj.NullSpace(system)
        state = rj.State() if system is TOP else system.reference_state()
        y = jax.jit(model.encode)(state)
        equations = rj.Absolute(system, index=3).equations

        def all_of_it(y, model=model, equations=equations, state=state):
            z = equations.model.pack(state)
            q, v, angles = equations.split(z)
            mass, at = model.prepared_system.masses, model.configuration(ZERO, y)
            closed = model.close_joints(ZERO, y)
            constraints = equations.constraint(ZERO, q, angles), equations.force(ZERO, q, v, z)
            return mass, at.nu, closed, constraints, model.reactions(ZERO, y)

        first, second = jax.jit(all_of_it)(y), jax.jit(lambda y: all_of_it(1.0 * y))(y)
        assert eqx.tree_equal(first, second)
        with jax.checking_leaks():
            assert eqx.tree_equal(first, jax.jit(lambda y: all_of_it(y))(y))
        assert np.array_equal(first[0], model.prepared_system.masses)


def test_redundant_parametrizations_do_not_rechart():
    for rotation in cases.REDUNDANT:
        assert not rj.NullSpace(TOP, rotation, recharting=True).recharting
        assert not rj.Absolute(TOP, rotation, recharting=True).recharting
    assert rj.NullSpace(TOP, rj.RotationVector()).recharting
    assert not rj.NullSpace(TOP, rj.RotationVector(), recharting=False).recharting


def test_reference_state_is_encoded_and_decoded():
    place, turn, rates = (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), ((4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    body = rj.Body("a", 1.0, (1.0, 1.0, 1.0), place, turn, *rates)
    model = rj.NullSpace(rj.System(body))
    state = model.decode(ZERO, model.encode(rj.System(body).reference_state()))
    assert np.array_equal(state.position, [place])
    assert np.array_equal(state.orientation, [turn])
    assert np.array_equal(np.concatenate([state.velocity, state.angular_velocity]), rates)
    assert rj.System(body).num_dof == 6
    assert model.reactions(ZERO, model.encode(state)) == {}


def test_quaternions_close_to_unit_length_are_normalised():
    model = rj.NullSpace(TOP)
    y = model.encode(rj.State(orientation=(1.0 + 5e-7, 0.0, 0.0, 0.0)))
    assert np.array_equal(y[:4], [1.0, 0.0, 0.0, 0.0])


BAD_STATES = [
    (rj.State(orientation=(1.0 + 2e-6, 0.0, 0.0, 0.0)), "unit quaternions, scalar first, to 1e-6"),
    (rj.State(orientation=(0.0, 0.0, 0.0, 0.0)), "unit quaternions, scalar first, to 1e-6"),
    (rj.State(orientation=(np.nan, 0.0, 0.0, 0.0)), r"State\(orientation=...\)` must be finite"),
    (rj.State(angular_velocity=(np.inf, 0.0, 0.0)), r"State\(angular_velocity=...\)` must be fin"),
    (rj.State(position=(1.0, 0.0, 0.0)), r"State\(position=...\)` of a `FixedPointBody` must be"),
    (rj.State(velocity=(1.0, 0.0, 0.0)), r"State\(velocity=...\)` of a `FixedPointBody` must be"),
    (rj.State(position=(np.nan, 0.0, 0.0)), r"State\(position=...\)` must be finite"),
]


@pytest.mark.parametrize(("state", "match"), BAD_STATES)
def test_invalid_states_raise(state, match):
    model = rj.NullSpace(TOP)
    with pytest.raises(ValueError, match=match):
        model.encode(state)
    with pytest.raises(eqx.EquinoxRuntimeError, match=match):
        jax.block_until_ready(eqx.filter_jit(model.encode)(state))


def test_wrong_types_and_sizes_raise():
    model = rj.NullSpace(TOP)
    with pytest.raises(TypeError, match="encodes a `State`; got tuple"):
        model.encode((1.0, 0.0))
    with pytest.raises(ValueError, match="has 1 bodies, the state has 2"):
        model.encode(rj.State(orientation=np.eye(4)[:2]))
    with pytest.raises(ValueError, match="has 2 bodies, the state has 1"):
        rj.Absolute(BODIES).encode(rj.State())
    for formulation in (rj.NullSpace, rj.Absolute):
        with pytest.raises(
            TypeError, match="takes a `System` or a `FixedPointBody`; got Body. Wrap"
        ):
            formulation(BODIES.bodies[0])
        with pytest.raises(TypeError, match="`rotation` must be a parametrization such as"):
            formulation(TOP, rj.Quaternion)
        with pytest.raises(TypeError, match="got 'quaternion'"):
            formulation(TOP, "quaternion")
    with pytest.raises(ValueError, match=r'`rates` must be "body" or "space"; got \'world\''):
        rj.NullSpace(TOP, rates="world")
    for index in (-1, 4, "2"):
        with pytest.raises(ValueError, match=r"`Absolute\(index=...\)` must be 0, 1, 2 or 3; got"):
            rj.Absolute(TOP, index=index)


def test_unknowns_of_another_formulation_raise():
    """Five of them have the size of the unknowns of the hinge, and would be accepted silently."""
    system = rj.System(
        rj.Body("a", 1.0, [1.0] * 3), [rj.Revolute("ground", "a", [0] * 3, [0, 0, 1])]
    )
    y = rj.NullSpace(system).encode(system.reference_state())
    match = r"`Relative` has unknowns of shape \(2,\); got \(8,\). `model.encode\(state\)` gives"
    for of in (rj.Relative(system).vector_field, rj.Relative(system).energy):
        with pytest.raises(ValueError, match=match):
            of(0.0, y)
    with pytest.raises(ValueError, match=r"`Absolute` has unknowns of shape \(14,\) or \(20,\)"):
        rj.Absolute(system, index=3).energy(0.0, y)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"orientation": (1.0, 0.0, 0.0)}, r"State\(orientation=...\)` must have shape \(L, 4\)"),
        (
            {"angular_velocity": np.zeros((2, 2, 3))},
            r"\(L, 3\), .* got shape \(2, 2, 3\).*jax.vmap",
        ),
        ({"position": np.zeros(4)}, r"State\(position=...\)` must have shape \(L, 3\)"),
        ({"velocity": 1.0}, r"State\(velocity=...\)` must have shape"),
        (
            {"position": np.zeros((2, 3)), "velocity": np.zeros((3, 3))},
            r"one row for each body in every argument; got \{'position': 2, 'velocity': 3\}",
        ),
    ],
)
def test_invalid_shapes_of_a_state_raise(parts, match):
    with pytest.raises(ValueError, match=match):
        rj.State(**parts)


def test_omitted_parts_of_a_state_are_zero():
    state = rj.State(position=[[1, 2, 3], [4, 5, 6]])
    assert state.num_bodies == 2
    assert np.array_equal(state.orientation, [[1.0, 0.0, 0.0, 0.0]] * 2)
    assert np.array_equal(state.velocity, np.zeros((2, 3)))
    assert np.array_equal(state.angular_velocity, np.zeros((2, 3)))
    assert state.position.dtype == jnp.result_type(float)
    single = rj.State(angular_velocity=np.ones(3, np.float32))
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {np.dtype(np.float32)}
    assert cases.error(jax.vmap(euler_map)(rj.State().orientation), np.eye(3)[None]) == 0.0
