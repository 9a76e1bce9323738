"""A leg of the robot Cassie: two rods close loops, motors crouch and stretch it, and pushes at the foot bend its springs."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np

import rigidjax as rj

leg = json.loads(pathlib.Path("datasets/cassie_leg/leg.json").read_text())
bodies = [rj.Body(**body) for body in leg["bodies"]]
joints = [getattr(rj, joint.pop("type"))(**joint) for joint in leg["joints"]]
springs = [rj.TorsionSpring(**spring) for spring in leg["springs"]]
aims = {"hip roll": 0.0, "hip yaw": 0.0, "hip pitch": 0.3, "knee": -0.5, "foot": 0.3}


def motor(name):
    def torque(t, angle, rate):
        return 1000 * (aims[name] * jnp.sin(np.pi * t) ** 2 - angle) - 30 * rate

    return rj.Motor(name, torque)


push = rj.PointForce("foot", (0, 0, 0), lambda t: jnp.array([0, 0, 300]) * jnp.sin(np.pi * t) ** 8)
forces = [rj.Gravity((0, 0, -9.81)), push, *springs, *map(motor, aims)]
system, ts = rj.System(bodies, joints, forces), np.linspace(0, 3.5, 211)
sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 3.5, ts=ts, rtol=1e-6, atol=1e-6)
shown = rj.view(sol)
