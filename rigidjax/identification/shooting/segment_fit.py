"""State of a fit of segments, with arrays in host memory."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...initial.local_coordinates import Directions, loop_rows_at, num_rates, selection
from ...state import State
from ..fit.problem import FitProblem
from .segments import LinearSegments, Segments, SegmentSamples, SegmentUnknowns, linearise

# Initial damping relative to the columns of the Jacobian, its factors after good and bad steps, and
# its maximum.
DAMPING, DOWN, UP, MOST = 1e-2, 0.2, 5.0, 1e12
# Minimum of `max_steps` of a segment.
_MIN_STEPS = 128


class SegmentFit:
    """The segments of a problem and their base states, which move along with the starts.

    **Attributes:** `problem`; `cut`; `independent`, indices of independent generalised velocities;
    `bases`, with leading axes (B, K); `iterations`, the number of simulations of all segments, and
    `failures`, how many of them failed.
    """

    def __init__(
        self,
        problem: FitProblem,
        pieces: SegmentSamples,
        independent: tuple[int, ...],
        bases: State,
    ):
        how = problem.simulation
        # All segments wait for the slowest: a trial with far too fast motion should fail early.
        steps = max(_MIN_STEPS, 2 * how.max_steps // pieces.ts.shape[1])
        how = dataclasses.replace(how, max_steps=min(how.max_steps, steps))
        self.problem = dataclasses.replace(problem, simulation=how)
        self.cut, self.independent, self.bases = pieces, independent, bases
        self.iterations = self.failures = 0

    def linearise(self, unknowns: SegmentUnknowns) -> Any:
        """Return all segments linearised at these unknowns, as NumPy arrays."""
        segments = Segments(self.problem, self.cut, self.bases, self.directions())
        linear = jax.tree.map(np.asarray, linearise(segments, jax.tree.map(jnp.asarray, unknowns)))
        self.iterations += 1
        self.failures += not linear.okay.all()
        return linear

    def directions(self) -> Directions:
        """Return the directions in which the starts are changed, at the base states."""
        model, shape = self.problem.model, self.cut.ts.shape[:2]
        f, k = num_rates(model), len(self.independent)
        if k == f:
            single = selection(self.independent, f, str(self.cut.ts.dtype))
            return jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape, *x.shape)), single)
        # The null space of the loops at the start of the segment is regular at every joint.
        J = loop_rows_at(model.system, self.bases)
        basis = np.swapaxes(np.linalg.svd(J)[2], -1, -2)
        return Directions(jnp.asarray(basis[..., f - k :]), jnp.asarray(basis[..., : f - k]))

    def rebase(self, unknowns: SegmentUnknowns, linear: LinearSegments) -> SegmentUnknowns:
        """Move the base states to the current starts; return the unknowns with zero changes."""
        self.bases = jax.tree.map(jnp.asarray, linear.states)
        return eqx.tree_at(lambda u: u.change, unknowns, np.zeros_like(unknowns.change))

    def check_angles(self, linear: LinearSegments) -> None:
        """Raise `ValueError` if a force depends on revolutions, which a segment does not know."""
        system = self.problem.model.multibody
        for j in sorted({*system.force_joints} & {*system.tracked_joints}):
            if np.abs(linear.final.angles[system.joints[j].name]).max() > np.pi:
                raise ValueError(
                    f"`identify(segments=...)`: a force depends on the angle of the joint "
                    f"{system.joints[j].name!r}, which goes beyond pi. A segment starts in "
                    "(-pi, pi] and does not know of earlier turns; fit without `segments`."
                )


def segment_costs(linear: LinearSegments, within: np.ndarray | bool = True) -> np.ndarray:
    """Return the sum of squares of every segment; infinite where the simulation fails."""
    return np.where(linear.okay, np.sum(linear.residuals**2, axis=2, where=within), np.inf)
