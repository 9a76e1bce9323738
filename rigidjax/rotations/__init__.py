"""Parametrizations of rotations with their null-space matrices.

Start with `base.py`, then `quaternion.py`; `so3.py` has the algebra, `guarded.py` the functions
with removable singularities.
May import nothing of mechanics.
"""

from . import so3 as so3
from .base import AbstractRotation as AbstractRotation, Rates as Rates
from .conformal import ConformalRotationVector as ConformalRotationVector
from .conversion import (
    compose as compose,
    convert as convert,
    half_rotation_matrix as half_rotation_matrix,
    inverse as inverse,
    rechart as rechart,
    relative as relative,
    spurrier_klumpp as spurrier_klumpp,
    update as update,
)
from .directors import Directors as Directors
from .euler_angles import EulerAngles as EulerAngles
from .euler_map import (
    euler_differential as euler_differential,
    euler_differential_inverse as euler_differential_inverse,
    euler_map as euler_map,
    euler_map_directors as euler_map_directors,
)
from .linear import LinearParameters as LinearParameters
from .minimal import AbstractMinimalRotation as AbstractMinimalRotation
from .quaternion import Quaternion as Quaternion
from .rodrigues import RodriguesParameters as RodriguesParameters
from .rotation_vector import RotationVector as RotationVector
