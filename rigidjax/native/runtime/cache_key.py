"""Names of programs that are the same in every process, so that kernels kept on disk are found.

A name is a digest of all that the emitter reads: equations, their parameters, constants, types.
What has a parameter of a kind that is not known here has no name, and is emitted anew.
"""

import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import pathlib
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from ..lowering.expansions import EXPANSIONS
from ..lowering.registry import RULES
from ..passes.analysis import expand, is_expanded
from ..passes.inlining import CALLS
from . import disk as disk
from .codegen import host_processor
from .thread_pool import max_threads

# Parameters that kernels do not read.
_IGNORED_PARAMS = ("sharding", "out_sharding")
# Packages whose code is that of their versions; of our own it is the files that count.
_VERSIONED_PACKAGES = (
    "rigidjax",
    "jax",
    "jaxlib",
    "numpy",
    "equinox",
    "diffrax",
    "lineax",
    "optimistix",
)
_PLAIN_TYPES = (type(None), bool, int, float, complex, str, bytes, np.dtype, np.generic)


class _NoCacheKey(Exception):
    """A program has something that is not known to be the same in another process."""


def compute_cache_key(closed: ClosedJaxpr, *signature: object) -> str | None:
    """The name of a program with a signature, on this processor; `None` if it has none."""
    if disk.folder() is None:
        return None
    try:
        names = [_JaxprDigests().name(closed), _value_text(signature, None)]
    except _NoCacheKey:
        return None
    settings: Any = jax.config
    precision = settings.jax_enable_x64, settings.jax_default_matmul_precision
    around = *precision, max_threads(), *host_processor(), *_package_versions()
    return disk.digest(*names, *map(repr, around), _compiler_digest())


@functools.cache
def _package_versions():
    return [
        f"{name} {importlib.metadata.version(name)}"
        for name in ("llvmlite", *_VERSIONED_PACKAGES[1:])
    ]


@functools.cache
def _compiler_digest():
    """Return a digest of the compiler's code, on which emitted code depends."""
    folder, out = pathlib.Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        out.update(f"{path.relative_to(folder)} {len(content)}:".encode() + content)
    return out.hexdigest()


class _JaxprDigests:
    """Names a program, each of the programs inside of it once."""

    def __init__(self):
        # With the programs, so that addresses stay their own.
        self.names: dict[int, tuple[str, object]] = {}

    def name(self, program: ClosedJaxpr | Jaxpr) -> str:
        """A digest of a program."""
        if id(program) not in self.names:
            self.names[id(program)] = self._named(program), program
        return self.names[id(program)][0]

    def _named(self, program):
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        consts = program.consts if isinstance(program, ClosedJaxpr) else []
        numbers: dict[Var, int] = {}
        lines = [_value_text(tuple(map(_as_numpy, consts)), None)]

        def new(variables):
            for var in variables:
                numbers[var] = len(numbers)
            return ",".join(_type_text(var.aval) for var in variables)

        def read(atom):
            if isinstance(atom, Literal):
                return f"{_value_text(_as_numpy(atom.val), None)}:{_type_text(atom.aval)}"
            return str(numbers[atom])

        lines.append(f"{new(jaxpr.constvars)};{new(jaxpr.invars)}")
        for equation in jaxpr.eqns:
            read_here = ",".join(map(read, equation.invars))
            effects = ",".join(sorted(map(str, equation.effects)))
            lines.append(
                f"{self._function(equation)} {read_here} {effects} {new(equation.outvars)}"
            )
        lines.append(",".join(map(read, jaxpr.outvars)))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def _function(self, equation):
        """What an equation computes of its arguments."""
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            return f"call {self.name(params[CALLS[name]])}"
        _check_primitive(equation.primitive)
        if name not in RULES and is_expanded(equation.primitive):
            # Code outside the compiler, which the digest of its files does not cover.
            return f"{name} {self.name(expand(equation))}"
        params = {k: v for k, v in params.items() if k not in _IGNORED_PARAMS}
        return f"{name} {_value_text(params, self)}"


def _check_primitive(primitive):
    """What others wrote may have other code of the same name in another process."""
    for written in (RULES.get(primitive.name), EXPANSIONS.get(primitive.name)):
        if written is not None:
            return _check_function(written)
    return _check_function(primitive.impl)


def _check_function(function: Any):
    while isinstance(function, functools.partial):
        function = function.func
    if not _is_versioned(function):
        raise _NoCacheKey


def _is_versioned(thing):
    return (getattr(thing, "__module__", None) or "").split(".")[0] in _VERSIONED_PACKAGES


def _as_numpy(value):
    if isinstance(value, Tracer):
        raise _NoCacheKey
    if not isinstance(value, np.ndarray | np.generic | jax.Array | bool | int | float | complex):
        raise _NoCacheKey
    if not isinstance(value, bool | int | float | complex) and value.dtype.kind not in "fiubc":
        raise _NoCacheKey  # keys of random numbers, say
    return np.asarray(value)


@functools.lru_cache(1 << 12)
def _type_text(aval):
    if not isinstance(aval, ShapedArray):
        return type(aval).__name__
    return f"{aval.dtype.name}{list(aval.shape)}{'w' if aval.weak_type else ''}"


def _value_text(value: Any, programs: _JaxprDigests | None) -> str:
    """The text of a parameter."""
    kind = type(value)
    if isinstance(value, _PLAIN_TYPES):
        return f"{kind.__name__} {value!r}"
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype.str} {value.shape} {content}"
    if isinstance(value, tuple | list):
        return f"{kind.__qualname__}({','.join(_value_text(one, programs) for one in value)})"
    if isinstance(value, dict):
        pairs = sorted((str(k), _value_text(v, programs)) for k, v in value.items())
        return f"{{{','.join(f'{k}={v}' for k, v in pairs)}}}"
    if isinstance(value, frozenset):
        return f"set({','.join(sorted(_value_text(one, programs) for one in value))})"
    if isinstance(value, ClosedJaxpr | Jaxpr) and programs is not None:
        return programs.name(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value.name}"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"dtype {np.dtype(value).name}"
    if isinstance(value, ShapedArray):
        return _type_text(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _is_versioned(kind):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{kind.__qualname__}{_value_text(fields, programs)}"
    if _is_record(kind):
        return f"{kind.__qualname__}{_value_text(vars(value), programs)}"
    raise _NoCacheKey


def _is_record(kind):
    """Whether objects are what their attributes say, as trees of JAX 0.12 are: of Python classes
    alone, without slots."""
    bases = kind.__mro__[:-1]
    return all(
        _is_versioned(base)
        and not base.__module__.startswith("jaxlib")
        and "__slots__" not in vars(base)
        for base in bases
    )
