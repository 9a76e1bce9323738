"""Names on the command line, and the classes and functions that they select."""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import diffrax

from .. import formulations, rotations, solvers
from ..checks import did_you_mean
from ..formulations import AbstractAbsolute, AbstractFormulation, NullSpace
from ..problems import Problem, find
from ..rotations import AbstractRotation, EulerAngles
from ..rotations.euler_angles import SEQUENCES
from .kinds import find_kinds, has_defaults, option_name

# Methods of diffrax for equations without noise; the first is the default.
_DIFFRAX_SOLVERS = (
    *(diffrax.Dopri8, diffrax.Dopri5, diffrax.Tsit5, diffrax.Bosh3),
    *(diffrax.Heun, diffrax.Midpoint, diffrax.Euler),
    *(diffrax.Kvaerno3, diffrax.Kvaerno4, diffrax.Kvaerno5, diffrax.ImplicitEuler),
)


def _by_option(kinds: Iterable[Any]) -> dict[str, Any]:
    """Return the classes that can be built without arguments, by their names as options."""
    return {option_name(kind): kind for kind in kinds if has_defaults(kind)}


def rotation_kinds() -> dict[str, Callable[[], AbstractRotation]]:
    """Return the parametrizations of rotations by their names on the command line."""
    kinds = find_kinds(AbstractRotation, rotations)
    angles = {sequence.lower(): partial(EulerAngles, sequence) for sequence in SEQUENCES}
    return {**_by_option(kinds.values()), **angles}


def solver_kinds() -> dict[str, Callable[[], diffrax.AbstractSolver]]:
    """Return the solvers by their names on the command line."""
    kinds = find_kinds(diffrax.AbstractSolver, solvers)
    return _by_option((*_DIFFRAX_SOLVERS, *kinds.values()))


def formulation_kinds() -> dict[str, type[AbstractFormulation]]:
    """Return the formulations by their names on the command line."""
    kinds = find_kinds(AbstractFormulation, formulations)
    return {option_name(kind): kind for kind in kinds.values()}


def is_adaptive(method: diffrax.AbstractSolver) -> bool:
    """Return whether a solver has an error estimate that controls its steps."""
    if isinstance(method, solvers.AbstractStructureSolver):
        return method.is_adaptive
    return isinstance(method, diffrax.AbstractAdaptiveSolver)


# Names of solvers in other programs, and the solver here that is the same or the most similar.
_OTHER_NAMES = {
    **dict.fromkeys(("rk45", "ode45", "rkf45"), "dopri5"),
    **dict.fromkeys(("rk23", "ode23"), "bosh3"),
    **dict.fromkeys(("dop853", "ode78", "ode89", "rk8"), "dopri8"),
    **dict.fromkeys(("radau", "radauiia", "ode23s", "ode23t"), "radau5"),
    **dict.fromkeys(("lsoda", "vode", "cvode", "ida", "ode15s", "ode15i"), "bdf"),
    "ode113": "odex",
}

_ENDING = r"(-parameters|-rotation-vector|-prior|\d+)"


def pick(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the element of `names` that equals `name` up to case, hyphens and underscores.

    Endings that name its kind, such as `-parameters`, and digits may be left out.

    **Raises:** `ValueError` with the most similar name.
    """
    names = list(names)
    key = name.lower().replace("_", "-")
    same = [x for x in names if _letters(x) == _letters(key)]
    longer = [x for x in names if re.fullmatch(re.escape(key) + _ENDING, x)]
    for matches in (same, longer):
        if len(matches) == 1:
            return matches[0]
    hint = did_you_mean(key, map(str.lower, names), f" There are: {', '.join(names)}.", 0.5)
    raise ValueError(f"There is no {kind} {name!r}.{hint}")


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def make_solver(name: str) -> diffrax.AbstractSolver:
    """Return the solver `name` with its default options.

    **Raises:** `ValueError` for an unknown name; it names the solver for names of other programs.
    """
    kinds = solver_kinds()
    same = _OTHER_NAMES.get(_letters(name))
    if same is not None and name.lower() not in kinds:
        raise ValueError(f"There is no solver {name!r}. Did you mean {same!r}?")
    return kinds[pick("solver", name, kinds)]()


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
    kinds, parametrizations = formulation_kinds(), rotation_kinds()
    name = pick("formulation", formulation, kinds)
    rotation = pick("rotation", rotation, parametrizations)
    rates = pick("kind of rates", rates, ("body", "space"))
    known = {kind: inspect.signature(kinds[kind]).parameters for kind in kinds}
    if rates == "space" and "rates" not in known[name]:
        raise ValueError(
            f"`--rates space` requires `--formulation {_names_with('rates', known)}`; use "
            "`--rates body` otherwise."
        )
    if index and "index" not in known[name]:
        raise ValueError(
            f"`--index {index}` requires `--formulation {_names_with('index', known)}`."
        )
    if rotation != "quaternion" and "rotation" not in known[name]:
        raise ValueError(f"`--formulation {name}` requires `--rotation quaternion`.")
    options = {
        "rotation": parametrizations[rotation](),
        "index": index,
        "rates": rates,
        "recharting": recharting,
    }
    return kinds[name](system, **{key: options[key] for key in options if key in known[name]})


def _names_with(argument: str, known: dict[str, Any]) -> str:
    """Return the formulations that have an argument."""
    return "` or `".join(name for name in known if argument in known[name])
