"""Ways to write the equations of motion."""

from .absolute import Absolute as Absolute
from .absolute_base import AbstractAbsolute as AbstractAbsolute
from .base import AbstractFormulation as AbstractFormulation
from .charts import Charted as Charted
from .euler_parameters import EulerParameters as EulerParameters
from .hamiltonian import Hamiltonian as Hamiltonian, inverse_mass_matrix as inverse_mass_matrix
from .minimal_rates import AbstractMinimalRates as AbstractMinimalRates
from .null_space import AbstractNullSpace as AbstractNullSpace, NullSpace as NullSpace
from .relative import Relative as Relative
