"""Ways to write the equations of motion."""

import typing as _typing
from importlib import import_module as _import_module

from .absolute import Absolute as Absolute
from .absolute_base import AbstractAbsolute as AbstractAbsolute
from .base import AbstractFormulation as AbstractFormulation
from .charts import Charted as Charted
from .minimal_rates import AbstractMinimalRates as AbstractMinimalRates
from .null_space import AbstractNullSpace as AbstractNullSpace, NullSpace as NullSpace
from .relative import Relative as Relative

if _typing.TYPE_CHECKING:
    from .euler_parameters import EulerParameters as EulerParameters
    from .hamiltonian import Hamiltonian as Hamiltonian, inverse_mass_matrix as inverse_mass_matrix

# Names that are imported at first use, and their modules.
_HOMES = {
    "EulerParameters": "euler_parameters",
    "Hamiltonian": "hamiltonian",
    "inverse_mass_matrix": "hamiltonian",
}


def __getattr__(name: str) -> _typing.Any:
    if name in _HOMES:
        return getattr(_import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
