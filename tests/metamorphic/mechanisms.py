"""Mechanisms with and without loops, and what is compared."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.problems.adams_case import CASES

FAST = {"xla_backend_optimization_level": 0}
ZERO = jnp.zeros(())
FORMULATIONS = {"null space": rj.NullSpace, "absolute": rj.Absolute}
# Every problem of `rj.problems` that is a system, but for those that differ in their numbers alone.
BUILD = {
    "four_bar": lambda: rj.problems.four_bar(thickness=0.05),
    "bricard": lambda: rj.problems.bricard(thickness=0.05),
    "chain": lambda: rj.problems.chain(3),
    "two_bodies": rj.problems.two_bodies,
    "slider_crank": rj.problems.slider_crank,
    "turntable": rj.problems.turntable,
    "dual_spin_satellite": rj.problems.dual_spin_satellite,
    "simple_pendulum": rj.problems.simple_pendulum,
    "n_four_bar": lambda: rj.problems.n_four_bar(2),
    "andrews": rj.problems.andrews,
    "flyball_governor": rj.problems.flyball_governor,
    **{f"adams_case-{case}": functools.partial(rj.problems.adams_case, case) for case in CASES},
}
# Mechanisms of `make test`: a redundant loop in motion, free bodies with a spring.
QUICK = (("four_bar", "absolute"), ("two_bodies", "null space"))


@functools.cache
def mechanism(name: str) -> tuple[rj.System, rj.State]:
    """System and state; bodies without inertia about an axis get some: absolute coordinates need
    it."""
    problem = BUILD[name]()
    bodies = []
    for body in problem.system.bodies:
        if body.inertia.ndim == 1:
            largest = jnp.max(body.inertia)
            least = 0.01 * jnp.where(largest == 0, body.mass, largest)
            body = eqx.tree_at(lambda b: b.inertia, body, jnp.maximum(body.inertia, least))
        bodies.append(body)
    system = rj.System(bodies, problem.system.joints, problem.system.forces)
    return system, jax.tree.map(np.asarray, problem.state0)


def make_evaluation(formulation: str):
    """Accelerations, reactions, kinetic energy and drift of a system in a state."""

    def evaluate(system, state):
        model = FORMULATIONS[formulation](system)
        y = model.pack(state)
        reactions = model.reactions(ZERO, y) if system.joints else {}
        kinetic = model.energy(ZERO, y) - system.potential_energy(ZERO, model.kinematics(ZERO, y))
        wrenches = {name: (r.force, r.moment) for name, r in reactions.items()}
        return model.accelerations(ZERO, y), wrenches, kinetic, jnp.stack(model.drift(ZERO, y))

    return evaluate


def evaluate_batch(formulation: str, systems, states):
    """Apply `evaluated` to stacked systems of one structure, in one compiled function."""
    program = jax.jit(jax.vmap(make_evaluation(formulation)), compiler_options=FAST)
    return jax.tree.map(np.asarray, program(systems, states))


def alone(formulation: str, system, state):
    """`evaluated` of one."""
    program = jax.jit(make_evaluation(formulation), compiler_options=FAST)
    return jax.tree.map(np.asarray, program(system, jax.tree.map(jnp.asarray, state)))


def sizes(system: rj.System, out) -> dict[str, float]:
    """Return the scales of the results: the largest of their kind."""
    linear = [np.abs(out[0].linear).max()]
    angular = [np.abs(out[0].angular).max()]
    force = [np.abs(f).max() for f, _ in out[1].values()]
    moment = [np.abs(m).max() for _, m in out[1].values()]
    # Where all of a kind is round-off: what a length makes of the others.
    length = max(float(np.abs(np.asarray(b.inertia)).max() / b.mass) for b in system.bodies) ** 0.5
    a = max(*linear, *(x * length for x in angular))
    weights = [float(body.mass) * a for body in system.bodies if system.joints]
    f = max([*force, *(x / length for x in moment), *weights, 0.0])
    return {"linear": a, "angular": a / length, "force": f, "moment": f * length}
