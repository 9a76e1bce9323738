"""A humanoid in free flight, loaded from a URDF file: lowering one arm turns a somersault into a
twist.

The right arm moves in the plane of the chest. The angular momentum stays constant, so that the body
tilts and twists about its long axis; motors hold all other joints."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj

model = rj.models.load("examples/humanoid/humanoid.urdf", meshes=True)
loaded = model.system
raised = {"left_shoulder": 2.9, "right_shoulder": 2.9, "left_elbow": -0.2, "right_elbow": -0.2}


def motor(joint):
    def torque(t, angle, rate):
        lowered = 0.5 - 0.5 * jnp.cos(jnp.pi * jnp.clip((t - 0.15) / 0.25, 0.0, 1.0))
        wanted = raised.get(joint, 0.0) * (1.0 - lowered * (joint == "right_shoulder"))
        return -stiffness * (angle - wanted) - 0.06 * stiffness * rate

    stiffness = 1.5 * model.limits[joint].effort
    return rj.Motor(joint, torque)


forces = [*loaded.forces, *map(motor, model.limits)]
system = rj.System(loaded.bodies, loaded.joints, forces, loaded.frames)
take_off = {"free ground-pelvis": (1.0, 0.0, 4.5, 0.0, 7.0, 0.0)}
start = rj.jointed_state(system, raised, take_off)
ts = np.linspace(0, 1.6, 193)
sol = rj.simulate(rj.Relative(system), start, 1.6, ts=ts, rtol=1e-7, atol=1e-7)
shown = rj.view(sol)
