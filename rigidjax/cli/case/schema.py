"""Structures of the tables of a case file: kinds of values, locations, and messages."""

import contextlib
import inspect
import pathlib
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, NoReturn, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import core_schema

from ...checks import did_you_mean
from ..base import checks, choices
from ..base.choices import part_kind, takes_only_functions

_T = TypeVar("_T", bound="CaseTable")


class Kind:
    """Kind of a value: its text in messages, and a check of name and value that returns a value."""

    def __init__(self, text: str, check: Callable[[str, Any], Any] = lambda name, value: value):
        self.text, self.check = text, check

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the schema of the type with the message of this kind."""

        def validate(value: Any, inner: Callable[[Any], Any], info: ValidationInfo) -> Any:
            try:
                value = inner(value)
            except ValidationError:
                text = f"`{info.field_name}` must be {self.text}; got {value!r}."
                raise ValueError(text) from None
            return self.check(str(info.field_name), value)

        return core_schema.with_info_wrap_validator_function(validate, handler(source))


def one_of(names: Iterable[str]) -> Kind:
    """Return the kind of one of these names, which may be abbreviated as in `choices.pick`."""
    return Kind("a text", lambda key, value: choices.pick(f"`{key}`", value, names))


def _check_numbers(name: str, value: Any) -> Any:
    """Return a number or a nested list of numbers."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, bool) or not isinstance(part, int | float):
            raise ValueError(f"`{name}` must be a number or an array of numbers; got {value!r}.")
    return value


def _in_folder(path: pathlib.Path, info: ValidationInfo) -> pathlib.Path:
    """Return a path relative to the folder of the case, the context of the validation."""
    return (info.context or pathlib.Path()) / path


Text = Annotated[str, Kind("a text")]
# TOML has lists and texts where a structure has tuples and paths, which a strict one rejects.
TupleOfTexts = Annotated[tuple[Annotated[str, Strict()], ...], Strict(False)]
Texts = Annotated[TupleOfTexts, Kind("an array of texts")]
TextOrTexts = Annotated[str | TupleOfTexts, Kind("a text or an array of texts")]
File = Annotated[pathlib.Path, Strict(False), AfterValidator(_in_folder), Kind("a text")]
Flag = Annotated[bool, Kind("true or false")]
Integer = Annotated[int, Kind("an integer")]
Count = Annotated[int, Field(ge=1), Kind("1 or more")]
Integers = Annotated[
    tuple[Annotated[int, Strict()], ...], Strict(False), Kind("an array of integers")
]
Number = Annotated[float, Kind("a number")]
Numbers = Annotated[Any, Kind("a number or an array of numbers", _check_numbers)]
Size = Annotated[float, Field(ge=0, allow_inf_nan=False), Kind("0 or more")]
Frequency = Annotated[float, Field(gt=0, allow_inf_nan=False), Kind("positive, Hz")]
Positive = Annotated[float, Kind("a number", checks.check_positive)]
Tolerance = Annotated[float, Kind("a number", checks.check_tolerance)]


@contextlib.contextmanager
def locate_errors(where: str) -> Iterator[None]:
    """Put a location in front of the text of an error."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}" if where else str(error)) from error


class CaseTable(BaseModel):
    """One table of a case file; its fields are the keys, and others are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=())
    _where: str = PrivateAttr("")

    @property
    def where(self) -> str:
        """File and table, the prefix of every message."""
        return self._where

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            fields = cls.model_fields
            known = None if cls.model_config.get("extra") == "allow" else fields
            check_keys(values, known, [k for k, field in fields.items() if field.is_required()])
        return values

    def fail(self, message: str) -> NoReturn:
        """Raise `ValueError` about this table."""
        raise ValueError(f"{self._where}: {message}")

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function; its errors get the location of this table as a prefix."""
        with locate_errors(self._where):
            return function(*arguments, **options)

    def given_values(self, *left_out: str) -> dict[str, Any]:
        """Return the keys that the file contains, with their values, but those of `left_out`."""
        given = self.model_fields_set - set(left_out)
        return {key: getattr(self, key) for key in type(self).model_fields if key in given}


class PartTable(CaseTable, extra="allow"):
    """A table with arguments of a class beside its own keys."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The keys beside those of the structure."""
        return dict(self.model_extra or {})

    def build(self, factory: Callable[..., Any], **arguments: Any) -> Any:
        """Call a class with the arguments in the table, except those that are passed here.

        Arguments that are objects, such as `friction`, are tables of their own.
        """
        values = {k: v for k, v in self.arguments.items() if k not in arguments}
        own = type(self).model_fields
        return build(factory, values, self._where, own, **arguments)


class OutputTable(CaseTable):
    """`[output]`: files that are written, `None` for the others."""

    def override(self, **options: pathlib.Path | None) -> Self:
        """Return the files of the command line, and those of the case where it names none."""
        return self.model_copy(update={k: v for k, v in options.items() if v is not None})


class TypedTable(PartTable):
    """A table whose `type` selects the class."""

    type: Text

    def kind(self, kinds: Mapping[str, Any]) -> Any:
        """Return the class that `type` names."""
        return kinds[self.call(choices.pick, "`type`", self.type, kinds)]


