"""Cache keys of jaxprs that are equal in every process, for kernels that are kept on disk.

A key is a digest of everything that the emitter reads: equations, their parameters, constants and
types. A jaxpr with a parameter of an unsupported type has no key, and is emitted in every process.
"""

import dataclasses
import enum
import functools
import hashlib
import pathlib
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var

from ..passes.analysis import expand, is_expanded
from ..passes.inlining import CALLS
from ..primitives.expansions import EXPANSIONS
from ..primitives.registry import RULES
from . import disk as disk
from .codegen import host_processor
from .identity import VERSIONED_PACKAGES, package_versions
from .thread_pool import max_threads

# Parameters that the emitter does not read.
_IGNORED_PARAMS = ("sharding", "out_sharding")
_PLAIN_TYPES = (type(None), bool, int, float, complex, str, bytes, np.dtype, np.generic)


class _NoCacheKey(Exception):
    """Raised for a jaxpr with a value that may differ in another process."""


def compute_cache_key(closed: ClosedJaxpr, *signature: object) -> str | None:
    """Return the key of a jaxpr with a signature, on this processor; `None` if it has none."""
    if disk.folder() is None:
        return None
    try:
        texts = [_JaxprDigests().digest(closed), _value_text(signature, None)]
    except _NoCacheKey:
        return None
    settings: Any = jax.config
    precision = settings.jax_enable_x64, settings.jax_default_matmul_precision
    context = *precision, max_threads(), *host_processor(), *package_versions()
    return disk.digest(*texts, *map(repr, context), _compiler_digest())


@functools.cache
def _compiler_digest() -> str:
    """Return a digest of the compiler's code, on which emitted code depends."""
    folder, out = pathlib.Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        out.update(f"{path.relative_to(folder)} {len(content)}:".encode() + content)
    return out.hexdigest()


class _JaxprDigests:
    """Digests of a jaxpr and its sub-jaxprs, each computed once."""

    def __init__(self):
        # The jaxprs are kept alive, because their addresses are the keys.
        self.digests: dict[int, tuple[str, object]] = {}

    def digest(self, jaxpr: ClosedJaxpr | Jaxpr) -> str:
        """Return the digest of a jaxpr."""
        if id(jaxpr) not in self.digests:
            self.digests[id(jaxpr)] = self._compute_digest(jaxpr), jaxpr
        return self.digests[id(jaxpr)][0]

    def _compute_digest(self, closed: ClosedJaxpr | Jaxpr) -> str:
        jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
        consts = closed.consts if isinstance(closed, ClosedJaxpr) else []
        numbers: dict[Var, int] = {}
        lines = [_value_text(tuple(map(_as_numpy, consts)), None)]

        def define(variables):
            for var in variables:
                numbers[var] = len(numbers)
            return ",".join(_type_text(var.aval) for var in variables)

        def read(atom):
            if isinstance(atom, Literal):
                return f"{_value_text(_as_numpy(atom.val), None)}:{_type_text(atom.aval)}"
            return str(numbers[atom])

        lines.append(f"{define(jaxpr.constvars)};{define(jaxpr.invars)}")
        for equation in jaxpr.eqns:
            args = ",".join(map(read, equation.invars))
            effects = ",".join(sorted(map(str, equation.effects)))
            lines.append(
                f"{self._function_text(equation)} {args} {effects} {define(equation.outvars)}"
            )
        lines.append(",".join(map(read, jaxpr.outvars)))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def _function_text(self, equation: JaxprEqn) -> str:
        """Return a text that determines the function of an equation."""
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            return f"call {self.digest(params[CALLS[name]])}"
        _check_primitive(equation.primitive)
        if name not in RULES and is_expanded(equation.primitive):
            # The digest of the compiler's files does not cover the JAX code of the primitive.
            return f"{name} {self.digest(expand(equation))}"
        params = {k: v for k, v in params.items() if k not in _IGNORED_PARAMS}
        return f"{name} {_value_text(params, self)}"


def _check_primitive(primitive: Primitive) -> None:
    """Raise `_NoCacheKey` unless the code of a primitive belongs to a versioned package.

    A primitive of a user may have other code under the same name in another process.
    """
    for function in (RULES.get(primitive.name), EXPANSIONS.get(primitive.name)):
        if function is not None:
            return _check_function(function)
    return _check_function(primitive.impl)


def _check_function(function: Any) -> None:
    while isinstance(function, functools.partial):
        function = function.func
    if not _is_versioned(function):
        raise _NoCacheKey


def _is_versioned(definition: Any) -> bool:
    return (getattr(definition, "__module__", None) or "").split(".")[0] in VERSIONED_PACKAGES


def _as_numpy(value: Any) -> np.ndarray:
    if isinstance(value, Tracer):
        raise _NoCacheKey
    if not isinstance(value, np.ndarray | np.generic | jax.Array | bool | int | float | complex):
        raise _NoCacheKey
    if not isinstance(value, bool | int | float | complex) and value.dtype.kind not in "fiubc":
        raise _NoCacheKey  # such as the keys of random numbers
    return np.asarray(value)


@functools.lru_cache(1 << 12)
def _type_text(aval: Any) -> str:
    if not isinstance(aval, ShapedArray):
        return type(aval).__name__
    return f"{aval.dtype.name}{list(aval.shape)}{'w' if aval.weak_type else ''}"


def _value_text(value: Any, digests: _JaxprDigests | None) -> str:
    """Return a text that determines a parameter; sub-jaxprs are allowed if there are `digests`."""
    kind = type(value)
    if isinstance(value, _PLAIN_TYPES):
        return f"{kind.__name__} {value!r}"
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype.str} {value.shape} {content}"
    if isinstance(value, tuple | list):
        return f"{kind.__qualname__}({','.join(_value_text(item, digests) for item in value)})"
    if isinstance(value, dict):
        pairs = sorted((str(k), _value_text(v, digests)) for k, v in value.items())
        return f"{{{','.join(f'{k}={v}' for k, v in pairs)}}}"
    if isinstance(value, frozenset):
        return f"set({','.join(sorted(_value_text(item, digests) for item in value))})"
    if isinstance(value, ClosedJaxpr | Jaxpr) and digests is not None:
        return digests.digest(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value.name}"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"dtype {np.dtype(value).name}"
    if isinstance(value, ShapedArray):
        return _type_text(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _is_versioned(kind):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{kind.__qualname__}{_value_text(fields, digests)}"
    if _is_record(kind):
        return f"{kind.__qualname__}{_value_text(vars(value), digests)}"
    raise _NoCacheKey


def _is_record(kind: type) -> bool:
    """Return whether the attributes of an object determine it, as for the trees of JAX 0.12.

    This holds for Python classes without slots.
    """
    bases = kind.__mro__[:-1]
    return all(
        _is_versioned(base)
        and not base.__module__.startswith("jaxlib")
        and "__slots__" not in vars(base)
        for base in bases
    )
