"""Texts that identify Python objects in every process, for executables on disk.

A class or function of this package, of the standard library or of an installed package is
identified by its name and the version of the package; one of a user by its code, its closure and
the globals that it uses. Other objects, and functions of a user that read files, the time or random
numbers, are not identified.
"""

import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import pathlib
import sys
import types
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

# Packages whose code is determined by their version. For the first one, this package, the content
# of its files counts instead.
VERSIONED_PACKAGES = (
    "rigidjax",
    "jax",
    "jaxlib",
    "numpy",
    "equinox",
    "diffrax",
    "lineax",
    "optimistix",
)
_SITES = {"site-packages", "dist-packages"}
_PACKAGE = __name__.split(".")[0]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
# Attributes of a class that its other attributes determine, or that say nothing about it.
_OF_CLASS = frozenset((
    "__module__", "__dict__", "__weakref__", "__doc__", "__annotations__", "__qualname__",
    "__firstlineno__", "__static_attributes__", "_abc_impl", "__abstractmethods__",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__signature__",
    "__parameters__", "__annotate__", "__annotate_func__", "__annotations_cache__",
))  # fmt: skip
# Names in a user's function with which it may depend on more than its code: files, the environment,
# the time, random numbers, code that is made at run time.
_IMPURE = frozenset((
    "open", "input", "load", "loads", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap",
    "environ", "getenv", "random", "default_rng", "time", "now", "today", "perf_counter",
    "monotonic", "eval", "exec", "compile", "__import__", "import_module", "globals", "locals",
    "subprocess", "socket", "urlopen",
))  # fmt: skip


class _NotIdentified(Exception):
    """Raised for an object that may differ in another process."""


class ArrayType:
    """Type of an array argument, in place of the array."""

    def __init__(self, text: str):
        self.text = text


def identify(value: Any) -> str | None:
    """Return a text that two objects share only if their traces are equal, `None` without one."""
    try:
        return _Identifier().text(value)
    except _NotIdentified:
        return None


@functools.cache
def package_versions() -> list[str]:
    """Return the packages that determine emitted code and traces, with their versions."""
    return [
        f"{name} {importlib.metadata.version(name)}"
        for name in ("llvmlite", *VERSIONED_PACKAGES[1:])
    ]


@functools.cache
def package_digest(started: float) -> str | None:
    """Return a digest of the code of this package; `None` if a file is younger than the process.

    **Arguments:** `started`, the time at which the package was imported, s.
    """
    folder, out = pathlib.Path(__file__).parents[2], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if path.stat().st_mtime > started:
            return None  # The file may have changed since it was imported.
        content = path.read_bytes()
        out.update(f"{path.relative_to(folder)} {len(content)}:".encode() + content)
    return out.hexdigest()


