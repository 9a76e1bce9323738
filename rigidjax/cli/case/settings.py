"""Settings of a case: `[method]`, `[run]`, `[intervals]` and `[output]`."""

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from ... import identification
from ...identification import AbstractLoss
from ...identification.fit.options import METHODS
from ...identification.statistics.estimate_covariance import METHODS as COVARIANCE_METHODS
from .. import choices
from ..choices import find_kinds
from .schema import (
    Count,
    File,
    Flag,
    Integer,
    Kind,
    OutputTable,
    Positive,
    Table,
    Text,
    Tolerance,
    TupleOfTexts,
    one_of,
)

# Number of samples of each chain, if a case does not give it.
SAMPLES = 1000


class RunTable(Table):
    """`[run]`: end time, number of samples and settings of a simulation."""

    t1: Positive | None = None
    samples: Annotated[int, Field(ge=2), Kind("2 or more")] | None = None
    solver: Text | None = None
    dt: Positive | None = None
    rtol: Tolerance | None = None
    atol: Tolerance | None = None
    projection: Flag | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings that are given, with the solver instead of its name."""
        settings = self.given_values()
        if self.solver is not None:
            settings["solver"] = self.call(choices.make_solver, self.solver)
        return settings


class MethodTable(Table):
    """`[method]`: options of `rj.identify`."""

    solver: Text | None = None
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
    loss: Text | None = None
    noise: Annotated[str | dict[str, Any], Kind("a text or a table")] | None = None
    covariance: Annotated[str, one_of(("sandwich", *COVARIANCE_METHODS))] | None = None
    method: Annotated[str, one_of(METHODS)] | None = None
    process_noise: dict[str, Any] | None = None

    def options(self) -> dict[str, Any]:
        """Return the options that are given, with objects instead of their names."""
        options = self.given_values()
        if self.solver is not None:
            options["solver"] = self.call(choices.make_solver, self.solver)
            if not choices.is_adaptive(options["solver"]):
                self.fail("`solver` must have an error estimate, which controls its steps.")
        if self.loss is not None:
            kinds = find_kinds(AbstractLoss, identification)
            options["loss"] = kinds[self.call(choices.pick, "`loss`", self.loss, kinds)]()
        if self.process_noise is not None:
            noise = self.process_noise.items()
            options["process_noise"] = {key: self._deviations(key, value) for key, value in noise}
        return options

    def run_settings(self) -> dict[str, Any]:
        """Return the options that are also settings of a run."""
        keys = ("solver", "rtol", "atol", "projection", "max_steps")
        return {key: value for key, value in self.options().items() if key in keys}

    def _deviations(self, key: str, value: Any) -> Any:
        """Return standard deviations, `None` for the text "estimated"."""
        if isinstance(value, list):
            return [self._deviations(key, entry) for entry in value]
        if value == "estimated":
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        self.fail(f'`{key}` must be a number, "estimated" or an array of them; got {value!r}.')


class Outputs(OutputTable):
    """`[output]` of a fit."""

    netcdf: File | None = None
    html: File | None = None
    report: File | None = None


class IntervalMethods(NamedTuple):
    """Methods of intervals: parameters with a profile, samples of each chain.

    `profile` is `None` for all parameters; `posterior` is 0 if it is not requested; `seed` is that
    of the posterior.
    """

    profile: tuple[str, ...] | None = ()
    posterior: int = 0
    seed: int = 0


class IntervalsTable(Table):
    """`[intervals]`: methods of intervals besides the linearised ones."""

    profile: Annotated[bool | TupleOfTexts, Kind("true, false or an array of labels")] = ()
    posterior: Annotated[int, Field(ge=2), Kind("2 or more")] = 0
    seed: Annotated[int, Field(ge=0), Kind("0 or more")] = 0

    def methods(self) -> IntervalMethods:
        """Return the methods."""
        profile = self.profile
        if isinstance(profile, bool):
            profile = None if profile else ()
        return IntervalMethods(profile, self.posterior, self.seed)


def add_methods(
    methods: IntervalMethods, names: tuple[str, ...], profiles: tuple[str, ...]
) -> IntervalMethods:
    """Return the methods of a case with those of the command line.

    **Arguments:** `names` of methods, any of "profile" and "posterior"; `profiles`, parameters
    whose profile is requested.
    **Errors:** `ValueError` for another name.
    """
    unknown = [name for name in names if name not in ("profile", "posterior")]
    if unknown:
        raise ValueError(
            f"`--intervals {unknown[0]}` must be profile or posterior; it may be repeated."
        )
    known = methods.profile
    return methods._replace(
        profile=None if known is None or "profile" in names else (*known, *profiles),
        posterior=methods.posterior or ("posterior" in names) * SAMPLES,
    )
