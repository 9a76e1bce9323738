"""Springs and motors on joint coordinates: powers, revolutions, energies of runs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

T, TURN = jnp.array(0.4), np.eye(3)


class Control(eqx.Module):
    """A law with a parameter."""

    gain: jax.Array

    def __call__(self, t, coordinate, rate):
        return -self.gain * rate


def test_arguments_of_motor_laws():
    """A law is a number, a function of time, or a function of the state, by its required
    parameters.
    """
    coordinate, rate = jnp.array(0.3), jnp.array(1.2)
    value = lambda torque: rj.Motor("j", torque).generalised_force(T, coordinate, rate)  # noqa: E731
    assert value(2.5) == 2.5
    assert value(jnp.sin) == jnp.sin(T)
    assert value(lambda t, scale=3.0: scale * t) == 3.0 * T
    assert value(lambda t, q, w: t + 10 * q + 100 * w) == T + 10 * coordinate + 100 * rate
    assert value(Control(jnp.array(0.5))) == -0.5 * rate
    assert len(jax.tree.leaves(rj.Motor("j", Control(jnp.array(0.5))))) == 1
    assert rj.Motor("j", jnp.sin).is_linear
