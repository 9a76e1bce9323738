"""Differentiable simulation of rigid bodies and multibody systems in JAX."""

import gc as _gc
import typing as _typing

from . import interrupts
from .deferred import deferred_names as _deferred_names

# Before the slow imports below, so that Ctrl-C works during them; only in rigidjax's own command.
# The `cli` package is too late for that, because importing it imports this module first.
if interrupts.is_console_command():
    interrupts.exit_on_signals()
if interrupts.shows_help():
    # Ends the process. Help needs nothing of the slow imports below.
    from .cli import main as _main

    _main()

# A new process has no garbage, and looking for it would take a tenth of the time of the imports.
_collects_garbage = _gc.isenabled()
_gc.disable()
try:
    from . import projection as projection, solvers as solvers
    from ._version import __version__ as __version__
    from .adjoints.any_mode import AnyMode as AnyMode
    from .bodies import (
        AutodiffPotential as AutodiffPotential,
        AxialGravityPotential as AxialGravityPotential,
        Body as Body,
        ConstantMoment as ConstantMoment,
        FixedPointBody as FixedPointBody,
        Frame as Frame,
        GravityPotential as GravityPotential,
        LinearDrag as LinearDrag,
        MassProperties as MassProperties,
        Mesh as Mesh,
        QuadraticDrag as QuadraticDrag,
    )
    from .control.transition import Transition as Transition, TransitionRecord as TransitionRecord
    from .forces import (
        AbstractActuator as AbstractActuator,
        Bushing as Bushing,
        Cable as Cable,
        DCMotor as DCMotor,
        Drag as Drag,
        FixedTendon as FixedTendon,
        Gravity as Gravity,
        LaggedMotor as LaggedMotor,
        Motor as Motor,
        PIController as PIController,
        PIDController as PIDController,
        PointForce as PointForce,
        PositionServo as PositionServo,
        Potential as Potential,
        Rotor as Rotor,
        Spring as Spring,
        Torque as Torque,
        TorsionSpring as TorsionSpring,
    )
    from .formulations import (
        Absolute as Absolute,
        Charted as Charted,
        NullSpace as NullSpace,
        Relative as Relative,
    )
    from .formulations.view import SystemView as SystemView
    from .joints import (
        Constraint as Constraint,
        Coupling as Coupling,
        Cylindrical as Cylindrical,
        Distance as Distance,
        Free as Free,
        Friction as Friction,
        Planar as Planar,
        PolynomialCoupling as PolynomialCoupling,
        Prismatic as Prismatic,
        Revolute as Revolute,
        Screw as Screw,
        Spherical as Spherical,
        Stop as Stop,
        Universal as Universal,
        VelocityConstraint as VelocityConstraint,
        Weld as Weld,
    )
    from .mechanics import (
        System as System,
        joint_states as joint_states,
        rate_labels as rate_labels,
    )
    from .native import make_all_old as _make_all_old
    from .results import RESULTS as RESULTS, SimulationError as SimulationError
    from .rotations import (
        ConformalRotationVector as ConformalRotationVector,
        Directors as Directors,
        EulerAngles as EulerAngles,
        LinearParameters as LinearParameters,
        Quaternion as Quaternion,
        RodriguesParameters as RodriguesParameters,
        RotationVector as RotationVector,
        convert as convert,
    )
    from .signals.controllers import SampledController as SampledController
    from .signals.inputs import Input as Input
    from .signals.signal import Signal as Signal
    from .signals.switches import Switch as Switch
    from .simulate.simulate import simulate as simulate
    from .simulate.solution import Solution as Solution
    from .state import State as State

    _make_all_old()
finally:
    if _collects_garbage:
        _gc.enable()

if _typing.TYPE_CHECKING:
    from . import (
        ensembles as ensembles,
        io as io,
        models as models,
        plotting as plotting,
        problems as problems,
        viewer as viewer,
    )
    from .analysis.equilibrium import equilibrium as equilibrium
    from .analysis.linearisation import Linearisation as Linearisation, linearize as linearize
    from .cli.case import read_case as read_case
    from .control.contacts import JointStop as JointStop, PlaneContact as PlaneContact
    from .control.held_joints import Lock as Lock, Release as Release
    from .control.restitution import Restitution as Restitution
    from .ensembles import Ensemble as Ensemble, ensemble as ensemble
    from .exporting import export as export
    from .formulations import EulerParameters as EulerParameters, Hamiltonian as Hamiltonian
    from .identification import (
        Accelerometer as Accelerometer,
        Attitude as Attitude,
        Delayed as Delayed,
        Design as Design,
        Excitation as Excitation,
        Fit as Fit,
        Gyroscope as Gyroscope,
        IdentificationError as IdentificationError,
        JointCoordinate as JointCoordinate,
        JointRate as JointRate,
        JointTorque as JointTorque,
        Measurements as Measurements,
        Parameter as Parameter,
        Position as Position,
        ReactionForce as ReactionForce,
        ReactionMoment as ReactionMoment,
        Simulation as Simulation,
        compare_models as compare_models,
        design_experiment as design_experiment,
        excitation as excitation,
        identify as identify,
        sensitivity as sensitivity,
    )
    from .initial import (
        JointStart as JointStart,
        consistent_state as consistent_state,
        jointed_state as jointed_state,
    )
    from .signals.fourier import FourierSeries as FourierSeries
    from .stepping.gym import GymEnvironment as GymEnvironment
    from .stepping.stepper import Stepper as Stepper, StepperState as StepperState
    from .viewer import view as view


_OF_IDENTIFICATION = (
    "Accelerometer",
    "Attitude",
    "Delayed",
    "Design",
    "Excitation",
    "Fit",
    "Gyroscope",
    "IdentificationError",
    "JointCoordinate",
    "JointRate",
    "JointTorque",
    "Measurements",
    "Parameter",
    "Position",
    "ReactionForce",
    "ReactionMoment",
    "Simulation",
    "compare_models",
    "design_experiment",
    "excitation",
    "identify",
    "sensitivity",
)
# Together they take longer to import than the rest of the package.
__getattr__, __dir__ = _deferred_names(
    __name__,
    {
        **dict.fromkeys(
            ("ensembles", "identification", "io", "models", "plotting", "problems", "viewer")
        ),
        **dict.fromkeys(_OF_IDENTIFICATION, "identification"),
        **dict.fromkeys(("Ensemble", "ensemble"), "ensembles"),
        "equilibrium": "analysis.equilibrium",
        **dict.fromkeys(("Linearisation", "linearize"), "analysis.linearisation"),
        **dict.fromkeys(("JointStop", "PlaneContact"), "control.contacts"),
        **dict.fromkeys(("Lock", "Release"), "control.held_joints"),
        "Restitution": "control.restitution",
        **dict.fromkeys(("JointStart", "consistent_state", "jointed_state"), "initial"),
        **dict.fromkeys(("EulerParameters", "Hamiltonian"), "formulations"),
        "FourierSeries": "signals.fourier",
        "GymEnvironment": "stepping.gym",
        **dict.fromkeys(("Stepper", "StepperState"), "stepping.stepper"),
        "export": "exporting",
        "read_case": "cli.case",
        "view": "viewer",
    },
)
