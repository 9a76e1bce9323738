"""The driven double pendulum: regression of the torques, fits of the motion, and predictions.

`python examples/published_cases/double_pendulum.py` prints the values of
docs/published_cases/double_pendulum.md.

The motion depends on four numbers of the arms only: the first moments P1 = m1 r1 + m2 l1 and
P2 = m2 r2, and the moments of inertia J1 = I1 + m2 l1^2 and J2 = I2 about the joints, with the
rotors. Bodies of 1 kg each carry these numbers exactly.
"""

import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import identification as ident

jax.config.update("jax_enable_x64", True)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "dfki_pendulums"
JOINTS = "shoulder", "elbow"
LENGTH, GEAR = 0.2, 6.0
# kg m and kg m^2, then viscous friction, N m s, and Coulomb friction, N m.
NAMES = "P1", "P2", "J1", "J2", "b1", "b2", "cf1", "cf2"


class Friction(eqx.Module):
    """Friction of the published models: b w + cf atan(100 w)."""

    viscous: jax.Array
    coulomb: jax.Array

    def __call__(self, t, angle, rate):
        """Return the effort on the joint, N m."""
        return -self.viscous * rate - self.coulomb * jnp.arctan(100 * rate)


def pendulum(values=(0.3, 0.1, 0.1, 0.03, 0, 0, 0, 0), options=({}, {})):
    """Return the pendulum with the values of `NAMES`; friction as `Friction`.

    **Arguments:** `options` of the joints, by joint.
    """
    P1, P2, J1, J2, *friction = values
    c1, c2 = P1 - LENGTH, P2
    moments = J1 - LENGTH**2 - c1**2, J2 - c2**2
    axis = (0, -1, 0)
    bodies = [
        rj.Body("upper", 1.0, (moments[0],) * 3, (0, 0, -c1)),
        rj.Body("fore", 1.0, (moments[1],) * 3, (0, 0, -LENGTH - c2)),
    ]
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), axis, name="shoulder", **options[0]),
        rj.Revolute("upper", "fore", (0, 0, -LENGTH), axis, name="elbow", **options[1]),
    ]
    forces = [rj.Gravity((0, 0, -9.81))]
    for k, name in enumerate(JOINTS):
        law = Friction(jnp.array(float(friction[k])), jnp.array(float(friction[2 + k])))
        forces += [rj.Motor(name, law), rj.Motor(name, rj.Input(f"torque {name}"))]
    return rj.System(bodies, joints, forces)


def published_values(name):
    """Return the values of `NAMES` of a published model; its rotors are part of the moments."""
    v = json.loads((FOLDER / "published.json").read_text("utf-8"))[name]
    rotor = GEAR**2 * v["Ir"]
    first = v["m1"] * v["r1"] + v["m2"] * LENGTH, v["m2"] * v["r2"]
    second = v["I1"] + v["m2"] * LENGTH**2 + rotor, v["I2"] + rotor
    return np.array([*first, *second, v["b1"], v["b2"], v["cf1"], v["cf2"]])


def recording(name):
    """Return times, joint angles (T, 2) and torques (T, 2) at uniform times."""
    raw = {key: x.astype(float) for key, x in np.load(FOLDER / f"double_{name}.npz").items()}
    ts = np.arange(0.0, raw["time"][-1], 0.002)
    q, tau = (
        np.column_stack([np.interp(ts, raw["time"], raw[f"{key}{k}"]) for k in (1, 2)])
        for key in ("pos_meas", "tau_meas")
    )
    return ts, q, tau


def joint_data(system, name, cutoff):
    """Return the regression data of a recording, filtered at `cutoff`, Hz."""
    ts, q, tau = recording(name)
    q, tau = ident.lowpass(ts, q, cutoff), ident.lowpass(ts, tau, cutoff)
    v, a = (ident.differentiate(ts, q, window=0.5 / cutoff, derivative=k) for k in (1, 2))
    # The ends of the slowest filter are inexact.
    rows = slice(200, -200)
    columns = (x[rows] for x in (q, v, a, tau))
    return ident.joint_data(system, *columns, terms=("viscous", "coulomb"))


