"""Checks of one system: kernel against XLA, formulations against each other, derivatives.

Each returns a list of `Comparison`: what was found, what was expected, and the difference that
rounding, the step size or the finite difference explain, none of which is a chosen tolerance.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

import rigidjax as rj
from rigidjax import native
from rigidjax.mechanics import has_joints

EPS = float(np.finfo(np.float64).eps)
# A relative change of all numbers of a system and a state, whose effect stands for the errors of
# some hundred roundings.
CHANGE = 500 * EPS
DRAWS = 4
# Draws underestimate the largest effect, and two estimates of an error each other.
FACTOR = 10.0
STEPS = 12

FORMULATIONS: dict[str, Callable[[rj.System], Any]] = {
    "NullSpace": rj.NullSpace,
    "Relative": rj.Relative,
    "Absolute": rj.Absolute,
    "NullSpace, space rates": lambda system: rj.NullSpace(system, rates="space"),
    "NullSpace, rotation vectors": lambda system: rj.NullSpace(system, rj.RotationVector()),
    "NullSpace, Euler angles": lambda system: rj.NullSpace(system, rj.EulerAngles("ZYX")),
    "Absolute, directors": lambda system: rj.Absolute(system, rj.Directors()),
    "EulerParameters": rj.EulerParameters,
    "EulerParameters, no multiplier": lambda system: rj.EulerParameters(system, "no-multiplier"),
    "EulerParameters, gyroscopic": (
        lambda system: rj.EulerParameters(system, "simplified-gyroscopic")
    ),
    "Hamiltonian": rj.Hamiltonian,
    "Hamiltonian, no radial inertia": lambda system: rj.Hamiltonian(system, "zero"),
}
PLAIN = ("NullSpace", "Relative", "Absolute", "EulerParameters", "Hamiltonian")
# Implicit ones, with a solver.
ALGEBRAIC: dict[str, tuple[Callable[[rj.System], Any], Any]] = {
    "Absolute, index 1": (
        lambda system: rj.Absolute(system, index=1, baumgarte=(2.0, 1.0)), rj.solvers.Radau5()
    ),
    "Absolute, index 2": (
        lambda system: rj.Absolute(system, index=2, stabilized=True), rj.solvers.Radau5()
    ),
    "Absolute, index 3": (lambda system: rj.Absolute(system, index=3), rj.solvers.Radau5()),
    "Absolute, index 2, BDF": (
        lambda system: rj.Absolute(system, index=2, stabilized=True), rj.solvers.BDF()
    ),
    "EulerParameters, index 2": (
        lambda system: rj.EulerParameters(system, "virtual-work", index=2), rj.solvers.Radau5()
    ),
}  # fmt: skip
# Formulations of single bodies.
WITHOUT_JOINTS = ("space rates", "EulerParameters", "Hamiltonian")


def supported_formulations(system: Any, names: Iterable[str]) -> list[str]:
    """Return the formulations that can hold the system: `Absolute` has no rotors in joints, and
    some are those of free bodies."""
    armature = any(np.any(np.asarray(getattr(joint, "armature", 0.0))) for joint in system.joints)
    left_out = ["Absolute"] if armature else []
    left_out += WITHOUT_JOINTS if has_joints(system) else ()
    return [name for name in names if not any(part in name for part in left_out)]


class Comparison(NamedTuple):
    """Arrays that are to agree.

    **Attributes:** `name`; `found`, `expected`, of one shape; `allowed`, the difference that is
    explained, an array or a number.
    """

    name: str
    found: np.ndarray
    expected: np.ndarray
    allowed: Any

    def failure(self) -> str:
        """Return what is wrong, or ""."""
        found, expected = np.asarray(self.found), np.asarray(self.expected)
        allowed = np.broadcast_to(np.asarray(self.allowed, float), expected.shape)
        with np.errstate(all="ignore"):
            distance = np.abs(found - expected)
            bad = ~(distance <= allowed)
        if not bad.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return (
            f"{self.name}{list(at)}: {found[at]!r}, expected {expected[at]!r}; explained: "
            f"{allowed[at]:.3g}"
        )


def perturb(tree: Any, size: float, seed: int) -> Any:
    """Change all numbers by a relative random amount; unit quaternions are normalised later."""
    rng = np.random.default_rng(seed)

    def leaf(x):
        if not eqx.is_inexact_array(x):
            return x
        return x * (1.0 + size * rng.uniform(-1.0, 1.0, x.shape))

    return jax.tree.map(leaf, tree)


def stack_trees(trees: list) -> Any:
    """Return trees of the same structure as one with a leading axis."""
    arrays = [eqx.partition(tree, eqx.is_inexact_array)[0] for tree in trees]
    rest = eqx.partition(trees[0], eqx.is_inexact_array)[1]
    return eqx.combine(jax.tree.map(lambda *x: jnp.stack(x), *arrays), rest)


def members(system: Any, state: Any, size: float = CHANGE) -> tuple[Any, Any]:
    """Return the system and the state with some that are changed a little, in one batch."""
    systems = [system, *(perturb(system, size, 2 * k) for k in range(DRAWS))]
    states = [state, *(perturb(state, size, 2 * k + 1).normalized() for k in range(DRAWS))]
    return stack_trees(systems), stack_trees(states)


def in_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of arrays, compiled, of a batch of systems and states."""

    def batch(systems, states, *args):
        arrays, rest = eqx.partition((systems, states), eqx.is_inexact_array)
        one = lambda arrays: function(*eqx.combine(arrays, rest), *args)  # noqa: E731
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(arrays))

    return batch


