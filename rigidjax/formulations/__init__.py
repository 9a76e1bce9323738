"""Ways to write the equations of motion.

Start with `null_space.py`, the default; `base.py` says what all formulations do, `coordinates.py`
how unknowns become poses and twists.
May import `mechanics` and lower layers.
"""

import typing as _typing

from ..deferred import deferred_names as _deferred_names
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

__getattr__, __dir__ = _deferred_names(
    __name__,
    {
        "EulerParameters": "euler_parameters",
        "Hamiltonian": "hamiltonian",
        "inverse_mass_matrix": "hamiltonian",
    },
)
