"""Tables of a case file, with checks for missing, misspelled and mistyped keys."""

import difflib
import inspect
import pathlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from .. import choices
from ..kinds import part_kind, takes_only_functions

_REQUIRED: Any = object()

_KINDS = {
    "a text": str,
    "true or false": bool,
    "an integer": int,
    "a number": (int, float),
    "an array": list,
    "a table": dict,
}


class CaseTable:
    """One table of a case file. Reading a key removes it; keys that remain are errors.

    **Arguments:** `values`; `where`, file and table, the prefix of every message.
    """

    def __init__(self, values: dict[str, Any], where: str):
        self.values = dict(values)
        self.where = where
        self.requested: set[str] = set()

    def fail(self, message: str) -> NoReturn:
        """Raise `ValueError` about this table."""
        raise ValueError(f"{self.where}: {message}")

    def has(self, key: str) -> bool:
        """Return whether the table contains a key that was not yet read."""
        self.requested.add(key)
        return key in self.values

    def take(self, key: str, kind: str, default: Any = _REQUIRED) -> Any:
        """Remove a key and return its value, of a kind in `_KINDS`; `default` if it is missing."""
        self.requested.add(key)
        if key not in self.values:
            if default is _REQUIRED:
                matches = difflib.get_close_matches(key, self.values, n=1)
                hint = f" Did you write `{matches[0]}` for it?" if matches else ""
                self.fail(f"`{key}` is missing; it is {kind}.{hint}")
            return default
        value = self.values.pop(key)
        wrong = not isinstance(value, _KINDS[kind])
        if wrong or (isinstance(value, bool) and kind != "true or false"):
            self.fail(f"`{key}` must be {kind}; got {value!r}.")
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        """Read a string."""
        return self.take(key, "a text", default)

    def texts(self, key: str, default: Any = _REQUIRED) -> Any:
        """Read an array of strings, as a tuple."""
        return self._take_array(key, default, str, "texts")

    def integers(self, key: str, default: Any = _REQUIRED) -> Any:
        """Read an array of integers, as a tuple."""
        return self._take_array(key, default, int, "integers")

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        """Read a number."""
        return self.take(key, "a number", default)

    def numbers(self, key: str, default: Any = _REQUIRED) -> Any:
        """Read a number, or a nested array of numbers."""
        self.requested.add(key)
        if key in self.values and not _is_numeric(self.values[key]):
            self.fail(f"`{key}` must be a number or an array of numbers; got {self.values[key]!r}.")
        if key not in self.values:
            return self.take(key, "a number", default)
        return self.values.pop(key)

    def table(self, key: str, default: Any = _REQUIRED) -> "CaseTable":
        """Read a nested table."""
        return CaseTable(self.take(key, "a table", default), f"{self.where}, [{key}]")

    def pick(self, key: str, names: Mapping[str, Any], default: Any = _REQUIRED) -> Any:
        """Read a string and return the value of `names` that it selects."""
        name = self.text(key, default)
        return names[self.call(choices.pick, f"`{key}`", name, names)]

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function; its errors get the location of this table as a prefix."""
        try:
            return function(*arguments, **options)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.where}: {error}") from error

    def build(self, factory: Callable[..., Any], **arguments: Any) -> Any:
        """Call a class with the remaining keys, and further `arguments`, as keyword arguments.

        Arguments that are objects, such as `friction`, are tables of their own.
        """
        parameters = inspect.signature(factory).parameters
        known = [
            name
            for name, p in parameters.items()
            if p.kind is not p.VAR_KEYWORD and name not in arguments
        ]
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            known += _POSE
        for name in [n for n in known if n in parameters and takes_only_functions(parameters[n])]:
            if name in self.values:
                self.fail(
                    f"`{name}` is a function, which a file cannot contain: write this in Python."
                )
            known.remove(name)
        needed = [n for n in known if n in parameters and parameters[n].default is inspect._empty]
        self.requested.update(known)
        self.reject_unknown()
        missing = [name for name in needed if name not in self.values]
        if missing:
            self.fail(
                f"`{'`, `'.join(missing)}` is missing, an argument of {factory.__qualname__}."
            )
        parts = {}
        for name in known:
            kind = part_kind(parameters[name]) if name in parameters else None
            if kind is not None and name in self.values:
                parts[name] = self.table(name).build(kind)
        values, self.values = self.values, {}
        return self.call(factory, **values, **parts, **arguments)

    def reject_unknown(self) -> None:
        """Raise `ValueError` for a key that no reader requested."""
        for key in self.values:
            if key not in self.requested:
                matches = difflib.get_close_matches(key, self.requested, n=1)
                known = ", ".join(sorted(self.requested))
                hint = f"Did you mean `{matches[0]}`?" if matches else f"There are {known}."
                self.fail(f"there is no `{key}` here. {hint}")

    def _take_array(self, key: str, default: Any, kind: type, kinds: str) -> Any:
        values = self.take(key, "an array", default)
        if values is default:
            return default
        if not all(isinstance(v, kind) and not isinstance(v, bool) for v in values):
            self.fail(f"`{key}` must be an array of {kinds}; got {values!r}.")
        return tuple(values)


# Keyword arguments that constructors of body shapes pass on to `Body`.
_POSE = ("position", "orientation", "velocity", "angular_velocity")


def array_of_tables(top: CaseTable, key: str) -> Iterator[CaseTable]:
    """Yield the tables `[[key]]` of a file, with their numbers and names as locations."""
    for number, values in enumerate(top.take(key, "an array", []), start=1):
        if not isinstance(values, dict):
            top.fail(f"`{key}` must be written as tables `[[{key}]]`; got {values!r}.")
        name = values.get("name")
        name_text = f" ({name!r})" if isinstance(name, str) else ""
        yield CaseTable(values, f"{top.where}, [[{key}]] {number}{name_text}")


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numeric(v) for v in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_toml(path: pathlib.Path) -> tuple[dict[str, Any], str]:
    """Return the content of a TOML file, and its text.

    **Errors:** `ValueError` for a file that is none; `FileNotFoundError`.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no case {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error


def top_table(path: pathlib.Path, content: Mapping[str, Any], known: Iterable[str]) -> CaseTable:
    """Return the table of a whole file; `model = "arm.urdf"` is short for a table with `file`.

    **Errors:** `ValueError` for a table that is not known.
    """
    content = dict(content)
    if isinstance(content.get("model"), str):
        content["model"] = {"file": content["model"]}
    top = CaseTable(content, str(path))
    top.requested |= set(known)
    top.reject_unknown()
    return top
