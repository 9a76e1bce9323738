"""Formulation whose runs start from joint coordinates and rates."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Args, Scalar
from ..checks import ArrayInput, as_leaf, check_finite, check_one_precision, float_array
from ..formulations.base import AbstractFormulation
from ..formulations.charts import Unknowns
from ..formulations.layout import Layout
from ..formulations.null_space import NullSpace
from ..joints.replacing import replace_fields
from ..mechanics import System
from ..mechanics.kinematics.forward import check_tree, reference_coordinates, state_of_joints
from ..mechanics.kinematics.poses import Twists
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import PreparedSystem, StackedSystem
from ..rotations.base import AbstractRotation
from ..state import State


class JointStart(AbstractFormulation):
    r"""Null-space coordinates of a tree that starts from given joint coordinates and rates.

    The joints place the bodies; the state passed to `simulate` or `identify` is not used. A fit of
    the start then has one parameter per degree of freedom, and geometry (joint points, positions of
    bodies in the reference configuration) can be fitted too, because the start follows it.
    Prescribed joints start at their motion.

    **Arguments:**

    - `system`: a `System` without loops.
    - `coordinates`: (f,), in the order of `rate_labels`, zero in the reference configuration:
      lengths (m) before angles (rad), a rotation vector (rad) for a ball joint, position (m) and
      rotation vector of the orientation for a free body or a `Free`, nothing for a prescribed
      joint. By default those of the reference configuration.
    - `rates`: (f,), m/s and rad/s; for a free body the velocity in space components and the angular
      velocity in body components. By default zero.

    Both arrays are leaves.

    **Errors:** `ValueError` for a system with loops, a wrong shape, and values that are not finite;
    `TypeError` unless `system` is a `System`.
    """

    model: NullSpace
    coordinates: Float[Array, " f"]
    rates: Float[Array, " f"]
    recharting: ClassVar[bool] = False
    needs_all_mass: ClassVar[bool] = False
    places_start: ClassVar[bool] = True

    def __init__(
        self, system: System, coordinates: ArrayInput | None = None, rates: ArrayInput | None = None
    ):
        if not isinstance(system, System):
            raise TypeError(f"`JointStart` takes a `System`; got {type(system).__name__}.")
        check_tree(system)
        self.model = NullSpace(system)
        shape = (sum(system.rates_of_bodies),)
        coordinates = reference_coordinates(system) if coordinates is None else coordinates
        given = {"coordinates": coordinates, "rates": rates}
        checked = {
            name: as_leaf(
                check_finite(
                    float_array(
                        jnp.zeros(shape) if value is None else value,
                        f"JointStart({name}=...)",
                        shape,
                    ),
                    f"JointStart({name}=...)",
                )
            )
            for name, value in given.items()
        }
        self.coordinates, self.rates = checked["coordinates"], checked["rates"]
        check_one_precision("`JointStart(...)`", [("the system", system), *checked.items()])

    @property
    def system(self) -> System:
        return self.model.multibody

    @property
    def arrays(self) -> PreparedSystem | StackedSystem | None:
        return self.model.arrays

    def separate_arrays(self) -> "JointStart":
        return replace_fields(self, model=self.model.separate_arrays())

    def prepare(self, t: Scalar | None = None) -> "JointStart":
        return replace_fields(self, model=self.model.prepare(t))

    @property
    def rotation(self) -> AbstractRotation:
        return self.model.rotation

    @property
    def layout(self) -> Layout:
        return self.model.layout

    @property
    def num_algebraic(self) -> int:
        return 0

    # The state follows from the joints. The check of the base class would reject it in a fit of the
    # geometry.
    def check_state(self, state: State | None, t: ArrayInput = 0.0) -> State:
        return self.place_start(state, t)

    def check_rows(self, state: State) -> State:
        return state

    def place_start(self, state: State | None, t: ArrayInput) -> State:
        t = jnp.asarray(t, self.coordinates.dtype)
        return state_of_joints(self.prepared_system, t, self.coordinates, self.rates)

    def motion(self, t: Scalar, y: Unknowns):
        return self.model.motion(t, y)

    def velocities_of(
        self,
        t: Scalar,
        poses: Poses,
        joint_frames: JointFrames,
        coordinates: Float[Array, "L n"],
        twists: Twists,
    ):
        return self.model.velocities_of(t, poses, joint_frames, coordinates, twists)

    def coordinate_rates(self, y: Unknowns, twists: Twists):
        return self.model.coordinate_rates(y, twists)

    def accelerations(self, t: Scalar, y: Unknowns):
        return self.model.accelerations(t, y)

    def vector_field(self, t: Scalar, y: Unknowns, args: Args = None) -> Unknowns:
        return self.model.vector_field(t, y, args)

    def project(self, t: Scalar, y: Unknowns) -> Unknowns:
        return self.model.project(t, y)

    def multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        return self.model.multipliers(t, y)
