"""Ways to write the equations of motion."""

from .absolute import Absolute as Absolute
from .base import AbstractFormulation as AbstractFormulation
from .charts import Charted as Charted
from .null_space import NullSpace as NullSpace
