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
    in the extended problem, or a prefix of them; `unit`; `starts`, values from which a refit starts
    besides zero, such as -2 for a sign.
    """

    text: str
    labels: tuple[str, ...]
    unit: str = ""
    starts: tuple[float, ...] = ()

    def admits(self, values: Float[np.ndarray, " m"]) -> bool:
        """Return whether values are possible: friction, drag and play are not negative."""
        is_positive = any(word in self.text for word in ("has Coulomb", "quadratic", "play"))
        return not is_positive or float(np.sum(values)) >= 0


# Terms of the trial law of a joint, in the order of its coefficients.
_OF_JOINT = (
    ("a constant load of {} acts on the joint {name}", "{effort}", ()),
    ("the joint {name} has a spring of {}", "{effort}/{length}", ()),
    ("the joint {name} has viscous friction of {}", "{effort} s/{length}", ()),
    ("the joint {name} has Coulomb friction of {}", "{effort}", ()),
    ("the joint {name} has quadratic drag of {}", "{effort} s^2/{length}^2", ()),
    ("the motor on {name} has another gain or sign (relative change {})", "", (-2.0,)),
    ("the motor on {name} saturates: large torques are smaller (cubic term {})", "", ()),
    ("the motor on {name} acts late by {}", "s", ()),
)
_OF_BODY = (
    ("a constant moment of {} acts on the body", "N m"),
    ("the body has viscous drag (coefficients {})", "N m s"),
    ("the moment on the body has another gain or sign (relative changes {})", ""),
    ("the body has quadratic drag (coefficients {})", "N m s^2"),
)


class TrialEffort(eqx.Module):
    """Effort on a joint that a model may lack, a sum of terms with coefficients.

    **Attributes:** `coefficients`, of the terms in `_OF_JOINT`; `motors` on the joint.
    """

    coefficients: Float[Array, " 8"]
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
    if isinstance(model.system, System):
        extended, found = _extend_system(model)
    else:
        moment = TrialMoment(jnp.zeros((4, 3)), model.system.moment)
        extended = replace_fields(model, system=replace_fields(model.system, moment=moment))
        where = LeafPath(("model", "system", "moment", "coefficients"))
        found = [_suspect_group(where, "moment", _OF_BODY)]
        path = LeafPath(("model", "system", "inertia"))
        found.append(_suspect(path, "inertia", "the inertia is another (changes {})", "kg m^2"))
    joints = getattr(model.system, "joints", ())
    is_driven = any(j.num_undriven_rates != j.num_rates for j in joints)
    if not is_driven and not any(isinstance(p.where, StartSelector) for p in parameters):
        start = start_state(model, experiment.state0, name="trial start")
        text = "the motion starts elsewhere (changes of the coordinates and rates: {})"
        found.append((start, [Suspect(text, ("trial start",))]))
    marked = mark_leaves(eqx.tree_at(lambda e: e.model, experiment, extended))[1]
    taken = {_mark(w, marked) for p in parameters for w in (p.where, *p.tied)}
    kept = [pair for pair in found if _is_leaf(pair[0], marked) and _is_free(pair, marked, taken)]
    return extended, [p for p, _ in kept], [s for _, own in kept for s in own]


def _is_free(pair: Any, marked: Any, taken: set[Any]) -> bool:
    return _mark(pair[0].where, marked) not in taken


def _is_leaf(parameter: Parameter, marked: Any) -> bool:
    is_start = isinstance(parameter.where, StartSelector)
    return is_start or isinstance(_mark(parameter.where, marked), LeafMark)


def _mark(where: Callable[[Any], Any], marked: Any) -> Any:
    try:
        mark = where(marked)
        return mark if isinstance(mark, LeafMark) else None
    except (AttributeError, TypeError, IndexError, KeyError):
        return None


def _suspect(
    where: LeafPath, name: str, text: str, unit: str, *starts: float
) -> tuple[Parameter, list[Suspect]]:
    """Return the parameter of a leaf that changes as a whole, and its suspect."""
    label = f"trial {name}"
    return Parameter(label, where, unit=unit), [Suspect(text, (label,), unit, starts)]


def _suspect_group(
    where: LeafPath, name: str, terms: Sequence[tuple[str, str]]
) -> tuple[Parameter, list[Suspect]]:
    """Return the parameter of coefficients (K, 3), and a suspect for each of the K rows."""
    label = f"trial {name}"
    suspects = [
        Suspect(text, tuple(f"{label}[{k},{i}]" for i in range(3)), unit)
        for k, (text, unit) in enumerate(terms)
    ]
    return Parameter(label, where), suspects


def _extend_system(model: AbstractFormulation) -> tuple[AbstractFormulation, list[Any]]:
    system = model.system
    assert isinstance(system, System)
    found, forces = [], list(system.forces)
    # In closed loops the start must be found again for every change of a point: minutes to compile.
    has_points = len(system.bodies) <= _FEW and not system.has_loops
    for j, joint in enumerate(system.joints):
        name = joint.name
        if joint.num_undriven_rates != 1 or joint.num_rates != 1 or name in system.closing:
            continue
        motors = tuple(f for f in system.forces if type(f) is Motor and f.joint == name)
        label = f"trial effort of {name}"
        has = "has another" if getattr(joint, "friction", None) is not None else "has"
        length, effort = ("m", "N") if joint.num_translations else ("rad", "N m")
        suspects = [
            Suspect(
                text.replace("{name}", name).replace("has Coulomb", f"{has} Coulomb"),
                (f"{label}[{k}]",),
                unit.format(effort=effort, length=length),
                starts,
            )
            for k, (text, unit, starts) in enumerate(_OF_JOINT)
            if motors or k < 5
        ]
        where = LeafPath(("model", "system", "forces", len(forces), "torque", "coefficients"))
        found.append((Parameter(label, where), suspects))
        forces.append(Motor(name, TrialEffort(jnp.zeros(8), motors)))
        if has_points and getattr(joint, "point", None) is not None:
            path = LeafPath(("model", "system", "joints", j, "point"))
            text = f"the joint {name} is at another point (changes {{}})"
            found.append(_suspect(path, f"point of {name}", text, "m"))
        if getattr(joint, "armature", None) is not None:
            path = LeafPath(("model", "system", "joints", j, "armature"))
            text = f"the rotor of {name} has another inertia (change {{}})"
            found.append(_suspect(path, f"armature of {name}", text, "kg m^2"))
    for k, force in enumerate(system.forces):
        if isinstance(force, Gravity):
            path = LeafPath(("model", "system", "forces", k, "vector"))
            text = "gravity is another (changes of its components {})"
            found.append(_suspect(path, "gravity", text, "m/s^2", -1.0, -2.0))
    for k, body in enumerate(system.bodies if len(system.bodies) <= _FEW else ()):
        for field, text, unit in (
            ("mass", "the mass of {name} is another (change {})", "kg"),
            ("inertia", "the inertia of {name} is another (changes {})", "kg m^2"),
            ("position", "the centre of mass of {name} is elsewhere (changes {})", "m"),
        )[: 3 if has_points else 2]:
            path = LeafPath(("model", "system", "bodies", k, field))
            text = text.replace("{name}", body.name)
            found.append(_suspect(path, f"{field} of {body.name}", text, unit))
    extended = replace_fields(model, system=replace_fields(system, forces=tuple(forces)))
    return extended, found


Columns = Callable[[Float[np.ndarray, "B T C"]], Float[np.ndarray, "B T C m"]]


def sensor_suspects(
    name: str, unit: str, channels: Sequence[str], ts: Float[np.ndarray, "B T"]
) -> list[tuple[Suspect, Columns]]:
    """Return suspects of one sensor, the first a delay, with the changes of its readings by them.

    **Returns:** pairs of a suspect and a function of the predicted readings.
    """
    eye, t = np.eye(len(channels)), (ts - ts[:, :1])[..., None, None]
    # Padding increases too, as `numpy.gradient` needs.
    spread = ts + 1e-9 * np.arange(ts.shape[1])

    def slopes(x):
        return np.stack([np.gradient(*pair, axis=0) for pair in zip(x, spread, strict=True)])

    def late(x):
        return -slopes(x)[..., None]

    def play(x):
        rates = slopes(x)
        return -np.tanh(rates / (0.05 * np.sqrt(np.mean(rates**2)) + 1e-300))[..., None]

    found: list[tuple[Suspect, Columns]] = [
        (Suspect(f"the {name} is late by {{}}", (), "s"), late),
        (
            Suspect(f"the clock of the {name} is fast by {{}}", (), "ppm"),
            lambda x: 1e-6 * t * late(x),
        ),
        (
            Suspect(f"the clock of the {name} is late and fast by {{}} (s, ppm)", ()),
            lambda x: np.concatenate([late(x), 1e-6 * t * late(x)], axis=-1),
        ),
        (Suspect(f"the {name} drifts by {{}}", (), f"{unit}/s"), lambda x: t * eye),
        (Suspect(f"the {name} has play, half of it {{}}", (), unit), play),
    ]
    for k, channel in enumerate(channels):
        part = name if len(channels) == 1 else f"channel {channel} of the {name}"
        found += [
            (
                Suspect(f"the {part} has a bias of {{}}", (), unit),
                _column(k, lambda x: 1.0 + 0 * x),
            ),
            (
                Suspect(f"the {part} has another scale (relative change {{}})", ()),
                _column(k, lambda x: x),
            ),
        ]
        for start in np.quantile(ts[0], np.linspace(0.02, 0.98, _JUMPS)):
            text = f"the {part} jumps by {{}} at t = {start:.4g} s"
            after = (ts >= start)[..., None]
            found.append(
                (Suspect(text, (), unit), _column(k, lambda x, after=after: after + 0 * x))
            )
    if len(channels) == 3:
        text = f"the {name} is turned against its axes by {{}}"
        found.append(
            (Suspect(text, (), "rad"), lambda x: np.cross(x[..., None, :], eye).swapaxes(-1, -2))
        )
    return found


def _column(k: int, of: Callable[[np.ndarray], np.ndarray]) -> Columns:
    """Return the function whose only column is channel `k` of another one."""
    return lambda x: (of(x) * (np.arange(x.shape[-1]) == k))[..., None]
