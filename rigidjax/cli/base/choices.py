"""Names on the command line, and the classes and functions that they select."""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Union, get_args, get_origin

import diffrax
import equinox as eqx

from ... import formulations, rotations, solvers
from ...checks import did_you_mean
from ...formulations import AbstractAbsolute, AbstractFormulation, NullSpace
from ...problems import Problem, find
from ...rotations import AbstractRotation, EulerAngles
from ...rotations.euler_angles import SEQUENCES

# Methods of diffrax for equations without noise; the first is the default.
_DIFFRAX_SOLVERS = (
    *(diffrax.Dopri8, diffrax.Dopri5, diffrax.Tsit5, diffrax.Bosh3),
    *(diffrax.Heun, diffrax.Midpoint, diffrax.Euler),
    *(diffrax.Kvaerno3, diffrax.Kvaerno4, diffrax.Kvaerno5, diffrax.ImplicitEuler),
)


def _by_option(kinds: Iterable[Any]) -> dict[str, Any]:
    """Return the classes that can be built without arguments, by their names as options."""
    return {option_name(kind): kind for kind in kinds if not list(_required_arguments(kind))}


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
    usual = {"rotation": "quaternion", "index": 0, "rates": "body"}
    options = {"rotation": rotation, "index": index, "rates": rates}
    for key, value in options.items():
        if value != usual[key] and key not in known[name]:
            others = "` or `".join(kind for kind in known if key in known[kind])
            raise ValueError(
                f"`--{key} {value}` requires `--formulation {others}`; `--formulation {name}` "
                f"requires `--{key} {usual[key]}`."
            )
    options |= {"rotation": parametrizations[rotation](), "recharting": recharting}
    return kinds[name](system, **{key: options[key] for key in options if key in known[name]})


# --- classes of rigidjax and of users

_LIBRARIES = ("rigidjax", "diffrax")


def find_kinds(base: type, *exporting: types.ModuleType) -> dict[str, type]:
    """Return the final classes derived from `base` that a file can describe, by class name.

    These are the classes of rigidjax that the modules `exporting` export, and every class of a
    user. Left out are private classes, and classes with an argument that has to be a function or
    an object. If a class of another module has the same name, a user's class is called
    `module.Name`; if a class of the same module has it, the later one replaces the earlier.
    """
    exported = [getattr(module, name) for module in exporting for name in dir(module)]
    exported = [x for x in exported if isinstance(x, type) and issubclass(x, base)]
    users = [x for x in _subclasses(base) if x.__module__.partition(".")[0] not in _LIBRARIES]
    kinds: dict[str, type] = {}
    for kind in dict.fromkeys((*exported, *users)):
        name = kind.__name__
        if name.startswith(("_", "Abstract")) or not _is_describable(kind):
            continue
        if name in kinds and kinds[name].__module__ != kind.__module__:
            name = f"{kind.__module__}.{name}"
        kinds[name] = kind
    return kinds


def option_name(kind: type) -> str:
    """Return the name of a class on the command line, such as `rotation-vector`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def takes_function(parameter: inspect.Parameter) -> bool:
    """Return whether an argument of a class may be a function."""
    return any(map(_is_function, _alternatives(parameter)))


def takes_only_functions(parameter: inspect.Parameter) -> bool:
    """Return whether an argument of a class, unless it is `None`, has to be a function."""
    return all(_is_function(x) or x is types.NoneType for x in _alternatives(parameter))


def part_kind(parameter: inspect.Parameter) -> type[eqx.Module] | None:
    """Return the class of an argument that has to be one object, such as the friction of a joint.

    A file describes the object by a table. `None` for other arguments.
    """
    kinds = [x for x in _alternatives(parameter) if x is not types.NoneType]
    if len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], eqx.Module):
        return kinds[0]
    return None


def _subclasses(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _subclasses(kind)


def _required_arguments(kind: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.default is parameter.empty:
            yield parameter


def _is_describable(kind: type) -> bool:
    """Return whether text and numbers can express the required arguments of a class."""
    return not any(
        takes_only_functions(p)
        or (isinstance(p.annotation, type) and issubclass(p.annotation, eqx.Module))
        for p in _required_arguments(kind)
    )


def _alternatives(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Return the types of an argument."""
    annotation = parameter.annotation
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation,)


def _is_function(annotation: Any) -> bool:
    return annotation is Callable or get_origin(annotation) is Callable