@functools.cache
def _library(module: str | None) -> str | None:
    """Return the package of a module with its version, `None` for a module of a user.

    **Arguments:** `module`, its name, `None` for functions that `exec` defines without one.
    """
    top = (module or "__main__").split(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return "python"
    if top == _PACKAGE:
        return top
    path = getattr(sys.modules.get(top), "__file__", None)
    if path is None or not _SITES.intersection(pathlib.Path(path).parts):
        return None
    try:
        return f"{top} {importlib.metadata.version(top)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def _library_name(value: Any) -> str | None:
    """Return the name of a class or function under which its module has it, in a library."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or _library(module) is None:
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    is_found = found is value or getattr(found, "__wrapped__", None) is value
    is_class = isinstance(value, type) and "<locals>" not in name
    return f"{_library(module)}:{module}.{name}" if is_found or is_class else None


class _Identifier:
    def __init__(self):
        # Objects whose texts are being made, which may refer to themselves.
        self.open: dict[int, int] = {}

    def text(self, value: Any) -> str:
        """Return the text of an object."""
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, ArrayType):
            return value.text
        if value is dataclasses.MISSING:
            return "missing"
        if id(value) in self.open:
            return f"again {self.open[id(value)]}"
        self.open[id(value)] = len(self.open)
        try:
            return self._text(value)
        finally:
            del self.open[id(value)]

    def _text(self, value: Any) -> str:
        kind = type(value)
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            return _array_text(value)
        if isinstance(value, np.dtype):
            return f"dtype {value.str}"
        if isinstance(value, tuple | list):
            return f"{self._class(kind)}({','.join(map(self.text, value))})"
        if isinstance(value, dict):
            items = sorted((self.text(k), self.text(v)) for k, v in value.items())
            return f"{self._class(kind)}{items}"
        if isinstance(value, frozenset | set):
            return f"{kind.__name__}{sorted(map(self.text, value))}"
        if isinstance(value, enum.Enum):
            return f"{self._class(kind)}.{value.name}"
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.ModuleType):
            if _library(value.__name__) is None:
                raise _NotIdentified(f"the module {value.__name__}")
            return f"module {_library(value.__name__)} {value.__name__}"
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return f"method {self.text(value.__func__)} {self.text(value.__self__)}"
        if isinstance(value, functools.partial):
            return f"partial {self.text((value.func, value.args, value.keywords))}"
        if isinstance(value, property):
            return f"property {self.text((value.fget, value.fset))}"
        if isinstance(value, staticmethod | classmethod):
            return f"{kind.__name__} {self.text(value.__func__)}"
        if isinstance(value, functools.cached_property):
            return f"cached_property {self.text(value.func)}"
        if (name := _library_name(value)) is not None:
            return name
        if dataclasses.is_dataclass(value):
            fields = {x.name: getattr(value, x.name, None) for x in dataclasses.fields(value)}
            return f"{self._class(kind)} {self.text(fields)}"
        if _library(kind.__module__) is not None and (inner := _inner_function(value)) is not None:
            return f"{self._class(kind)} {self.text(inner)}"
        raise _NotIdentified(f"an object of {kind.__module__}.{kind.__qualname__}")

    def _class(self, kind: type) -> str:
        if (name := _library_name(kind)) is not None or kind.__module__ == "builtins":
            return name or kind.__name__
        texts = [kind.__qualname__, *map(self._class, kind.__bases__)]
        for name, value in sorted(vars(kind).items()):
            is_made = (
                isinstance(value, types.FunctionType) and value.__code__.co_filename[:1] == "<"
            )
            is_made = is_made and value.__module__ != "__main__"
            if name not in _OF_CLASS and not is_made and not _is_slot(value):
                texts.append(f"{name}={self.text(value)}")
        if dataclasses.is_dataclass(kind):
            texts += [
                self.text((x.name, x.default, x.default_factory, dict(x.metadata)))
                for x in dataclasses.fields(kind)
            ]
        return f"class({','.join(texts)})"

    def _function(self, function: types.FunctionType) -> str:
        if (name := _library_name(function)) is not None:
            return name
        texts = [self._code(function.__code__)]
        cells = function.__closure__ or ()
        names = function.__code__.co_freevars
        for name, cell in zip(names, cells, strict=True):
            try:
                content = cell.cell_contents
            except ValueError as error:
                raise _NotIdentified(f"the variable {name}, which has no value yet") from error
            texts.append(f"{name}={self.text(content)}")
        texts.append(self.text((function.__defaults__, function.__kwdefaults__)))
        if _library(function.__module__) is None:
            known, used = function.__globals__, sorted(_names_of(function.__code__))
            impure = [name for name in used if name in _IMPURE or name.startswith("read")]
            if impure:
                raise _NotIdentified(f"a function that uses {impure[0]}")
            for name in used:
                if name in known:
                    texts.append(f"{name}={self.text(known[name])}")
        return f"function({','.join(texts)})"

    def _code(self, code: types.CodeType) -> str:
        constants = [
            self._code(x) if isinstance(x, types.CodeType) else self.text(x) for x in code.co_consts
        ]
        body = hashlib.sha256(code.co_code).hexdigest()
        return f"code {body} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"


def _names_of(code: types.CodeType) -> set[str]:
    """Return the names that a function and the functions within it may look up as globals."""
    inner = (x for x in code.co_consts if isinstance(x, types.CodeType))
    return set(code.co_names).union(*map(_names_of, inner))


def _array_text(value: Any) -> str:
    if isinstance(value, Tracer):
        raise _NotIdentified("a traced value")
    if isinstance(value, jax.Array) and not jax.numpy.issubdtype(value.dtype, np.number):
        if value.dtype != bool:
            raise _NotIdentified(f"an array of {value.dtype}")
    array = np.ascontiguousarray(value)
    if array.dtype.kind not in "fiubcSU":
        raise _NotIdentified(f"an array of {array.dtype}")
    weak = getattr(value, "weak_type", False)
    content = hashlib.sha256(array.tobytes()).hexdigest()
    return f"array {type(value).__name__} {array.dtype.str} {array.shape} {weak} {content}"


def _inner_function(value: Any) -> Any:
    """Return the function inside an object of a library that wraps one, and the object's state."""
    for name in ("__wrapped__", "fun", "method", "fn"):
        inner = getattr(value, name, None)
        if inner is not None and inner is not value:
            state = vars(value) if hasattr(value, "__dict__") else {}
            return inner, {k: v for k, v in state.items() if v is not inner and k != "__doc__"}
    return None


def _is_slot(value: Any) -> bool:
    return isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)
