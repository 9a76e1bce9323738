"""Parameters of a case, `[[parameter]]`, and their paths, which are resolved without `eval`."""

from collections.abc import Sequence
from typing import Any

from ... import identification
from ...formulations.leaves import find_leaf
from ...identification import (
    AbstractPrior,
    AbstractTransform,
    Experiment,
    Parameter,
    Unconstrained,
    start_state,
)
from ...identification.data.units import UNITS, canonical
from ...identification.experiment.parameters import insert_start_change, materialise_parameters
from ...identification.starts.named_parameters import find_named_parameters
from ..base import choices
from ..base.choices import find_kinds, option_name
from .schema import (
    CaseTable,
    Flag,
    Integers,
    Numbers,
    Text,
    Texts,
    TypedTable,
    build,
    check_keys,
    locate_errors,
)

# The `path` that selects `rj.identification.start_state`, and the keys that go with it.
_START_STATE = "start_state"
_START_KEYS = ("name", "path", "prior", "positions", "rates", "per_run")


class ParameterTable(CaseTable):
    """`[[parameter]]`: arguments of `Parameter`, of its transform, or of `start_state`.

    Without `path` the name is that of an array, such as `hinge.damping`.
    """

    name: Text
    path: Text = ""
    tied: Texts = ()
    per_run: Flag | None = None
    start: Numbers = None
    unit: Text = ""
    labels: Texts | None = None
    prior: TypedTable | None = None
    transform: Text = "free"
    which: Integers | None = None
    fixed: Texts | None = None
    lower: Numbers = None
    upper: Numbers = None
    positions: Flag | None = None
    rates: Flag | None = None

    def parameter(self, experiment: Experiment) -> Parameter:
        """Return the parameter; paths are resolved in an experiment."""
        prior = None
        if self.prior is not None:
            prior = self.prior.build(self.prior.kind(_by_option(AbstractPrior)))
        if self.path == _START_STATE:
            return self._start_state(experiment, prior)
        with locate_errors(self.where):
            known = type(self).model_fields.keys() - {"positions", "rates"}
            check_keys(self.given_values(), known)
            names = [self.path or self.name, *self.tied]
            found = [find_leaf(name, experiment) for name in names if self.path]
            where, tied = (found[0], found[1:]) if found else (None, [])
        limits = {k: v for k, v in self.given_values().items() if k in _OF_TRANSFORMS}
        transform = None
        if self.path or limits or "transform" in self.model_fields_set:
            kinds = {"free": Unconstrained, **_by_option(AbstractTransform)}
            kind = kinds[self.call(choices.pick, "`transform`", self.transform, kinds)]
            transform = build(kind, limits, self.where)
        self._check_unit()
        with locate_errors(self.where):
            parameter = Parameter(
                self.name if self.path else names, where, transform, tied=tied,
                per_run=self.per_run, start=self.start, unit=self.unit, labels=self.labels,
                prior=prior,
            )  # fmt: skip
            model, sensors = experiment.model, experiment.sensors
            (parameter,) = find_named_parameters([parameter], model, sensors)
            started = insert_start_change(
                materialise_parameters(experiment, [parameter]), [parameter]
            )
            shape = parameter.leaf(started).shape
            parameter.component_labels(shape)
            if prior is not None:
                prior.check_leaf(self.name, parameter.transform, shape)
        return parameter

    def _check_unit(self) -> None:
        name = self.call(canonical, self.unit)
        for units in UNITS.values():
            if units.get(name, 1.0) != 1.0:
                si_unit = next(iter(units))
                self.fail(
                    "`unit` is a label, and estimates are in SI units and radians: write "
                    f"{si_unit!r} for {self.unit!r}, and `start` in {si_unit!r}."
                )

    def _start_state(self, experiment: Experiment, prior: Any) -> Parameter:
        with locate_errors(self.where):
            check_keys(self.given_values(), _START_KEYS)
            options = self.given_values("name", "path", "prior")
            parameter = start_state(
                experiment.model, experiment.state0, name=self.name, prior=prior, **options
            )
            if prior is not None:
                shape = parameter.leaf(insert_start_change(experiment, [parameter])).shape
                prior.check_leaf(self.name, parameter.transform, shape)
        return parameter


_OF_TRANSFORMS = ("which", "fixed", "lower", "upper")


def read_parameters(
    top: CaseTable, tables: Sequence[ParameterTable], experiment: Experiment
) -> tuple[Parameter, ...]:
    """Read the parameters; their paths are resolved in an experiment.

    **Errors:** `ValueError` naming the table.
    """
    if not tables:
        top.fail("there is no [[parameter]]; add one for each quantity to be fitted.")
    return tuple(table.parameter(experiment) for table in tables)


def _by_option(base: type) -> dict[str, Any]:
    kinds = find_kinds(base, identification)
    return {option_name(kind): kind for kind in kinds.values()}