def link_frames():
    """Return the pendulum without friction and motors, with body frames at the joints."""
    base = pendulum()
    bodies = [
        rj.Body(b.name, 1.0, (0.1,) * 3, z)
        for b, z in zip(base.bodies, ((0, 0, 0), (0, 0, -LENGTH)), strict=True)
    ]
    return rj.System(bodies, base.joints, rj.Gravity((0, 0, -9.81)))


def estimates(linear):
    """Return the values of `NAMES`, and their standard deviations, of a regression."""
    starts = "upper.mz", "fore.mz", "upper.Iyy", "fore.Iyy"
    starts += tuple(f"{joint}.{term}" for term in ("viscous", "coulomb") for joint in JOINTS)
    rows = [[e.startswith(x) for e in linear.base.expressions].index(True) for x in starts]
    # Arms hang along -z; atan reaches pi / 2.
    factor = np.array([-1, -1, 1, 1, 1, 1, 2 / np.pi, 2 / np.pi])
    return factor * linear.values[rows], np.abs(factor) * linear.std[rows]


@eqx.filter_jit
def predicted_angles(model, states, ts, torques):
    """Return joint angles (N, T, 2) of N pieces, simulated from their start states."""
    sensors = [rj.JointCoordinate(name) for name in JOINTS]

    def read(t, y):
        return jnp.stack([s.predict(model, t, y).reshape(()) for s in sensors])

    def swing(state, torque):
        inputs = {f"torque {n}": rj.Signal(ts, torque[:, k]) for k, n in enumerate(JOINTS)}
        sol = rj.simulate(model, state, ts[-1], ts=ts, inputs=inputs, rtol=1e-6, atol=1e-6)
        return jax.vmap(read)(sol.ts, sol.ys)

    return jax.vmap(swing)(states, torques)


def motion_errors(models, length):
    """Return the rms errors of the angles, rad, in pieces of the held-out recording, by model."""
    ts, q, tau = recording("C1_154548")
    smooth = ident.lowpass(ts, q, 20.0)
    rates = ident.differentiate(ts, smooth, window=0.025)
    count = round(length / ts[1])
    rows = np.arange(0, len(ts) - count - 1, count)
    pieces = rows[:, None] + np.arange(count + 1)
    errors = {"constant": q[pieces] - q[rows][:, None]}
    for name, values in models.items():
        system = pendulum(values)
        states = rj.joint_states(system, smooth[rows], rates[rows])
        angles = predicted_angles(
            rj.NullSpace(system), states, ts[: count + 1], jnp.asarray(tau[pieces])
        )
        errors[name] = np.asarray(angles) - q[pieces]
    return {name: np.sqrt(np.mean(error**2, axis=(0, 1))) for name, error in errors.items()}


def pendulum_with_friction(values, rotor=0.003, delays=False):
    """Return the pendulum with Stribeck friction and the elbow's rotor.

    Friction falls from its level at rest to that in motion over a rate of 0.5 rad/s.
    **Arguments:** `delays`, whether the torques have delays, which start at zero.
    """
    *_, b1, b2, cf1, cf2 = values
    laws = [
        rj.Friction(np.pi / 2 * cf, b, velocity=0.05, stribeck=(1.3 * np.pi / 2 * cf, 0.5))
        for b, cf in ((b1, cf1), (b2, cf2))
    ]
    base = pendulum(values, ({"friction": laws[0]}, {"friction": laws[1], "armature": rotor}))
    late = {"delay": 0.0} if delays else {}
    torques = [rj.Signal([-1.0, 2.0], [0.0, 0.0], name=f"torque {j}", **late) for j in JOINTS]
    motors = [rj.Motor(*pair) for pair in zip(JOINTS, torques, strict=True)]
    return rj.System(base.bodies, base.joints, rj.Gravity((0, 0, -9.81)), motors)


