"""Extrapolation methods of variable order."""

from .odex import Odex as Odex
from .seulex import Seulex as Seulex
