"""Batches of systems, side by side, against one after another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import side_by_side as module
from rigidjax.side_by_side import side_by_side

COUNT = 20
INERTIA = (0.01, 0.09, 0.08)
# Two ways of elimination, both regular to some ten thousand units of round-off.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Three blocks for the batches of these tests, one of them filled up."""
    monkeypatch.setattr(module, "_BLOCK", 8)


def chain():
    bodies = [rj.Body(f"{i}", 1.0, INERTIA, position=(i + 0.5, 0, 0)) for i in range(4)]
    names = ["ground", *(body.name for body in bodies)]
    joints = [rj.Spherical(names[i], names[i + 1], (i, 0, 0)) for i in range(4)]
    return rj.System(bodies, joints, rj.Gravity((0, 0, -9.81)))


def mixed():
    """Joints of all kinds, branches, a joint turned round, a driven one, a free body."""
    bodies = [
        rj.Body(f"{i}", 1.0 + 0.1 * i, INERTIA, position=(i + 0.5, 0.1 * i, 0)) for i in range(9)
    ]
    joints = [
        rj.Spherical("ground", "0", (0, 0, 0)),
        rj.Revolute("1", "0", (1, 0, 0), (0, 1, 0.3)),
        rj.Prismatic("1", "2", (1, 0.2, 0)),
        rj.Cylindrical("3", "2", (2, 0, 0), (0, 0, 1)),
        rj.Universal("3", "4", (3, 1, 0), (1, 0, 0), (0, 1, 0)),
        rj.Planar("2", "5", (1, 1, 0), (0, 0, 1)),
        rj.Screw("5", "6", (4, 1, 0), (0, 1, 0), 0.2),
        rj.Revolute("6", "7", (2, 2, 1), (1, 1, 0), motion=lambda t: 0.3 * jnp.sin(2 * t)),
    ]
    return rj.System(bodies, joints, rj.Gravity((0.3, 0, -9.81)))


def hinges():
    bodies = [rj.Body(f"{i}", 1.0, INERTIA, position=(i + 0.5, 0, 0)) for i in range(3)]
    names = ["ground", "0", "0", "1"]
    joints = [rj.Revolute(names[i], str(i), (float(i), 0, 0), (0, 1, i)) for i in range(3)]
    return rj.System(
        bodies, joints, [rj.Gravity((0, 0, -9.81)), rj.TorsionSpring("revolute 0-1", 2.0)]
    )


@pytest.fixture(scope="module", params=[chain, mixed, hinges])
def case(request):
    """A model and a batch of unknowns on its constraints."""
    model = rj.NullSpace(request.param())
    y = model.pack(model.system.reference_state())
    shift = np.random.default_rng(7).normal(size=(COUNT, len(y)))
    velocities = model.layout.num_velocities
    start = len(y) - velocities - model.layout.num_angles
    shift[:, :start] *= 0.05
    t = jnp.asarray(0.37)
    project = jax.jit(lambda y: model.project(t, y))
    return model, t, jnp.stack([project(y + one) for one in shift])


@pytest.fixture(scope="module")
def one_by_one(case):
    model, t, ys = case
    field = jax.jit(lambda t, y: model.vector_field(t, y))
    return jnp.stack([field(t, y) for y in ys])


@pytest.mark.exhaustive(but=("hinges",))
def test_a_batch_is_what_its_systems_are(case, one_by_one):
    model, t, ys = case
    batch = jax.jit(jax.vmap(lambda y: model.vector_field(t, y)))(ys)
    scale = float(jnp.max(jnp.abs(one_by_one)))
    np.testing.assert_allclose(batch / scale, one_by_one / scale, **CLOSE)


@pytest.mark.exhaustive(but=("hinges",))
def test_lost_systems_leave_the_others_alone(case, one_by_one):
    model, t, ys = case
    spoiled = ys.at[3].set(jnp.nan)
    batch = jax.jit(jax.vmap(lambda y: model.vector_field(t, y)))(spoiled)
    keep = np.arange(COUNT) != 3
    assert not np.any(np.isfinite(batch[3, -model.layout.num_velocities :]))
    scale = float(jnp.max(jnp.abs(one_by_one)))
    np.testing.assert_allclose(batch[keep] / scale, one_by_one[keep] / scale, **CLOSE)