def spread(values: np.ndarray) -> np.ndarray:
    """Return the largest distance from the first, over a batch and all but the last axis."""
    distance = np.max(np.abs(values - values[0]), axis=0)
    # Components of a vector share one size: a frame could be turned.
    return np.broadcast_to(np.max(distance, axis=-1, keepdims=True), distance.shape)


def allowance(values: np.ndarray) -> np.ndarray:
    return FACTOR * spread(values) + 64 * EPS * np.max(np.abs(values[0]), axis=-1, keepdims=True)


def _accelerations(formulation):
    def function(system, state):
        model = formulation(system)
        y = model.pack(state)
        rates = model.accelerations(jnp.zeros(()), y)
        return rates.linear, rates.angular

    return function


def accelerations(
    system: Any, state: Any, rng: np.random.Generator, units: Any
) -> list[Comparison]:
    """All explicit formulations by XLA, and one as a kernel."""
    first, *others = rng.permutation(supported_formulations(system, PLAIN))
    systems, states = members(system, state)
    results = {
        name: in_batch(_accelerations(FORMULATIONS[name]))(systems, states)
        for name in (first, *others)
    }
    kernel = native.jit(lambda s: _accelerations(FORMULATIONS[first])(system, s))
    results[f"{first}, kernel"] = tuple(np.asarray(x)[None] for x in jax.jit(kernel)(state))
    out = []
    size = {0: units.of(1, 0, -2), 1: units.of(0, 0, -2)}
    for k in range(2):
        expected = results[first][k]
        allowed = sum(allowance(results[name][k]) for name in (first, *others))
        allowed = allowed + 64 * EPS * size[k]
        out += [
            Comparison(f"accelerations {name}, {first}", found[k][0], expected[0], allowed)
            for name, found in results.items()
            if name != first
        ]
    return out


def _saved_arrays(states: Any) -> tuple:
    return states.position, states.orientation, states.velocity, states.angular_velocity


def _run(formulation, t1, ts, **options):
    def function(system, state):
        solution = rj.simulate(formulation(system), state, t1, ts=ts, throw=False, **options)
        return _saved_arrays(solution.states), solution.result == rj.RESULTS.successful, solution.ts

    return function


def _scales(units: Any) -> tuple[float, ...]:
    return units.of(1), 1.0, units.of(1, 0, -1), units.of(0, 0, -1)


NAMES = ("position", "orientation", "velocity", "angular velocity")


def backends(system: Any, state: Any, rng: np.random.Generator, units: Any) -> list[Comparison]:
    """Fixed steps of an explicit formulation: kernel and XLA, in a batch; saved times."""
    name = str(rng.choice(supported_formulations(system, FORMULATIONS)))
    t1 = 0.2 * units.time
    ts = np.sort(rng.uniform(0.1, 1.0, 3)) * t1
    solver = [diffrax.Dopri5(), diffrax.Dopri8(), diffrax.Tsit5()][rng.integers(3)]
    systems, states = members(system, state)
    found = {}
    for backend in ("native", "xla"):
        options = dict(solver=solver, dt=t1 / STEPS, backend=backend)
        run = _run(FORMULATIONS[name], t1, jnp.asarray(ts), **options)
        found[backend] = in_batch(run)(systems, states)
    ok = [found[b][1] for b in found]
    out = [Comparison(f"success {name}", ok[0].astype(float), ok[1].astype(float), 0.0)]
    if not np.all(ok):
        return out
    for k, scale in enumerate(_scales(units)):
        values = found["xla"][0][k]
        allowed = allowance(values) + 64 * EPS * scale
        out += [
            Comparison(f"{NAMES[k]} of {name}, kernel and XLA", a, b, allowed)
            for a, b in zip(found["native"][0][k], values, strict=True)
        ]
    return out


