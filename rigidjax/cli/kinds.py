"""Classes that the command line and case files know by name: of rigidjax, and of users."""

import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, Union, get_args, get_origin

import equinox as eqx

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


def has_defaults(kind: Callable[..., Any]) -> bool:
    """Return whether a class can be built without arguments."""
    return not list(_required_arguments(kind))


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
