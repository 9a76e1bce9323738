"""Names on the command line, and the classes and functions that they select."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import diffrax

from .. import solvers
from ..checks import did_you_mean
from ..formulations import (
    Absolute,
    AbstractAbsolute,
    AbstractFormulation,
    EulerParameters,
    Hamiltonian,
    NullSpace,
    Relative,
)
from ..problems import Problem, find
from ..rotations import (
    AbstractRotation,
    ConformalRotationVector,
    Directors,
    EulerAngles,
    LinearParameters,
    Quaternion,
    RodriguesParameters,
    RotationVector,
)

_SEQUENCES = ("ZXZ", "XYX", "YZY", "ZYZ", "XZX", "YXY", "XYZ", "YZX", "ZXY", "XZY", "ZYX", "YXZ")

ROTATIONS: dict[str, Callable[[], AbstractRotation]] = {
    "quaternion": Quaternion,
    "directors": Directors,
    "rotation-vector": RotationVector,
    "rodrigues": RodriguesParameters,
    "conformal": ConformalRotationVector,
    "linear": LinearParameters,
    **{sequence.lower(): lambda s=sequence: EulerAngles(s) for sequence in _SEQUENCES},
}

# The type checker mistakes the property `MuntheKaas.is_adaptive` for a field.
_MuntheKaas: Any = solvers.MuntheKaas

SOLVERS: dict[str, Callable[[], diffrax.AbstractSolver]] = {
    "dopri8": diffrax.Dopri8,
    "dopri5": diffrax.Dopri5,
    "tsit5": diffrax.Tsit5,
    "bosh3": diffrax.Bosh3,
    "heun": diffrax.Heun,
    "midpoint": diffrax.Midpoint,
    "euler": diffrax.Euler,
    "kvaerno3": diffrax.Kvaerno3,
    "kvaerno4": diffrax.Kvaerno4,
    "kvaerno5": diffrax.Kvaerno5,
    "implicit-euler": diffrax.ImplicitEuler,
    "radau5": solvers.Radau5,
    "radau9": solvers.Radau9,
    "radau13": solvers.Radau13,
    "bdf": solvers.BDF,
    "odex": solvers.Odex,
    "seulex": solvers.Seulex,
    "energy-momentum": solvers.EnergyMomentum,
    "variational": solvers.Variational,
    "simo-wong": solvers.SimoWong,
    "energy-midpoint": solvers.EnergyMidpoint,
    "munthe-kaas": _MuntheKaas,
    "commutator-free": solvers.CommutatorFree4,
    "generalized-alpha": solvers.GeneralizedAlpha,
}


def is_adaptive(method: diffrax.AbstractSolver) -> bool:
    """Return whether a solver has an error estimate that controls its steps."""
    if isinstance(method, solvers.AbstractStructureSolver):
        return method.is_adaptive
    return isinstance(method, diffrax.AbstractAdaptiveSolver)


FORMULATIONS: dict[str, type[AbstractFormulation]] = {
    "null-space": NullSpace,
    "relative": Relative,
    "absolute": Absolute,
    "euler-parameters": EulerParameters,
    "hamiltonian": Hamiltonian,
}


def pick(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the element of `names` that equals `name` up to case, hyphens and underscores.

    **Raises:** `ValueError` with the most similar name.
    """
    names = list(names)
    key = name.lower().replace("_", "-")
    if key in names:
        return key
    hint = did_you_mean(key, names, f" There are: {', '.join(names)}.", 0.5)
    raise ValueError(f"There is no {kind} {name!r}.{hint}")


def make_solver(name: str) -> diffrax.AbstractSolver:
    """Return the solver `name` with its default options."""
    return SOLVERS[pick("solver", name, SOLVERS)]()


def solver_name(method: diffrax.AbstractSolver) -> str:
    """Return the name of a solver on the command line."""
    names = [name for name, kind in SOLVERS.items() if kind.__name__ == type(method).__name__]
    return names[0]


def make_problem(name: str, settings: Iterable[str] = ()) -> Problem:
    """Return the problem `name`, built with settings such as `disturbance=1e-3`.

    **Raises:** `ValueError` for an unknown problem or setting, and for a value of a wrong type.
    """
    build = find(name)
    known = inspect.signature(build).parameters
    arguments: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"`--set {setting}` must be NAME=VALUE, such as disturbance=1e-3.")
        if not known:
            raise ValueError(f"The problem {build.__name__!r} has no settings; got {key!r}.")
        key = pick(f"setting of {build.__name__}", key, known)
        kind = type(known[key].default)
        try:
            arguments[key] = kind(text)
        except ValueError as error:  # strings always convert; the problem checks them
            raise ValueError(
                f"`--set {key}=` takes a number ({kind.__name__}); got {text!r}."
            ) from error
    return build(**arguments)


def describe(model: AbstractFormulation) -> str:
    """Describe a formulation in a few words."""
    rotation = type(model.rotation).__name__
    if isinstance(model.rotation, EulerAngles):
        rotation += f" {model.rotation.sequence}"
    words = [type(model).__name__, rotation]
    if isinstance(model, NullSpace):
        words.append(f"{model.rates} rates")
    if isinstance(model, AbstractAbsolute):
        words.append(f"index {model.index}")
    return ", ".join(words)


def make_formulation(
    system: Any, formulation: str, rotation: str, rates: str, recharting: bool, index: int = 0
) -> AbstractFormulation:
    """Return the formulation of a system.

    **Raises:** `ValueError` for unknown names and unsupported combinations.
    """
    name = pick("formulation", formulation, FORMULATIONS)
    rotation = pick("rotation", rotation, ROTATIONS)
    rates = pick("kind of rates", rates, ("body", "space"))
    if rates == "space" and name != "null-space":
        raise ValueError(
            "`--rates space` requires `--formulation null-space`; use `--rates body` otherwise."
        )
    if index and name not in ("absolute", "euler-parameters"):
        raise ValueError(
            f"`--index {index}` requires `--formulation absolute` or `euler-parameters`."
        )
    if name in ("euler-parameters", "hamiltonian"):
        if rotation != "quaternion":
            raise ValueError(f"`--formulation {name}` requires `--rotation quaternion`.")
        if name == "hamiltonian":
            return Hamiltonian(system)
        return EulerParameters(system, index=index)
    parametrization = ROTATIONS[rotation]()
    if name == "absolute":
        return Absolute(system, parametrization, index, recharting=recharting)
    if name == "relative":
        return Relative(system, parametrization, recharting)
    components = "space" if rates == "space" else "body"
    return NullSpace(system, parametrization, components, recharting)
