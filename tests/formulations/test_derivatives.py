"""Derivatives of right-hand sides, at points where a careless formula gives NaN."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from formulations import cases

import rigidjax as rj
from rigidjax.formulations.charts import join_chart, split_chart

ORIENTATIONS = {
    "generic": (0.5, 0.1, -0.7, 0.5),
    "zero rotation": (1.0, 0.0, 0.0, 0.0),
    "half turn": (0.0, 0.48, -0.6, 0.64),
    "half turn about an axis": (0.0, 0.0, 1.0, 0.0),
}
INERTIAS = ((3.0, 2.5, 2.0), (2.0, 2.0, 1.0), (2.0, 2.0, 2.0))
RATES = ((0.7, -1.1, 0.4), (0.0, 0.0, 0.0), (0.0, 0.0, 2.0))


def body():
    return rj.FixedPointBody(
        INERTIAS[0], rj.GravityPotential((0.4, -0.3, 1.2), (0.5, -1.0, -9.0)), rj.LinearDrag(0.2)
    )


def test_first_and_second_derivatives():
    """Along random directions in inertia, state and unknowns: forward, reverse, differences."""
    rng = np.random.default_rng(13)
    points = [
        (jnp.array(p), jnp.array(I + w))
        for p in ORIENTATIONS.values()
        for I in INERTIAS
        for w in RATES
    ]
    orientations, parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *points)

    base = rj.NullSpace(body(), rj.RodriguesParameters())
    size = base.num_unknowns

    def field(orientation, theta):
        """Rates of the unknowns that a state has in its chart, and the energy."""
        inertia, omega, shift = theta[:3], theta[3:6], theta[6:]
        model = eqx.tree_at(lambda m: m.system.inertia, base, inertia)
        state = rj.State(orientation=orientation, angular_velocity=omega)
        y = model.chart(state) if model.recharting else model.pack(state)
        values, _ = split_chart(y)
        y = join_chart(values + shift, y)
        t = jnp.zeros(())
        rates, _ = split_chart(model.vector_field(t, y))
        return jnp.append(rates, model.energy(t, y))

    @jax.jit
    @jax.vmap
    def errors(p, theta, v, w):
        theta = jnp.concatenate([theta, jnp.zeros(size)])
        value = lambda theta: field(p, theta)  # noqa: E731
        slope = lambda theta: jax.jvp(value, (theta,), (v,))[1]  # noqa: E731
        first, second = jax.jvp(slope, (theta,), (v,))
        gradient = lambda theta: jax.vjp(value, theta)[1](w)[0]  # noqa: E731
        backward, mixed = jax.jvp(gradient, (theta,), (v,))
        h = 1e-5
        difference = lambda f: (f(theta + h * v) - f(theta - h * v)) / (2 * h)  # noqa: E731
        return {
            "first": cases.error(first, difference(value)),
            "second": cases.error(second, difference(slope)),
            "reverse": cases.error(backward @ v, w @ first),
            "forward over reverse": cases.error(mixed @ v, w @ second),
        }

    v, w = rng.normal(size=(36, 6 + size)), rng.normal(size=(36, 1 + size))
    found = errors(orientations, parameters, jnp.asarray(v), jnp.asarray(w))
    found = {key: float(jnp.max(value)) for key, value in found.items()}
    # Differences: truncation 1e-10 times third derivatives of up to a few hundred.
    assert found["first"] < 2e-8
    assert found["second"] < 2e-8
    assert found["reverse"] < 1e-13
    assert found["forward over reverse"] < 1e-13
