"""Bodies: masses, inertias and shapes, Euler's equations of one body.

Start with `body.py`; `inertia.py` says what a valid inertia is.
May import `rotations` and lower layers.
"""

from .body import Body as Body, unit_quaternion as unit_quaternion
from .euler_equations import (
    angular_momentum as angular_momentum,
    euler_equations as euler_equations,
    rotational_energy as rotational_energy,
    solve_inertia as solve_inertia,
)
from .fixed_point import FixedPointBody as FixedPointBody
from .frame import Frame as Frame
from .inertia import (
    NearestPhysical as NearestPhysical,
    euler_tensor as euler_tensor,
    inertia_from_euler_tensor as inertia_from_euler_tensor,
    inertia_tensor as inertia_tensor,
    nearest_physical as nearest_physical,
    principal_axes as principal_axes,
    principal_euler_values as principal_euler_values,
    rotate_inertia as rotate_inertia,
    shift_inertia as shift_inertia,
)
from .mass_properties import (
    AbstractMoment as AbstractMoment,
    ConstantMoment as ConstantMoment,
    LinearDrag as LinearDrag,
    MassProperties as MassProperties,
    QuadraticDrag as QuadraticDrag,
)
from .mesh import Mesh as Mesh
from .potentials import (
    AbstractPotential as AbstractPotential,
    AutodiffPotential as AutodiffPotential,
    AxialGravityPotential as AxialGravityPotential,
    GravityPotential as GravityPotential,
    moment_from_gradient as moment_from_gradient,
)
