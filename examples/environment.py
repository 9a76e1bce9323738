"""An environment for learning: a cart-pole that is to be swung up, 4,096 copies at once.

`reset`, `step` and `reward` are pure functions. `python examples/environment.py` makes 100 periods
with random forces, and prints the mean reward and the number of steps per second.
"""

import time

import diffrax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import rigidjax as rj  # noqa: E402

CART = rj.Body.box("cart", (0.4, 0.2, 0.1), mass=1.0)
POLE = rj.Body.rod("pole", 1.0, 0.02, mass=0.2, position=(0, 0, -0.5))
RAIL = rj.Prismatic("ground", "cart", axis=(1, 0, 0), name="rail")
HINGE = rj.Revolute("cart", "pole", (0, 0, 0), axis=(0, 1, 0), name="hinge")
FORCES = [rj.Gravity((0, 0, -9.81)), rj.Motor("rail", torque=rj.Input("force"))]
SYSTEM = rj.System(CART, POLE, RAIL, HINGE, FORCES)
STEPPER = rj.Stepper(rj.Relative(SYSTEM), 0.02, solver=diffrax.Dopri5(), dt=0.02)


def reset(key):
    """Return the start of an episode: the pole hangs nearly still."""
    angle, rate = 0.1 * jax.random.normal(key, (2,))
    return STEPPER.init(rj.jointed_state(SYSTEM, {"hinge": angle}, {"hinge": rate}))


def reward(view, force):
    """Return the height of the pole, less the costs of distance and force."""
    height = -jnp.cos(view.coordinates["hinge"][0])
    return height - 0.1 * view.coordinates["rail"][0] ** 2 - 1e-3 * force**2


@rj.native.jit
def step(y, force):
    """Return the state after a period, its observation and its reward."""
    y = STEPPER.step(y, {"force": force})
    view = STEPPER.observe(y)
    observation = jnp.concatenate([view.coordinates[n] for n in ("rail", "hinge")])
    return y, observation, reward(view, force)


@jax.jit
def rollout(y, forces):
    """Return the states after all periods of forces (T, N), and the rewards (T, N)."""

    def advance(y, force):
        y, _, rewards = jax.vmap(step)(y, force)
        return y, rewards

    return jax.lax.scan(advance, y, forces)


if __name__ == "__main__":
    keys = jax.random.split(jax.random.key(0), 4096)
    start = jax.jit(jax.vmap(reset))(keys)
    forces = 5.0 * jax.random.normal(jax.random.key(1), (100, 4096))
    jax.block_until_ready(rollout(start, forces))  # Compiles.
    begin = time.perf_counter()
    end, rewards = jax.block_until_ready(rollout(start, forces))
    seconds = time.perf_counter() - begin
    print(f"mean reward {rewards.mean():.3f}, {forces.size / seconds:.2e} steps per second")
