"""What is measured, and how a state predicts it: one file for each sensor."""

from .attitude import Attitude as Attitude
from .base import AbstractSensor as AbstractSensor, body_row as body_row
from .gyroscope import Gyroscope as Gyroscope