def pieces(name, system, length=0.5, margin=50):
    """Return runs of this length, s, with torques beyond their ends, and measured start states."""
    ts, q, tau = recording(name)
    smooth = ident.lowpass(ts, q, 20.0)
    rates = ident.differentiate(ts, smooth, window=0.025)
    count, runs, states = round(length / ts[1]), [], []
    for row in range(count, len(ts) - count - margin, count):
        kept = slice(row, row + count + 1)
        wide = slice(row - margin, row + count + 1 + margin)
        values = {rj.JointCoordinate(j): q[kept, k] for k, j in enumerate(JOINTS)}
        inputs = {f"torque {j}": (ts[wide] - ts[row], tau[wide, k]) for k, j in enumerate(JOINTS)}
        label = f"{ts[row]:.1f}"
        runs.append(rj.Measurements(ts[kept] - ts[row], values, inputs=inputs, name=label))
        start = rj.joint_states(system, smooth[[row]], rates[[row]])
        states.append(jax.tree.map(lambda leaf: leaf[0], start))
    return runs, states


def fit_motion(runs, states, system, delays=False):
    """Fit the predictions one sample ahead of all runs; noise of torques and angles is estimated.

    Starts are fitted. **Arguments:** `delays`, whether those of both torques are fitted too.
    """
    z = ident.Unconstrained(which=(2,))
    parameters = [rj.Parameter(f"{body}.position", transform=z) for body in ("upper", "fore")]
    moment = ident.Positive(which=(1,))
    parameters += [rj.Parameter(f"{body}.inertia", transform=moment) for body in ("upper", "fore")]
    laws = "coulomb", "viscous", "stribeck.static"
    fields = [f"{j}.friction.{field}" for j in JOINTS for field in laws]
    fields += [f"Motor {j}.torque.delay" for j in JOINTS] * delays
    parameters += [rj.Parameter(field) for field in [*fields, "elbow.armature"]]
    return rj.identify(
        rj.Relative(system), runs, [*parameters, ident.start_state(system)], state0=states,
        method="prediction-error", process_noise=dict.fromkeys(JOINTS), throw=False,
    )  # fmt: skip


def print_fits_of_motion(delays=False):
    """Print the fits of both halves of the recording, and how much they differ."""
    system = pendulum_with_friction(published_values("model_1.0"), delays=delays)
    runs, states = pieces("C1_154220", system)
    middle, found = len(runs) // 2, []
    for part in (slice(middle), slice(middle, None)):
        fit = fit_motion(runs[part], states[part], system, delays)
        labels = [label for label in fit.labels if "change" not in label]
        found.append(np.array([(fit.estimates[x], fit.std[x]) for x in labels]))
        print(f"{fit.verdict}\n  noise of the torques, N m/sqrt(Hz): {fit.process_noise}")
        for label, (value, std) in zip(labels, found[-1], strict=True):
            print(f"  {label} {value:.5f} +- {std:.5f}")
    (first, s1), (second, s2) = (x.T for x in found)
    z = (first - second) / np.hypot(s1, s2)
    print(f"halves differ by {np.sqrt(np.mean(z**2)):.2f} standard deviations (rms)")


def main():
    """Print estimates by cutoff, fits of the motion, and errors of predicted motions."""
    print_fits_of_motion()
    models = {}
    for cutoff in (5.0, 10.0, 20.0):
        linear = ident.regress(joint_data(link_frames(), "C1_154220", cutoff))
        share = linear.rms / np.sqrt(np.mean(linear.data.torques**2, axis=0))
        print(f"{cutoff:.0f} Hz, residual {np.round(100 * share, 1)} %: {linear.verdict}")
        values, std = estimates(linear)
        models[f"{cutoff:.0f} Hz"] = values
        print(
            "  "
            + ", ".join(
                f"{n} {v:.4f} +- {s:.4f}" for n, v, s in zip(NAMES, values, std, strict=True)
            )
        )
    for name in ("model_1.0", "model_3.0"):
        models[name] = published_values(name)
        print(name, dict(zip(NAMES, models[name].round(4), strict=True)))
    for name, error in motion_errors(models, 0.5).items():
        print(f"{name}: error of the angles {np.round(error, 3)} rad", flush=True)


if __name__ == "__main__":
    main()
