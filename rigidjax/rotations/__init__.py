"""Parametrizations of SO(3), and the algebra of rotations. Knows no physics."""

from . import so3 as so3
from .base import AbstractRotation as AbstractRotation, Rates as Rates
from .conformal import ConformalRotationVector as ConformalRotationVector
from .conversion import (
    compose as compose,
    convert as convert,
    inverse as inverse,
    rechart as rechart,
    relative as relative,
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
from .half_rotation import half_rotation_matrix as half_rotation_matrix
from .hemisphere import (
    hemisphere_mass_matrix as hemisphere_mass_matrix,
    hemisphere_null_space as hemisphere_null_space,
    hemisphere_quaternion as hemisphere_quaternion,
)
from .linear import LinearParameters as LinearParameters
from .minimal import AbstractMinimalRotation as AbstractMinimalRotation
from .orthonormalising import (
    gram_schmidt as gram_schmidt,
    logarithm_projection as logarithm_projection,
)
from .plane import (
    plane_coordinates as plane_coordinates,
    plane_matrix as plane_matrix,
    plane_null_space as plane_null_space,
)
from .quaternion import Quaternion as Quaternion
from .rodrigues import RodriguesParameters as RodriguesParameters
from .rotation_vector import RotationVector as RotationVector
from .spurrier_klumpp import (
    quaternion_by_signs as quaternion_by_signs,
    spurrier_klumpp as spurrier_klumpp,
)