def formulations(system: Any, state: Any, rng: np.random.Generator, units: Any) -> list[Comparison]:
    """Adaptive runs of two formulations: they differ by no more than their errors, which runs at
    other tolerances show."""
    chosen: list[tuple[str, Any, Any]] = [("NullSpace", rj.NullSpace, diffrax.Dopri8())]
    implicit = supported_formulations(system, ALGEBRAIC)
    algebraic = bool(rng.uniform() < 0.4 and implicit)
    if algebraic:
        name = str(rng.choice(implicit))
        chosen.append((name, *ALGEBRAIC[name]))
    else:
        name = str(rng.choice(supported_formulations(system, FORMULATIONS)[1:]))
        chosen.append((name, FORMULATIONS[name], diffrax.Dopri8()))
    t1 = 0.3 * units.time
    ts = jnp.asarray(np.sort(rng.uniform(0.1, 1.0, 3)) * t1)
    out, found = [], {}
    for name, formulation, solver in chosen:
        tolerances = (1e-5, 1e-7) if algebraic else (1e-8, 1e-10)

        def run(tolerance, formulation=formulation, solver=solver):
            # Unknowns are of the size of the units: tolerances without them would mean little.
            options = dict(solver=solver, rtol=tolerance, atol=tolerance * min(_scales(units)))
            return _run(formulation, t1, ts, max_steps=20_000, **options)(system, state)

        results = jax.jit(jax.vmap(run))(jnp.asarray(tolerances))
        found[name] = jax.tree.map(np.asarray, results)
    (a, b) = found.values()
    if not (np.all(a[1]) and np.all(b[1])):
        # Which of both fails at a singular configuration is no fault by itself; it is counted.
        return [Comparison(f"success of {name}", np.zeros(()), np.zeros(()), 0.0)]
    for k, scale in enumerate(_scales(units)):
        x, y = (np.asarray(f[0][k]) for f in (a, b))
        if NAMES[k] == "orientation":
            sign = np.sign(np.sum(x[1] * y[1], axis=-1, keepdims=True))
            y = y * np.where(sign == 0, 1.0, sign)
        error = np.max(np.abs(x[0] - x[1]), axis=(-1, -2), keepdims=True)
        other = np.max(np.abs(y[0] - y[1]), axis=(-1, -2), keepdims=True)
        # Positions and velocities share their errors: each is at least the tolerance.
        least = tolerances[1] * max(scale, float(np.max(np.abs(x[1]))))
        allowed = FACTOR * (error + other) + 100 * least
        out.append(Comparison(f"{NAMES[k]} of {chosen[1][0]} and NullSpace", y[1], x[1], allowed))
    return out


def _scale_system(system: Any, theta: Any, weights: list) -> Any:
    """Return a system whose masses, moments of inertia and forces depend on `theta`."""
    factors = (1.0 + w * theta for w in weights)

    def scale_leaf(x):
        return x * next(factors) if eqx.is_inexact_array(x) else x

    bodies = tuple(
        eqx.tree_at(
            lambda b: (b.mass, b.inertia), body, (scale_leaf(body.mass), scale_leaf(body.inertia))
        )
        for body in system.bodies
    )
    forces = jax.tree.map(scale_leaf, system.forces)
    return eqx.tree_at(lambda s: (s.bodies, s.forces), system, (bodies, forces))