@pytest.mark.exhaustive
def test_derivatives_of_batches():
    model = rj.NullSpace(chain())
    y = model.pack(model.system.reference_state())
    ys = y + jnp.asarray(
        np.random.default_rng(1).normal(size=(9, len(y))) * (np.arange(len(y)) >= 28)
    )
    t = jnp.zeros(())
    batch = jax.vmap(lambda y: model.vector_field(t, y))
    direction = jnp.asarray(np.random.default_rng(2).normal(size=ys.shape))

    def value(y):
        return jnp.sum(jnp.sin(model.vector_field(t, y)))

    one = jax.jit(lambda y, d: jax.jvp(lambda y: model.vector_field(t, y), (y,), (d,))[1])
    expected = jnp.stack([one(y, d) for y, d in zip(ys, direction, strict=True)])
    of_batch = jax.jit(lambda y, d: jax.jvp(batch, (y,), (d,))[1])(ys, direction)
    np.testing.assert_allclose(of_batch, expected, rtol=1e-9, atol=1e-9)
    one_gradient = jax.jit(jax.grad(value))
    gradients = jnp.stack([one_gradient(y) for y in ys])
    of_each = jax.jit(jax.vmap(jax.grad(value)))(ys)
    of_sum = jax.jit(jax.grad(lambda ys: jnp.sum(jnp.sin(batch(ys)))))(ys)
    np.testing.assert_allclose(of_each, gradients, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(of_sum, gradients, rtol=1e-9, atol=1e-9)


def test_a_batch_of_masses():
    masses = jnp.linspace(1.0, 3.0, 10)

    def field(mass):
        bodies = [rj.Body(f"{i}", mass, INERTIA, position=(i + 0.5, 0, 0)) for i in range(2)]
        joints = [
            rj.Spherical("ground", "0", (0, 0, 0)),
            rj.Spherical("0", "1", (1, 0, 0)),
        ]
        system = rj.System(bodies, joints, rj.Gravity((0, 0, -9.81)))
        y = jnp.concatenate(
            [system.reference_state().position, system.reference_state().orientation], 1
        )
        y = jnp.concatenate([y.ravel(), jnp.arange(6.0)])
        return rj.NullSpace(system).vector_field(jnp.zeros(()), y)

    batch = jax.jit(jax.vmap(field))(masses)
    one = jax.jit(field)
    np.testing.assert_allclose(batch, jnp.stack([one(m) for m in masses]), rtol=1e-11, atol=1e-11)


def test_laws_may_close_over_traced_values():
    """In which case derivatives with respect to these are what they were."""

    def rate(k):
        body = rj.Body("0", 1.0, INERTIA, position=(0.5, 0, 0))
        drive = rj.Revolute("ground", "0", (0, 0, 0), (0, 0, 1), name="hinge")
        system = rj.System([body], [drive], rj.Motor("hinge", lambda t, q, v: k * t))
        y = jnp.array([0.5, 0, 0, 1.0, 0, 0, 0, 0.0])
        model = rj.NullSpace(system)
        y = model.pack(system.reference_state())
        return model.vector_field(jnp.asarray(2.0), y)[7]

    # Inertia about the hinge 0.08 + 0.25, torque 2 k.
    np.testing.assert_allclose(jax.grad(rate)(3.0), 2 / 0.33, rtol=1e-12)
    rates = jax.vmap(jax.grad(rate))(jnp.arange(9.0))
    np.testing.assert_allclose(rates, np.full(9, 2 / 0.33), rtol=1e-12)


FUNCTIONS = {
    "sort": lambda A, v: jnp.sort(v)[::-1] @ A,
    "matrices": lambda A, v: (A @ v) @ A.T + jnp.trace(A),
    "batched index": lambda A, v: A[jnp.argmax(v)] + jnp.take(A, jnp.argmin(v), axis=1),
    "loop": lambda A, v: jax.lax.fori_loop(0, 3, lambda i, v: A @ v + v[i], v),
    "condition": lambda A, v: jax.lax.cond(v[0] > 0, lambda v: v, lambda v: A @ v, v),
    "scan": lambda A, v: jax.lax.scan(lambda c, a: (c + a @ v, c * v), v[0], A)[1],
    "shapes": lambda A, v: jnp.pad(jnp.flip(A.T, 0).reshape(-1), (1, 2))[2:8:2] * jnp.roll(v, 1),
    "solve": lambda A, v: jnp.linalg.solve(A + 5 * jnp.eye(3), v),
    "constant": lambda A, v: (jnp.arange(3.0), v > 0, jnp.where(v > 0, v, jnp.zeros(3))),
}


@pytest.mark.parametrize("shared", [False, True], ids=["both", "shared matrix"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_any_function_goes_side_by_side(name, shared):
    function = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    A = jnp.asarray(rng.normal(size=(3, 3) if shared else (COUNT, 3, 3)))
    v = jnp.asarray(rng.normal(size=(COUNT, 3)))
    axes = (None if shared else 0, 0)
    batch = jax.jit(jax.vmap(side_by_side(function, function), in_axes=axes))(A, v)
    expected = jax.jit(jax.vmap(function, in_axes=axes))(A, v)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13), batch, expected
    )


def test_few_systems_are_left_to_vmap():
    """Whose program `together` is not asked for."""

    def never(v):
        raise AssertionError("asked for")

    v = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jax.vmap(side_by_side(lambda v: 2 * v, never))(v), 2 * v)
