"""The Staubli TX40 by trajectories: friction and rotors of both halves of the motion.

`python examples/published_cases/robot_arm.py` prints values of docs/published_cases/staubli_tx40.md
within a quarter of an hour. Links are those of a consistent regression of the whole motion;
friction and rotors of the joints are fitted to predictions one sample ahead of the raw angles,
driven by the raw torques, whose noise is estimated. Motor 6 turns with joints 5 and 6: its rotor
is added to that of both, its viscous friction acts on the sum of their rates, and its Coulomb
friction on joint 6 only.
"""

import pathlib

import jax
import numpy as np

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.identification import Parameter

jax.config.update("jax_enable_x64", True)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "staubli_tx40"
JOINTS = [f"joint_{k}" for k in range(1, 7)]
COUPLED = {"motor 6": {"joint_5": 1.0, "joint_6": 1.0}}
ZERO = np.pi / 2 * np.array([0, -1, 1, 0, 0, 0])
# Fits use one of `EVERY` rows, without those at both ends; Coulomb friction is smooth below a rate,
# rad/s.
EVERY, EDGE, SMOOTH = 2, 20, 0.1


def recording():
    """Return times, joint angles (T, 6), rad, and joint torques (T, 6), N m, as recorded."""
    raw = {key: x.astype(float) for key, x in np.load(FOLDER / "excitation.npz").items()}
    gear = np.diag(raw["reduction"])
    gear[5, 4] = gear[5, 5]
    ts = raw["dt"] * np.arange(len(raw["motor_position"]))
    angles = np.linalg.solve(gear, raw["motor_position"].T).T + ZERO
    return ts, angles, raw["motor_torque"] @ gear


def smooth_motion(ts, angles):
    """Return angles, rates and accelerations below 50 Hz."""
    q = ident.lowpass(ts, angles, 50.0)
    return q, *(ident.differentiate(ts, q, window=0.01, derivative=k) for k in (1, 2))


def regress():
    """Return the consistent regression of the whole motion."""
    ts, angles, torques = recording()
    robot = rj.models.load(FOLDER / "tx40.urdf", fixed_base=True)
    arm, nominal = ident.describe_in_frames(robot.system, robot.frames)
    # The file has no inertia of link 6: a ball of 3 cm.
    nominal["link_6"] = rj.MassProperties(0.2, (0, 0, 0.042), np.full(3, 7.2e-5))
    columns = (*smooth_motion(ts, angles), ident.lowpass(ts, torques, 50.0))
    data = ident.joint_data(
        arm, *(x[EDGE:-EDGE] for x in columns), coupled=COUPLED,
        terms=("rotor", "viscous", "coulomb", "offset"),
    )  # fmt: skip
    return ident.consistent_regression(ident.regress(data), prior=nominal)


def driven_arm(regression):
    """Return the arm with friction and rotors of a regression, driven by named torques."""
    terms = dict(regression.terms)
    for joint in COUPLED["motor 6"]:
        terms[f"{joint}.rotor"] += terms["motor 6.rotor"]
    terms["joint_6.coulomb"] += terms["motor 6.coulomb"]
    bare = regression.system
    joints = [
        rj.Revolute(
            j.parent, j.child, j.point, j.axis, name=j.name, armature=terms[f"{j.name}.rotor"],
            friction=rj.Friction(
                terms[f"{j.name}.coulomb"], terms[f"{j.name}.viscous"], velocity=SMOOTH
            ),
        )
        for j in bare.joints
    ]  # fmt: skip
    motors = [rj.Motor(j, rj.Signal([-1, 9], [0.0, 0.0], name=f"torque {j}")) for j in JOINTS]
    offsets = [rj.Motor(j, -terms[f"{j}.offset"]) for j in JOINTS]
    shared = rj.FixedTendon(COUPLED["motor 6"], 0.0, damping=terms["motor 6.viscous"])
    return rj.System(bare.bodies, joints, bare.forces, motors, offsets, shared)


def fit(arm, rows):
    """Fit friction and rotors to the rows of the recording, with their start."""
    ts, angles, torques = recording()
    smooth, rates, _ = smooth_motion(ts, angles)
    kept = np.arange(len(ts))[rows][::EVERY]
    first = kept[0]
    values = {
        rj.JointCoordinate(j, period=2 * np.pi): angles[kept, k] for k, j in enumerate(JOINTS)
    }
    inputs = {f"torque {j}": (ts - ts[first], torques[:, k]) for k, j in enumerate(JOINTS)}
    data = rj.Measurements(ts[kept] - ts[first], values, inputs=inputs)
    start = rj.joint_states(arm, smooth[[first]], rates[[first]])
    fields = "friction.coulomb", "friction.viscous", "armature"
    parameters = [Parameter(f"{j}.{field}") for field in fields for j in JOINTS]
    return rj.identify(
        rj.Relative(arm), data, [*parameters, ident.start_state(arm)],
        state0=jax.tree.map(lambda leaf: leaf[0], start), method="prediction-error",
        process_noise=dict.fromkeys(JOINTS), dt=2e-3, throw=False,
    )  # fmt: skip


def main():
    """Print the fits of both halves, and how much they differ."""
    regression = regress()
    print({name: round(value, 4) for name, value in regression.terms.items()})
    arm, found = driven_arm(regression), []
    middle = len(recording()[0]) // 2
    for rows in (slice(EDGE, middle), slice(middle, -EDGE)):
        half = fit(arm, rows)
        labels = [label for label in half.labels if "change" not in label]
        found.append(np.array([(half.estimates[x], half.std[x]) for x in labels]))
        print(f"{half.verdict}\n  noise of the torques, N m/sqrt(Hz): {half.process_noise}")
        for label, (value, std) in zip(labels, found[-1], strict=True):
            print(f"  {label} {value:.4f} +- {std:.4f}", flush=True)
    (first, s1), (second, s2) = (x.T for x in found)
    z = (first - second) / np.hypot(s1, s2)
    print(f"halves differ by {np.sqrt(np.mean(z**2)):.2f} standard deviations (rms)")
    print(dict(zip(labels, z.round(2), strict=True)))


if __name__ == "__main__":
    main()