def derivatives(system: Any, state: Any, rng: np.random.Generator, units: Any) -> list[Comparison]:
    """Forward and reverse mode of fixed steps, against differences with an estimate of their error;
    second derivatives in forward mode, too."""
    name = str(rng.choice(supported_formulations(system, PLAIN)))
    backend = str(rng.choice(["native", "xla"]))
    count = 2 * system.num_bodies
    count += len(jax.tree.leaves(eqx.filter(system.forces, eqx.is_inexact_array)))
    weights = list(rng.uniform(-1, 1, count))
    t1 = 0.2 * units.time
    sizes = np.concatenate(
        [np.full(n, s) for n, s in zip((3, 4, 3, 3), _scales(units), strict=True)]
    )

    def end(theta, system=system, state=state):
        model = FORMULATIONS[name](_scale_system(system, theta, weights))
        options = dict(solver=diffrax.Dopri5(), dt=t1 / STEPS, backend=backend)
        states = rj.simulate(model, state, t1, **options).states
        rows = jnp.concatenate([x[-1] for x in _saved_arrays(states)], axis=-1)
        return (rows / sizes).ravel()

    def derivative(theta, *of):
        return jax.jvp(lambda theta: end(theta, *of), (theta,), (1.0,))

    steps = np.array([4e-3, 2e-3, 1e-3])
    thetas = jnp.asarray(np.concatenate([steps, -steps, [0.0]]))
    values = np.asarray(jax.jit(jax.vmap(end))(thetas))
    # The effect of rounding on results and derivatives, from slightly changed systems.
    ends, tangents = in_batch(lambda *of: derivative(0.0, *of))(*members(system, state))
    value_error, tangent_error = (float(np.max(allowance(x))) for x in (ends, tangents))
    forward = tangents[0]

    def extrapolate(differences, error):
        """Remove the error of order two; return the result and what explains a difference."""
        better = [(4 * differences[k + 1] - differences[k]) / 3 for k in range(2)]
        return better[1], FACTOR * np.max(np.abs(better[1] - better[0])) + error

    slopes = [(values[k] - values[3 + k]) / (2 * steps[k]) for k in range(3)]
    difference, explained = extrapolate(slopes, value_error / steps[-1] + tangent_error)
    label = f"of {name} ({backend})"
    out = [Comparison(f"derivative {label}, difference", forward, difference, explained)]
    direction = jnp.asarray(np.cos(np.arange(1.0, forward.size + 1.0)))
    (reverse,) = jax.jit(lambda: jax.vjp(end, 0.0)[1](direction))()
    out.append(
        Comparison(
            f"reverse mode {label}, forward mode",
            np.asarray(reverse),
            np.asarray(direction @ forward),
            forward.size * tangent_error,
        )
    )
    if rng.uniform() < 0.4:
        twice = lambda *of: jax.jvp(lambda theta: derivative(theta, *of)[1], (0.0,), (1.0,))[1]  # noqa: E731
        seconds = in_batch(twice)(*members(system, state))
        curvatures = [(values[k] + values[3 + k] - 2 * values[6]) / steps[k] ** 2 for k in range(3)]
        error = 4 * value_error / steps[-1] ** 2 + float(np.max(allowance(seconds)))
        difference, explained = extrapolate(curvatures, error)
        out.append(
            Comparison(f"second derivative {label}, difference", seconds[0], difference, explained)
        )
    return out


class _Level(eqx.Module):
    """How far a body is above a plane."""

    model: Any
    normal: jax.Array
    level: jax.Array

    def __call__(self, t, y, args, **_):
        return self.model.decode(t, y).position[-1] @ self.normal - self.level


def events(system: Any, state: Any, rng: np.random.Generator, units: Any) -> list[Comparison]:
    """An event of fixed steps: the function is zero there, and kernel and XLA agree."""
    name = str(rng.choice(supported_formulations(system, PLAIN)))
    t1 = 0.2 * units.time
    normal = jnp.asarray(rng.normal(size=3))
    options = dict(solver=diffrax.Dopri5(), dt=t1 / STEPS)
    model = FORMULATIONS[name](system)
    middle = float(rng.uniform(0.2, 0.8)) * t1
    run = rj.simulate(model, state, t1, ts=jnp.asarray([middle]), throw=False, **options)
    if run.result != rj.RESULTS.successful:
        return []
    height = np.asarray(run.states.position[0, -1]) @ normal
    speed = abs(float(np.asarray(run.states.velocity[0, -1]) @ normal))
    start = float(state.position[-1] @ normal)
    if speed < 1e-2 * units.of(1, 0, -1) or abs(height - start) < 1e-3 * units.of(1):
        return []
    accuracy = 1e-10
    root = optx.Newton(accuracy, accuracy * units.of(1))
    found = {}
    for backend in ("native", "xla"):
        event = diffrax.Event(_Level(model, normal, height), root)
        solution = rj.simulate(
            model, state, t1, event=event, backend=backend, throw=False, **options
        )
        if solution.result != rj.RESULTS.event_occurred:
            found[backend] = None
            continue
        found[backend] = float(solution.ts[-1]), np.asarray(solution.states.position[-1, -1])
    out = [
        Comparison(
            f"event of {name} found by both",
            *(np.float64(f is not None) for f in found.values()),
            0,
        )
    ]
    if None in found.values():
        return out
    (t, x), (other, y) = found.values()
    size = units.of(1) + float(np.max(np.abs(y)))
    explained = 100 * accuracy * size
    out.append(Comparison(f"event of {name}: position", x, y, explained))
    out.append(
        Comparison(
            f"event of {name}: level", np.float64(x @ normal), np.float64(height), 10 * explained
        )
    )
    # It is the first crossing: no later than the one that is known.
    late = max(t, other) - middle
    out.append(
        Comparison(
            f"event of {name}: time",
            np.float64(max(late, 0.0)),
            np.float64(0.0),
            1e3 * explained / speed,
        )
    )
    return out


