"""Type aliases for arguments, attributes and results that many modules share.

Several of them stand for types that diffrax uses but does not export.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import diffrax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

T = TypeVar("T")

Scalar: TypeAlias = Float[Array, ""]
Flag: TypeAlias = Bool[Array, ""]
Count: TypeAlias = Int[Array, ""]
Vector: TypeAlias = Float[Array, " n"]
Matrix: TypeAlias = Float[Array, "n n"]
Vector3: TypeAlias = Float[Array, "3"]
Matrix3: TypeAlias = Float[Array, "3 3"]
# A real number as a user or diffrax passes it, and a time or duration in s.
Number: TypeAlias = int | float | Array | np.ndarray
Time: TypeAlias = int | float | Array | np.ndarray
# Whether the vector field jumps where a step starts: diffrax's `made_jump`.
Jump: TypeAlias = bool | Array | np.ndarray
# The unknowns of a run or their rates; the `args` of a vector field; the terms of a solver.
Y: TypeAlias = PyTree[Array]
Args: TypeAlias = PyTree
Terms: TypeAlias = PyTree[diffrax.AbstractTerm]
# The norm of an error.
Norm: TypeAlias = Callable[[PyTree[Array]], Scalar]
# Constructor of the dense output of a step, called with the ends of the step and `DenseInfo`.
InterpolationClass: TypeAlias = Callable[..., diffrax.AbstractLocalInterpolation]
DenseInfo: TypeAlias = dict[str, PyTree[Array]]
# Result of a solver's `step`: unknowns, error estimate, dense information, solver state, outcome.
StepResult: TypeAlias = tuple[Y, Y | None, DenseInfo, T, diffrax.RESULTS]
# Result of a controller's `adapt_step_size`: whether the step is accepted, start and end of the
# next step, whether a jump precedes it, controller state, outcome.
StepSizeResult: TypeAlias = tuple[bool | Array | np.ndarray, Time, Time, Jump, T, diffrax.RESULTS]
# Solutions at earlier steps that a multistep method uses, and the lengths of these steps; `None`
# for one-step methods.
History: TypeAlias = tuple[PyTree[Array], PyTree[Array]]
# Result of replaying a recorded step: unknowns, dense information, history for the next step.
ReplayResult: TypeAlias = tuple[Y, DenseInfo, History]
