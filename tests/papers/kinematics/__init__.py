"""Kinematics of general motion: screws of displacements and of twists, moving frames."""

from .axis_angle import (
    angular_acceleration as angular_acceleration,
    angular_velocity as angular_velocity,
    axis_angle_rates as axis_angle_rates,
)
from .displacement import FiniteScrew as FiniteScrew, finite_screw as finite_screw
from .frames import (
    absolute_angular_acceleration as absolute_angular_acceleration,
    absolute_angular_velocity as absolute_angular_velocity,
    absolute_variation as absolute_variation,
    angular_acceleration_variation as angular_acceleration_variation,
    angular_velocity_variation as angular_velocity_variation,
    crossed_velocity_variation as crossed_velocity_variation,
    point_velocity as point_velocity,
    relative_angular_acceleration as relative_angular_acceleration,
    relative_angular_velocity as relative_angular_velocity,
)
from .instantaneous_screw import (
    InstantaneousScrew as InstantaneousScrew,
    axis_rate as axis_rate,
    instantaneous_screw as instantaneous_screw,
    instantaneous_screw_rate as instantaneous_screw_rate,
)