def build(
    factory: Callable[..., Any],
    values: Mapping[str, Any],
    where: str,
    others: Collection[str] = (),
    **arguments: Any,
) -> Any:
    """Call a class with the values of a table, and further `arguments`.

    **Arguments:** `where`, the location of the table; `others`, keys that it may also have, for
    suggestions.
    **Errors:** `ValueError` with the location.
    """
    parameters = inspect.signature(factory).parameters
    named = {
        name: p
        for name, p in parameters.items()
        if p.kind is not p.VAR_KEYWORD and name not in arguments
    }
    functions = [name for name, p in named.items() if takes_only_functions(p)]
    known = [*(name for name in named if name not in functions), *others]
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        known += _POSE
    needed = [n for n, p in named.items() if p.default is p.empty and n not in functions]
    with locate_errors(where):
        for name in functions:
            if name in values:
                raise ValueError(
                    f"`{name}` is a function, which a file cannot contain: write this in Python."
                )
        check_keys(values, known, needed, f", an argument of {factory.__qualname__}")
    parts = dict(values)
    for name, value in values.items():
        kind = part_kind(named[name]) if name in named else None
        if kind is not None:
            if not isinstance(value, Mapping):
                raise ValueError(f"{where}: `{name}` must be a table; got {value!r}.")
            parts[name] = build(kind, value, f"{where}, [{name}]")
    with locate_errors(where):
        return factory(**parts, **arguments)


# Keyword arguments that constructors of body shapes pass on to `Body`.
_POSE = ("position", "orientation", "velocity", "angular_velocity")


class _KeysError(ValueError):
    """Unknown and missing keys of a table."""


def check_keys(
    values: Collection[str],
    known: Collection[str] | None,
    required: Iterable[str] = (),
    what: str = "",
) -> None:
    """Raise `_KeysError` for a key that is not known, then for one that is missing.

    **Arguments:** `known`, `None` for any; `required` keys, and `what` they are.
    """
    for key in values:
        if known is not None and key not in known:
            listed = f" There are {', '.join(sorted(known))}."
            hint = did_you_mean(key, known, listed).replace("'", "`")
            raise _KeysError(f"there is no `{key}` here.{hint}")
    missing = [name for name in required if name not in values]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        hint = "" if known is not None else did_you_mean(missing[0], values)
        hint = hint.replace("Did you mean", "Did you write").replace("?", " for it?")
        raise _KeysError(f"`{'`, `'.join(missing)}` {verb} missing{what}.{hint}")


def parse(
    schema: type[_T], values: Mapping[str, Any], where: str, folder: pathlib.Path = pathlib.Path()
) -> _T:
    """Return the structure of a table.

    **Arguments:** `where`, its location, the prefix of every message; `folder` of its files.
    **Errors:** `ValueError` for the first unknown or missing key, or else the first wrong value.
    """
    try:
        table = schema.model_validate(values, context=folder)
    except ValidationError as error:
        problems = [_describe(problem, values, where) for problem in error.errors()]
        _, message = min(problems, key=lambda problem: not problem[0])
        raise ValueError(message) from None
    _locate(table, where)
    return table


def _describe(error: Any, values: Any, where: str) -> tuple[bool, str]:
    """Return whether an error of pydantic concerns keys, and its message."""
    location, cause = error["loc"], error.get("ctx", {}).get("error")
    is_key = isinstance(cause, _KeysError)
    words = [where] if where else []
    for k, step in enumerate(location if is_key else location[:-1]):
        values = values[step]
        if isinstance(step, int):
            words[-1] = _number(location[k - 1], step, values)
        else:
            words.append(f"[{step}]")
    if cause is not None:
        return is_key, ": ".join(filter(None, (", ".join(words), str(cause))))
    last = location[-1]
    if isinstance(last, int):
        text = f"`{location[-2]}` must be written as tables `[[{location[-2]}]]`"
        words.pop()
    else:
        text = f"`{last}` must be {'an array' if 'list' in error['type'] else 'a table'}"
    return False, f"{', '.join(words)}: {text}; got {error['input']!r}."


def _number(key: Any, index: int, values: Any) -> str:
    """Return the location of a table of an array, with its number and its name."""
    name = values.get("name") if isinstance(values, Mapping) else getattr(values, "name", None)
    return f"[[{key}]] {index + 1}" + (f" ({name!r})" if isinstance(name, str) else "")


def _locate(table: CaseTable, where: str) -> None:
    """Store its location in a table, and in the tables inside it."""
    table._where = where
    for key, value in (*table, *(table.model_extra or {}).items()):
        if isinstance(value, CaseTable):
            _locate(value, f"{where}, [{key}]")
        elif isinstance(value, dict):
            for name, part in value.items():
                if isinstance(part, CaseTable):
                    _locate(part, f"{where}, [{key}], [{name}]")
        elif isinstance(value, list):
            for k, part in enumerate(value):
                if isinstance(part, CaseTable):
                    _locate(part, f"{where}, {_number(key, k, part)}")


def read_toml(path: pathlib.Path) -> tuple[dict[str, Any], str]:
    """Return the content of a TOML file, and its text; `model = "arm.urdf"` becomes a table.

    **Errors:** `ValueError` for a file that is not TOML; `FileNotFoundError`.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no case {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    if isinstance(content.get("model"), str):
        content["model"] = {"file": content["model"]}
    return content, text