def _with_push(system: Any) -> Any:
    """Return the system with an input that is a force on its last body."""
    push = rj.PointForce(system.bodies[-1].name, force=rj.Input("push", 3))
    return rj.System(system, push)


def hybrid(system: Any, state: Any, rng: np.random.Generator, units: Any) -> list[Comparison]:
    """A body hits a plane and may rest on it, while a sampled controller counts: `NullSpace` and
    `Relative` agree, nothing penetrates, closed contacts push, each sample is taken once."""
    t1, restitution = 0.2 * units.time, float(rng.choice([0.0, 0.5, 1.0]))
    ts = jnp.asarray(np.linspace(0.0, 1.0, 9)) * t1
    options: dict[str, Any] = dict(rtol=1e-9, atol=1e-9 * min(_scales(units)), throw=False)
    free = rj.simulate(rj.NullSpace(system), state, t1, ts=ts, max_steps=20_000, **options)
    path = np.asarray(free.states.position[:, -1])
    if free.result != rj.RESULTS.successful:
        return []
    k = int(rng.integers(3, 7))
    velocity = np.asarray(free.states.velocity[k, -1])
    speed = float(np.linalg.norm(velocity))
    if speed < 1e-2 * units.of(1, 0, -1):
        return []
    normal = -velocity / speed
    if ((path[0] - path[k]) @ normal) < 1e-3 * units.of(1):
        return []
    body = system.bodies[-1].name
    plane = rj.PlaneContact(body, origin=path[k], normal=normal)
    floor = rj.Transition(plane, rj.Restitution(restitution), name="floor")
    counter = rj.SampledController(lambda t, view, n: (jnp.zeros(3), n + 1.0), t1 / 4, 0.0)
    pushed, found = _with_push(system), {}
    for name in ("NullSpace", "Relative"):
        found[name] = rj.simulate(
            FORMULATIONS[name](pushed), state, t1, ts=ts, inputs={"push": counter},
            transitions=[floor], max_transitions=30, max_steps=50_000, **options,
        )  # fmt: skip
    one, other = found.values()
    out, length = [], units.of(1) + float(np.max(np.abs(path)))
    if not (one.result == other.result == rj.RESULTS.successful):
        # Chattering ends by name, at a number of impacts that rounding decides.
        return [Comparison("success of hybrid runs", np.zeros(()), np.zeros(()), 0.0)]
    explained = 1e-6 * length
    for name, run in found.items():
        gaps = (np.asarray(run.states.position[:, -1]) - path[k]) @ normal
        out.append(Comparison(f"penetration in {name}", np.minimum(gaps, 0), 0 * gaps, explained))
        forces = np.asarray(run.contact_forces["floor"])
        size = max(float(np.max(np.abs(forces))), EPS)
        out.append(Comparison(f"pull in {name}", np.minimum(forces, 0), 0 * forces, 1e-6 * size))
        count = np.asarray(run.ys[-1, -1] if run.ys.ndim == 2 else run.ys.values[-1, -1])
        out.append(Comparison(f"samples in {name}", count, np.float64(4.0), 0.0))
    first = [float(run.transitions.times[0]) for run in found.values()]
    if np.all(np.isfinite(first)):
        time = 1e-6 * (t1 + length / speed)
        out.append(Comparison("time of the first impact", *map(np.float64, first), time))
        after = [np.asarray(run.transitions.after.velocity[0]) for run in found.values()]
        out.append(Comparison("velocity after it", *after, 1e-5 * np.max(np.abs(after))))
    return out


CHECKS = {
    "accelerations": accelerations,
    "backends": backends,
    "formulations": formulations,
    "derivatives": derivatives,
    "events": events,
    "hybrid": hybrid,
}
