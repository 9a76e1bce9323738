"""Settings of a case: `[method]`, `[run]`, `[intervals]` and `[output]`."""

from collections.abc import Sequence
from typing import Annotated, Any

from diffrax import AbstractSolver
from pydantic import Field

from ... import identification
from ...identification import AbstractLoss
from ...identification.search.options import METHODS
from ...identification.statistics.estimate_covariance import METHODS as COVARIANCE_METHODS
from ..base import choices
from ..base.choices import find_kinds
from .schema import (
    CaseTable,
    Count,
    File,
    Flag,
    Integer,
    Kind,
    OutputTable,
    Positive,
    Tolerance,
    TupleOfTexts,
    one_of,
)

# Number of samples of each chain, if a case does not give it.
SAMPLES = 1000


def _adaptive_solver(name: str, value: str) -> AbstractSolver:
    solver = choices.make_solver(value)
    if not choices.is_adaptive(solver):
        raise ValueError(f"`{name}` must have an error estimate, which controls its steps.")
    return solver


def _loss(name: str, value: str) -> AbstractLoss:
    kinds = find_kinds(AbstractLoss, identification)
    return kinds[choices.pick(f"`{name}`", value, kinds)]()


def _deviations(name: str, value: Any) -> Any:
    """Return standard deviations by name, `None` for the text "estimated"."""
    if isinstance(value, dict):
        return {key: _deviations(key, part) for key, part in value.items()}
    if isinstance(value, list):
        return [_deviations(name, entry) for entry in value]
    if value == "estimated":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f'`{name}` must be a number, "estimated" or an array of them; got {value!r}.')


class RunTable(CaseTable):
    """`[run]`: end time, number of samples and settings of a simulation."""

    t1: Positive | None = None
    samples: Annotated[int, Field(ge=2), Kind("2 or more")] | None = None
    solver: Annotated[str, Kind("a text", lambda _, name: choices.make_solver(name))] | None = None
    dt: Positive | None = None
    rtol: Tolerance | None = None
    atol: Tolerance | None = None
    projection: Flag | None = None


class MethodTable(CaseTable):
    """`[method]`: options of `rj.identify`."""

    solver: Annotated[str, Kind("a text", _adaptive_solver)] | None = None
    rtol: Tolerance | None = None
    atol: Tolerance | None = None
    projection: Flag | None = None
    max_steps: Count | None = None
    max_iterations: Count | None = None
    tolerance: Positive | None = None
    horizons: Annotated[list[Any], Kind("an array")] | None = None
    segments: Count | None = None
    starts: Count | None = None
    start_spread: Positive | None = None
    seed: Integer | None = None
    loss: Annotated[str, Kind("a text", _loss)] | None = None
    noise: Annotated[str | dict[str, Any], Kind("a text or a table")] | None = None
    covariance: Annotated[str, one_of(("sandwich", *COVARIANCE_METHODS))] | None = None
    method: Annotated[str, one_of(METHODS)] | None = None
    process_noise: Annotated[dict[str, Any], Kind("a table", _deviations)] | None = None

    def run_settings(self) -> dict[str, Any]:
        """Return the options that are also settings of a run."""
        keys = ("solver", "rtol", "atol", "projection", "max_steps")
        return {key: value for key, value in self.given_values().items() if key in keys}


class Outputs(OutputTable):
    """`[output]` of a fit."""

    netcdf: File | None = None
    html: File | None = None
    report: File | None = None


class IntervalMethods(CaseTable):
    """`[intervals]`: methods of intervals besides the linearised ones.

    `profile`, labels of parameters with a profile, or true for all; `posterior`, the number of
    samples of each chain, 0 if it is not requested; `seed` of the posterior.
    """

    profile: Annotated[bool | TupleOfTexts, Kind("true, false or an array of labels")] = ()
    posterior: Annotated[int, Field(ge=2), Kind("2 or more")] = 0
    seed: Annotated[int, Field(ge=0), Kind("0 or more")] = 0

    def add(self, names: Sequence[str], profiles: Sequence[str]) -> "IntervalMethods":
        """Return the methods of a case with those of the command line.

        **Arguments:** `names` of methods, any of "profile" and "posterior"; `profiles`, parameters
        whose profile is requested.
        **Errors:** `ValueError` for another name.
        """
        for name in names:
            if name not in ("profile", "posterior"):
                raise ValueError(
                    f"`--intervals {name}` must be profile or posterior; it may be repeated."
                )
        known = self.profile
        profile = (*(known or ()), *profiles) if known is not True else known
        posterior = self.posterior or ("posterior" in names) * SAMPLES
        update = {"profile": True if "profile" in names else profile, "posterior": posterior}
        return self.model_copy(update=update)
