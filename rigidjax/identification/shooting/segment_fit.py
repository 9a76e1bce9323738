"""Segments of runs as they are being fitted, on the host."""

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

# Damping relative to the columns of the Jacobian: at first, and by what it changes.
DAMPING, DOWN, UP, MOST = 1e-2, 0.2, 5.0, 1e12
# Steps of the solver that a segment may take at least.
_MIN_STEPS = 128


class SegmentFit:
    """The segments of a problem about their base states, which move along with the starts.

    **Attributes:** `problem`; `cut`; `independent` minimal velocities; `bases`, with axes (B, K) in
    front; `iterations`, how often all were simulated, and `failures`, how often one failed.
    """

    def __init__(
        self,
        problem: FitProblem,
        pieces: SegmentSamples,
        independent: tuple[int, ...],
        bases: State,
    ):
        how = problem.simulation
        # A trial that turns much too fast is to fail early: all segments wait for it.
        steps = max(_MIN_STEPS, 2 * how.max_steps // pieces.ts.shape[1])
        how = dataclasses.replace(how, max_steps=min(how.max_steps, steps))
        self.problem = dataclasses.replace(problem, simulation=how)
        self.cut, self.independent, self.bases = pieces, independent, bases
        self.iterations = self.failures = 0

    def linearise(self, at: SegmentUnknowns) -> Any:
        """All segments at these unknowns, on the host."""
        segments = Segments(self.problem, self.cut, self.bases, self.directions())
        found = jax.tree.map(np.asarray, linearise(segments, jax.tree.map(jnp.asarray, at)))
        self.iterations += 1
        self.failures += not found.okay.all()
        return found

    def directions(self) -> Directions:
        """Directions in which the starts are changed, at the bases."""
        model, shape = self.problem.model, self.cut.ts.shape[:2]
        f, k = num_rates(model), len(self.independent)
        if k == f:
            one = selection(self.independent, f, str(self.cut.ts.dtype))
            return jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape, *x.shape)), one)
        # The null space of the loops where the segment starts: no joint is singular in it.
        J = loop_rows_at(model.system, self.bases)
        basis = np.swapaxes(np.linalg.svd(J)[2], -1, -2)
        return Directions(jnp.asarray(basis[..., f - k :]), jnp.asarray(basis[..., : f - k]))

    def rebase(self, at: SegmentUnknowns, found: LinearSegments) -> SegmentUnknowns:
        """The same point with changes counted from the starts that were found."""
        self.bases = jax.tree.map(jnp.asarray, found.states)
        return eqx.tree_at(lambda u: u.change, at, np.zeros_like(at.change))

    def check_angles(self, found: LinearSegments) -> None:
        """`ValueError` if a force depends on turns that a segment does not know of."""
        system = self.problem.model.multibody
        for j in sorted({*system.force_joints} & {*system.tracked_joints}):
            if np.abs(found.final.angles[system.joints[j].name]).max() > np.pi:
                raise ValueError(
                    f"`identify(segments=...)`: a force depends on the angle of the joint "
                    f"{system.joints[j].name!r}, which goes beyond pi. A segment starts in "
                    "(-pi, pi] and does not know of earlier turns; fit without `segments`."
                )


def segment_costs(found: LinearSegments, within: Any = True) -> np.ndarray:
    """Sum of squares of every segment; infinite where the simulation fails."""
    return np.where(found.okay, np.sum(found.residuals**2, axis=2, where=within), np.inf)
