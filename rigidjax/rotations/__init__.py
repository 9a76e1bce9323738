"""Parametrizations of SO(3), and the algebra of rotations. Knows no physics."""

from . import so3 as so3
from .base import AbstractRotation as AbstractRotation, Rates as Rates
from .directors import Directors as Directors
from .euler_map import (
    euler_differential as euler_differential,
    euler_differential_inverse as euler_differential_inverse,
    euler_map as euler_map,
    euler_map_directors as euler_map_directors,
)
from .quaternion import Quaternion as Quaternion
from .spurrier_klumpp import spurrier_klumpp as spurrier_klumpp
