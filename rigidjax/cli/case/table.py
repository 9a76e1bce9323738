"""Tables of a case file, read key by key: what is missing, misspelled or of a wrong kind."""

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from .. import choices

_REQUIRED: Any = object()

_KINDS = {
    "a text": str,
    "true or false": bool,
    "a whole number": int,
    "a number": (int, float),
    "an array": list,
    "a table": dict,
}


class Table:
    """One table; every key is taken by its name, and what is left over is an error.

    **Arguments:** `values`; `where`, file and table, in front of every message.
    """

    def __init__(self, values: dict[str, Any], where: str):
        self.values = dict(values)
        self.where = where
        self.asked: set[str] = set()

    def fail(self, message: str) -> NoReturn:
        """Raise `ValueError` about this table."""
        raise ValueError(f"{self.where}: {message}")

    def has(self, key: str) -> bool:
        """Whether a key is there and not yet taken."""
        self.asked.add(key)
        return key in self.values

    def take(self, key: str, kind: str, default: Any = _REQUIRED) -> Any:
        """The value of a key, of one of the kinds in `_KINDS`; `default` if it is not there."""
        self.asked.add(key)
        if key not in self.values:
            if default is _REQUIRED:
                near = difflib.get_close_matches(key, self.values, n=1)
                hint = f" Did you write `{near[0]}` for it?" if near else ""
                self.fail(f"`{key}` is missing; it is {kind}.{hint}")
            return default
        value = self.values.pop(key)
        wrong = not isinstance(value, _KINDS[kind])
        if wrong or (isinstance(value, bool) and kind != "true or false"):
            self.fail(f"`{key}` must be {kind}; got {value!r}.")
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        """A text."""
        return self.take(key, "a text", default)

    def texts(self, key: str, default: Any = _REQUIRED) -> Any:
        """An array of texts, as a tuple."""
        return self._all(key, default, str, "texts")

    def integers(self, key: str, default: Any = _REQUIRED) -> Any:
        """An array of whole numbers, as a tuple."""
        return self._all(key, default, int, "whole numbers")

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        """A number."""
        return self.take(key, "a number", default)

    def numbers(self, key: str, default: Any = _REQUIRED) -> Any:
        """A number, or an array of numbers of any depth."""
        self.asked.add(key)
        if key in self.values and not _is_numeric(self.values[key]):
            self.fail(f"`{key}` must be a number or an array of them; got {self.values[key]!r}.")
        if key not in self.values:
            return self.take(key, "a number", default)
        return self.values.pop(key)

    def table(self, key: str, default: Any = _REQUIRED) -> "Table":
        """A table inside this one."""
        return Table(self.take(key, "a table", default), f"{self.where}, [{key}]")

    def pick(self, key: str, names: Mapping[str, Any], default: Any = _REQUIRED) -> Any:
        """What the text of a key stands for."""
        name = self.text(key, default)
        return names[self.checked(choices.pick, f"`{key}`", name, names)]

    def checked(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What a function returns; what it finds wrong is said of this table."""
        try:
            return function(*arguments, **options)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.where}: {error}") from error

    def build(self, factory: Callable[..., Any], skip: tuple[str, ...] = (), **given: Any) -> Any:
        """Call a class with the keys that are left as arguments of these names.

        **Arguments:** `skip`, arguments that a file cannot give, being functions; `given`, what is
        known otherwise.
        """
        parameters = inspect.signature(factory).parameters
        known = [
            name
            for name, p in parameters.items()
            if p.kind is not p.VAR_KEYWORD and name not in given
        ]
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            known += _POSE
        for name in skip:
            if name in self.values:
                self.fail(
                    f"`{name}` is a function, which a file cannot hold: write this in Python."
                )
        known = [name for name in known if name not in skip]
        needed = [n for n in known if n in parameters and parameters[n].default is inspect._empty]
        self.asked.update(known)
        self.done()
        missing = [name for name in needed if name not in self.values]
        if missing:
            self.fail(f"`{'`, `'.join(missing)}` is missing, of {factory.__qualname__}.")
        values, self.values = self.values, {}
        return self.checked(factory, **values, **given)

    def done(self) -> None:
        """Raise `ValueError` for a key that nobody asked for."""
        for key in self.values:
            if key not in self.asked:
                near = difflib.get_close_matches(key, self.asked, n=1)
                known = ", ".join(sorted(self.asked))
                hint = f"Did you mean `{near[0]}`?" if near else f"There are {known}."
                self.fail(f"there is no `{key}` here. {hint}")

    def _all(self, key, default, kind, kinds):
        values = self.take(key, "an array", default)
        if values is default:
            return default
        if not all(isinstance(v, kind) and not isinstance(v, bool) for v in values):
            self.fail(f"`{key}` must be an array of {kinds}; got {values!r}.")
        return tuple(values)


# What shapes of bodies take besides their own arguments.
_POSE = ("position", "orientation", "velocity", "angular_velocity")


def by_name(*kinds: Any) -> dict[str, Any]:
    """Classes, or functions that make one, by their names in small letters."""
    return {kind.__name__.lower(): kind for kind in kinds}


def array_of_tables(top: Table, key: str) -> Iterator[Table]:
    """The tables `[[key]]` of a file, each known by its name or number."""
    for number, values in enumerate(top.take(key, "an array", []), start=1):
        if not isinstance(values, dict):
            top.fail(f"`{key}` must be written as tables `[[{key}]]`; got {values!r}.")
        name = values.get("name")
        called = f" ({name!r})" if isinstance(name, str) else ""
        yield Table(values, f"{top.where}, [[{key}]] {number}{called}")


def _is_numeric(value):
    if isinstance(value, list):
        return all(_is_numeric(v) for v in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
