"""Time integrators for diffrax."""

from .after_step import Projected as Projected, Recharted as Recharted
from .bdf import BDF as BDF
from .dae_term import dae_term as dae_term
from .extrapolation import Odex as Odex, Seulex as Seulex
from .newton import SimplifiedNewton as SimplifiedNewton
from .predictive import PredictiveController as PredictiveController
from .proposed import ProposedStepController as ProposedStepController
from .radau import AbstractRadau as AbstractRadau, Radau5 as Radau5
from .terms import ImplicitTerm as ImplicitTerm, MassMatrixTerm as MassMatrixTerm
from .unrolled import Unrolled as Unrolled, unrolled as unrolled
