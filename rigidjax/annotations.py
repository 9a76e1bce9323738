"""What arguments, attributes and results are, in words that many parts have in common.

Some are those of diffrax, whose own names for them are private. Methods that implement those of a
base class leave to it what their arguments are.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import diffrax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

T = TypeVar("T")

# A number, a truth value, a count; numbers for n unknowns, flattened; a square matrix.
Scalar: TypeAlias = Float[Array, ""]
Flag: TypeAlias = Bool[Array, ""]
Count: TypeAlias = Int[Array, ""]
Vector: TypeAlias = Float[Array, " n"]
Matrix: TypeAlias = Float[Array, "n n"]
# A real number as a user or diffrax gives it; a time or a length of time, s.
Number: TypeAlias = int | float | Array | np.ndarray
Time: TypeAlias = int | float | Array | np.ndarray
# Whether there is a jump where a step starts: `True`, a projection alone.
Jump: TypeAlias = bool | Array | np.ndarray
# The unknowns of a run, or their rates; what is handed through to a vector field; terms.
Y: TypeAlias = PyTree[Array]
Args: TypeAlias = PyTree
Terms: TypeAlias = PyTree[diffrax.AbstractTerm]
# The norm of an error.
Norm: TypeAlias = Callable[[PyTree[Array]], Scalar]
# What makes the dense output of a step, of its ends and of this information.
InterpolationClass: TypeAlias = Callable[..., diffrax.AbstractLocalInterpolation]
DenseInfo: TypeAlias = dict[str, PyTree[Array]]
# Result of a solver's `step`: unknowns, their error, dense information, state of the solver.
Stepped: TypeAlias = tuple[Y, Y | None, DenseInfo, T, diffrax.RESULTS]
# Result of a controller's `adapt_step_size`: whether the step is kept, the ends of the next one,
# whether that starts with a jump, state of the controller.
Adapted: TypeAlias = tuple[bool | Array | np.ndarray, Time, Time, Jump, T, diffrax.RESULTS]
# Earlier unknowns of a multistep method, and the lengths of its steps; `None` for other methods.
History: TypeAlias = tuple[PyTree[Array], PyTree[Array]]
# Result of a solver's `replay`: unknowns, dense information, history for the next step.
Replayed: TypeAlias = tuple[Y, DenseInfo, History]
