"""Suspects of a fit: parameters, zero in a model, that it or its sensors may lack."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...forces import Gravity, Motor
from ...formulations import AbstractFormulation
from ...formulations.leaves import LeafMark, LeafPath, mark_leaves
from ...joints.base import AbstractJoint
from ...joints.replacing import replace_fields
from ...mechanics import System
from ...signals.switches import evaluate_law
from ..experiment.parameters import Experiment, Parameter
from ..experiment.start_change import StartSelector
from ..starts.parameter import start_state

# Rate, rad/s or m/s, below which the trial friction changes its sign smoothly.
_SLIDING = 0.05
# Largest number of bodies whose masses and points are suspects.
_FEW = 4
# Number of times at which a sensor may jump.
_JUMPS = 200


class Suspect(NamedTuple):
    """Something that a model may lack, as one or a few numbers.

    **Attributes:** `text`, a sentence with a place `{}` for the values; `labels` of its components
    in the extended problem, or the name of their parameter; `unit`; `is_positive`, whether its sum
    is not negative; `starts`, values from which a refit starts besides zero, such as -2 for a sign;
    `group`, of suspects of which only the most promising one is refitted.
    """

    text: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    is_positive: bool = False
    starts: tuple[float, ...] = ()
    group: str = ""


# Terms of the trial law of a joint, in the order of its coefficients, those of its motors last.
_OF_JOINT = (
    Suspect("a constant load of {} acts on the joint NAME", unit="EFFORT"),
    Suspect("the joint NAME has a spring of {}", unit="EFFORT/LENGTH"),
    Suspect("the joint NAME has viscous friction of {}", unit="EFFORT s/LENGTH"),
    Suspect("the joint NAME has Coulomb friction of {}", unit="EFFORT", is_positive=True),
    Suspect("the joint NAME has quadratic drag of {}", (), "EFFORT s^2/LENGTH^2", True),
    Suspect("the motor on NAME has another gain or sign (relative change {})", starts=(-2.0,)),
    Suspect("the motor on NAME saturates: large torques are smaller (cubic term {})"),
    Suspect("the motor on NAME acts late by {}", unit="s"),
)
_NUM_OF_MOTORS = 3
# Terms of the trial moment of a body.
_OF_BODY = (
    Suspect("a constant moment of {} acts on the body", unit="N m"),
    Suspect("the body has viscous drag (coefficients {})", unit="N m s"),
    Suspect("the moment on the body has another gain or sign (relative changes {})"),
    Suspect("the body has quadratic drag (coefficients {})", (), "N m s^2", True),
)


class TrialEffort(eqx.Module):
    """Effort on a joint that a model may lack, a sum of terms with coefficients.

    **Attributes:** `coefficients`, of the terms in `_OF_JOINT`; `motors` on the joint.
    """

    coefficients: Float[Array, " K"]
    motors: tuple[Motor, ...]

    def __call__(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        def effort(t):
            zero = jnp.zeros_like(rate + 0.0 * t)
            return sum((m.generalised_force(t, coordinate, rate) for m in self.motors), zero)

        torque, slope = jax.jvp(effort, (t,), (jnp.ones_like(t),))
        friction = -jnp.tanh(rate / _SLIDING)
        terms = [
            jnp.ones_like(torque), -coordinate, -rate, friction, -rate * jnp.abs(rate), torque,
            -(torque**3), -slope,
        ]  # fmt: skip
        return self.coefficients @ jnp.stack(terms)


class TrialMoment(eqx.Module):
    """A moment law with terms that the model may lack; other attributes are those of the law.

    **Attributes:** `coefficients` (4, 3), of the terms in `_OF_BODY`; `law`, or `None`.
    """

    coefficients: Float[Array, "4 3"]
    law: Any

    def __call__(self, t: Scalar, R: Float[Array, "3 3"], omega: Float[Array, "3"]) -> Array:
        c = self.coefficients
        own = jnp.zeros_like(omega) if self.law is None else evaluate_law(self.law, t, R, omega)
        return own + c[0] - c[1] * omega + c[2] * own - c[3] * omega * jnp.abs(omega)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "law"), name)


def extend(
    model: AbstractFormulation, experiment: Experiment, parameters: Sequence[Parameter]
) -> tuple[AbstractFormulation, list[Parameter], list[Suspect]]:
    """Return the model with everything that it may lack at zero, as parameters and suspects.

    **Arguments:** `experiment` and `parameters` of the fit: its fitted leaves are no suspects.
    """
    dtype = experiment.state0.position.dtype
    if isinstance(model.system, System):
        extended, found = _extend_system(model, dtype)
    else:
        moment = TrialMoment(jnp.zeros((4, 3), dtype), model.system.moment)
        extended = replace_fields(model, system=replace_fields(model.system, moment=moment))
        where, name = LeafPath(("model", "system", "moment", "coefficients")), "trial moment"
        suspects = [
            suspect._replace(labels=tuple(f"{name}[{k},{i}]" for i in range(3)))
            for k, suspect in enumerate(_OF_BODY)
        ]
        found = [(Parameter(name, where), suspects)]
        found.append(_suspect("the inertia is another (changes {})", "kg m^2", "system", "inertia"))
    joints = getattr(model.system, "joints", ())
    is_driven = any(j.num_undriven_rates != j.num_rates for j in joints)
    if not is_driven and not any(isinstance(p.where, StartSelector) for p in parameters):
        start = start_state(model, experiment.state0, name="trial start")
        text = "the motion starts elsewhere (changes of the coordinates and rates: {})"
        found.append((start, [Suspect(text, ("trial start",))]))
    marked = mark_leaves(eqx.tree_at(lambda e: e.model, experiment, extended))[1]
    taken = {_mark(w, marked) for p in parameters for w in (p.where, *p.tied)}
    kept = [pair for pair in found if _is_free(pair[0].where, marked, taken)]
    return extended, [p for p, _ in kept], [s for _, own in kept for s in own]


def _is_free(where: Any, marked: Any, taken: set[Any]) -> bool:
    """Return whether a parameter picks a leaf that is stored as an array and is not fitted."""
    mark = _mark(where, marked)
    return isinstance(where, StartSelector) or (mark is not None and mark not in taken)


def _mark(where: Callable[[Any], Any], marked: Any) -> Any:
    try:
        mark = where(marked)
        return mark if isinstance(mark, LeafMark) else None
    except (AttributeError, TypeError, IndexError, KeyError):
        return None


def _suspect(
    text: str, unit: str, *path: str | int, starts: tuple[float, ...] = ()
) -> tuple[Parameter, list[Suspect]]:
    """Return the parameter of a leaf that changes as a whole, and its suspect.

    **Arguments:** `path` of the leaf inside the model.
    """
    where = LeafPath(("model", *path))
    name = f"trial {where}"
    return Parameter(name, where, unit=unit), [Suspect(text, (name,), unit, starts=starts)]


def _extend_system(model: AbstractFormulation, dtype: Any) -> tuple[AbstractFormulation, list[Any]]:
    system = model.system
    assert isinstance(system, System)
    found, forces = [], list(system.forces)
    is_small = len(system.bodies) <= _FEW
    # In closed loops the start must be found again for every change of a point: minutes to compile.
    has_points = is_small and not system.has_loops
    for j, joint in enumerate(system.joints):
        if joint.num_undriven_rates != 1 or joint.num_rates != 1 or joint.name in system.closing:
            continue
        motors = tuple(f for f in system.forces if type(f) is Motor and f.joint == joint.name)
        terms = _OF_JOINT if motors else _OF_JOINT[:-_NUM_OF_MOTORS]
        name, path = f"trial effort of {joint.name}", ("system", "joints", j)
        where = LeafPath(("model", "system", "forces", len(forces), "torque", "coefficients"))
        suspects = [_name_term(s, joint, f"{name}[{k}]") for k, s in enumerate(terms)]
        found.append((Parameter(name, where), suspects))
        forces.append(Motor(joint.name, TrialEffort(jnp.zeros(len(_OF_JOINT), dtype), motors)))
        if has_points:
            text = f"the joint {joint.name} is at another point (changes {{}})"
            found.append(_suspect(text, "m", *path, "point"))
        text = f"the rotor of {joint.name} has another inertia (change {{}})"
        found.append(_suspect(text, "kg m^2", *path, "armature"))
    for k, force in enumerate(system.forces):
        if isinstance(force, Gravity):
            text, path = "gravity is another (changes {})", ("system", "forces", k, "vector")
            found.append(_suspect(text, "m/s^2", *path, starts=(-1.0, -2.0)))
    for k, body in enumerate(system.bodies if is_small else ()):
        path = "system", "bodies", k
        found.append(
            _suspect(f"the mass of {body.name} is another (change {{}})", "kg", *path, "mass")
        )
        text = f"the inertia of {body.name} is another (changes {{}})"
        found.append(_suspect(text, "kg m^2", *path, "inertia"))
        if has_points:
            text = f"the centre of mass of {body.name} is elsewhere (changes {{}})"
            found.append(_suspect(text, "m", *path, "position"))
    return replace_fields(model, system=replace_fields(system, forces=tuple(forces))), found


def _name_term(suspect: Suspect, joint: AbstractJoint, label: str) -> Suspect:
    """Return a term of the trial law with the name and the units of its joint."""
    length, effort = ("m", "N") if joint.num_translations else ("rad", "N m")
    text, is_positive = suspect.text.replace("NAME", joint.name), suspect.is_positive
    if "Coulomb" in text and getattr(joint, "friction", None) is not None:
        text, is_positive = text.replace("has Coulomb", "has another Coulomb"), False
    unit = suspect.unit.replace("EFFORT", effort).replace("LENGTH", length)
    return suspect._replace(text=text, labels=(label,), unit=unit, is_positive=is_positive)


Columns = Callable[[Float[np.ndarray, "B T C"]], Float[np.ndarray, "B T C m"]]


def sensor_suspects(
    name: str, unit: str, channels: Sequence[str], ts: Float[np.ndarray, "B T"]
) -> list[tuple[Suspect, Columns]]:
    """Return suspects of one sensor, the first a delay, with the changes of its readings by them.

    **Returns:** pairs of a suspect and a function of the predicted readings.
    """
    eye, t = np.eye(len(channels)), (ts - ts[:, :1])[..., None, None]
    # Padding increases too, as `numpy.gradient` needs.
    spread = t[..., 0, 0] + 1e-9 * np.arange(ts.shape[1])

    def slopes(x):
        return np.stack([np.gradient(*pair, axis=0) for pair in zip(x, spread, strict=True)])

    def late(x):
        return -slopes(x)[..., None]

    def fast(x):
        return 1e-6 * t * late(x)

    def play(x):
        rates = slopes(x)
        return -np.tanh(rates / (0.05 * np.sqrt(np.mean(rates**2)) + 1e-300))[..., None]

    def turn(x):
        return np.cross(x[..., None, :], eye).swapaxes(-1, -2)

    found: list[tuple[Suspect, Columns]] = [
        (Suspect(f"the {name} is late by {{}}", unit="s"), late),
        (Suspect(f"the clock of the {name} is fast by {{}}", unit="ppm"), fast),
        (
            Suspect(f"the clock of the {name} is late and fast by {{}} (s, ppm)"),
            lambda x: np.concatenate([late(x), fast(x)], axis=-1),
        ),
        (Suspect(f"the {name} drifts by {{}}", unit=f"{unit}/s"), lambda x: t * eye),
        (Suspect(f"the {name} has play, half of it {{}}", (), unit, True), play),
    ]
    for k, channel in enumerate(channels):
        part = name if len(channels) == 1 else f"channel {channel} of the {name}"
        scale = Suspect(f"the {part} has another scale (relative change {{}})")
        found.append(
            (Suspect(f"the {part} has a bias of {{}}", unit=unit), _column(k, np.ones_like))
        )
        found.append((scale, _column(k, lambda x: x)))
        for start in np.quantile(ts[0], np.linspace(0.02, 0.98, _JUMPS)):
            text = f"the {part} jumps by {{}} at t = {start:.4g} s"
            jump = _column(k, lambda x, after=(ts >= start)[..., None]: after + 0 * x)
            found.append((Suspect(text, unit=unit, group=f"jump of {part}"), jump))
    if len(channels) == 3:
        found.append((Suspect(f"the {name} is turned against its axes by {{}}", unit="rad"), turn))
    return found


def _column(k: int, of: Callable[[np.ndarray], np.ndarray]) -> Columns:
    """Return the function whose only column is channel `k` of another one."""
    return lambda x: (of(x) * (np.arange(x.shape[-1]) == k))[..., None]
