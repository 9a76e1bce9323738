"""The problem of a fit at its optimum, for computations that continue from there."""

import dataclasses

import numpy as np

from ..data.measurements import Runs
from ..experiment.parameters import ComponentTable, Parameter
from .evaluation import Evaluation, evaluate
from .least_squares import Minimum, Search
from .problem import FitProblem


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The least-squares problem of a fit and its minimum.

    **Attributes:** `problem`; `runs`, the data with the weights of the fit; `search`, the options;
    `minimum`; `table` of all components, with their values at the minimum.
    """

    problem: FitProblem
    runs: Runs
    search: Search
    minimum: Minimum
    table: ComponentTable

    def evaluate(self) -> Evaluation:
        """Return residuals and derivatives at the minimum, with all rows of the Jacobian."""
        return evaluate(self.problem, self.minimum.shared, self.minimum.per_run)

    def jacobian(self) -> np.ndarray:
        """Return the Jacobian (M, k) of the weighted residuals in the fitted components.

        Rows are those of `Evaluation.residuals`, run by run; those of priors are left out.
        """
        return self.evaluate().component_jacobian()[:, self.table.fitted_indices]

    def parameter_of(self, label: str) -> Parameter:
        """Return the parameter to which a component with this label belongs."""
        return self.problem.parameter_of(int(self.table.groups[self.table.labels.index(label)]))
