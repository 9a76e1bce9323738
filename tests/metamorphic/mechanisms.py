"""Mechanisms, and the quantities that are compared."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

FAST = {"xla_backend_optimization_level": 0}
ZERO = jnp.zeros(())
FORMULATIONS = {"null space": rj.NullSpace, "absolute": rj.Absolute}


@functools.cache
def chain() -> tuple[rj.System, rj.State]:
    """System and state; rods get some inertia about their axis: absolute coordinates need it."""
    problem = rj.problems.chain(3)
    bodies = [
        eqx.tree_at(lambda b: b.inertia, b, jnp.maximum(b.inertia, 0.01 * jnp.max(b.inertia)))
        for b in problem.system.bodies
    ]
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
