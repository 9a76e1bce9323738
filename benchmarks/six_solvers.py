"""Work against error of all formulations with the six solvers of Lang's Table 3.

Examples A, B and the slow variant of C, with projection after each step. Work is the number of
evaluations of the right-hand side in stages, extrapolation and Newton iterations together; columns
of Jacobians are counted separately.
"""

from typing import Any

import _common as common
import two_bodies
import work_precision
from work_precision import PAIRS, SIX, TOLERANCES, print_claims

NAMES = tuple(name for pair in PAIRS.values() for name in pair)
SLOW = "C slow, 4 s"


def case_rows(label: str, solver: str, name: str, tolerances) -> list[dict[str, Any]]:
    """Return rows of one formulation, solver and example, by tolerance."""
    if label == SLOW:
        case = two_bodies.CASES[SLOW]
        reference = two_bodies.end(SLOW, case)
        return [
            two_bodies.measure(label, case, reference, name, solver, True, tolerance)
            for tolerance in tolerances
        ]
    problem = work_precision.PROBLEMS[label]()
    reference = problem.reference([problem.t1])
    return [
        work_precision.measure(label, problem, reference, name, solver, tolerance, True)
        for tolerance in tolerances
    ]


if __name__ == "__main__":
    options = common.arguments(__doc__)
    common.double_precision()
    rows = []
    for label in ("A",) if options.smoke else ("A", "B, 0.1", SLOW):
        for solver in ("Radau5",) if options.smoke else SIX:
            for name in NAMES[:1] if options.smoke else NAMES:
                rows += case_rows(label, solver, name, TOLERANCES[: 1 if options.smoke else None])
                print(f"{label:12} {solver:7} {name:24} {rows[-1]['error']:.1e}", flush=True)
            common.write("six_solvers", rows, options.smoke)
    if not options.smoke:
        print_claims(rows)
