"""Experiments that tell as much as they can."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn, Unpack

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from ...formulations import AbstractFormulation
from ...state import State
from ..checked_arguments import check_parameters
from ..parameters import Parameter, apply_starts
from ..prior_rows import check_no_prior
from ..simulation import Settings, Simulation, resolve_simulation
from ..transforms import Bounded
from .criteria import CRITERIA
from .excitation import Excitation, evaluate_excitation
from .maximise import Designer, maximise
from .plan import RunPlan, make_plan

# Part of the largest condition at which the information is regular.
_CLOSE_TO_SINGULAR = 0.1
# Coordinates between the bounds, -1 and 1, within which a search starts.
_INSIDE = 0.98


@dataclasses.dataclass(frozen=True, repr=False)
class Design:
    """A designed experiment.

    **Attributes:**

    - `model`, `state0`: the planned run with the best inputs in it.
    - `inputs`: their values by label.
    - `before`, `after`: the `Excitation` of the run as it was given and as designed; both in
      changes relative to the parameters of the run that was given.
    - `criterion`, its name; `value`, what was reached (see `rj.design_experiment`).
    - `values`: of every start, the run that was given first; `-inf` where the simulation fails
      at the start, or the information is singular there, to the accuracy of the derivatives.
    - `history`: the criterion after each iteration of the best start.
    - `converged`: whether the best start met the tolerance.
    - `notes`: what to know of the design, in words.
    """

    model: AbstractFormulation
    state0: State
    inputs: dict[str, float]
    before: Excitation
    after: Excitation
    criterion: str
    value: float
    values: np.ndarray
    history: np.ndarray
    converged: bool
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows = [f"{label} = {value:.6g}" for label, value in self.inputs.items()]
        rows += [
            f"{label}: standard deviation {before:.2g} -> {self.after.std[label]:.2g}"
            for label, before in self.before.std.items()
        ]
        if not self.converged:
            rows.append(
                "Not converged: the criterion was still growing after "
                f"{len(self.history)} iterations, or is not smooth there."
            )
        return "\n".join([*rows, *self.notes])


def design_experiment(
    model: AbstractFormulation,
    state0: State,
    ts: ArrayLike,
    noise: Mapping[Any, ArrayLike],
    parameters: Parameter | Sequence[Parameter],
    inputs: Parameter | Sequence[Parameter],
    *,
    criterion: Literal["D", "A", "E"] = "D",
    interest: Sequence[str] | None = None,
    num_starts: int = 8,
    seed: int = 0,
    max_iterations: int = 100,
    tolerance: float = 1e-6,
    simulation: Simulation | None = None,
    **settings: Unpack[Settings],
) -> Design:
    r"""Choose inputs so that a run tells as much as it can about parameters.

    BFGS on the criterion with its exact gradient (forward mode over the forward sensitivities),
    from several starts at once. The optimum holds for the values of the parameters in the model:
    design again when they are better known.

    The information is that of all parameters, with what their priors add. A run in which it is
    singular has no criterion: no step is taken to it, and a start there is given up. So a prior of
    what the run cannot tell, such as a scale, makes the others designable.

    Criteria are minus the logarithm of a standard deviation, relative to the parameters as they
    are given, with $F$ the information on relative changes of the $k$ parameters of interest:

    - `"D"`, $\frac{1}{2k}\log\det F$: the mean radius of the ellipsoid of uncertainty.
    - `"A"`, $-\frac12\log(\frac1k\mathrm{tr} F^{-1})$: the rms standard deviation.
    - `"E"`, $\frac12\log\lambda_{\min}(F)$: the largest radius. It is not smooth where the two
      smallest eigenvalues meet, as they often do at the optimum: BFGS may then stop short of it.

    **Arguments:**

    - `model`, `state0`, `ts`, `noise`, `parameters`, `simulation`, `settings`: as in
      `rj.excitation`.
    - `inputs`: what is chosen, leaves of the model (coefficients of an `rj.FourierSeries`), the
      start state or the sensors (where they sit), each a `Parameter` with the transformation
      `rj.identification.Bounded`. An input may be a parameter too, as unknown start rates are. A
      `start` replaces what the model holds.
    - `criterion`: `"D"`, `"A"` or `"E"`.
    - `interest`: names of parameters, or labels of components, that matter; `None` for all. The
      others are unknown too, and are eliminated (Schur complement).
    - `num_starts`: the run as given and as many others, drawn uniformly within the bounds with
      `seed`.
    - `max_iterations`, `tolerance`: of BFGS, relative and absolute.

    **Returns:** a `Design`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, for a start outside of
    its bounds, for an input with a prior, and if no start determines the parameters;
    `SimulationError`.
    **Source:** Pronzato, Automatica 44(2), 2008 (criteria); Swevers et al., IEEE Trans. Robotics
    and Automation 13(5), 1997 (Fourier series).
    """
    if criterion not in CRITERIA:
        raise ValueError(
            f"`design_experiment(criterion=...)` must be one of {list(CRITERIA)}; got "
            f"{criterion!r}."
        )
    if num_starts < 1 or max_iterations < 1:
        raise ValueError(
            "`design_experiment(num_starts=..., max_iterations=...)` must be at least 1; got "
            f"{num_starts} and {max_iterations}."
        )
    how = resolve_simulation("design_experiment", simulation, settings)
    plan = make_plan("design_experiment", model, state0, ts, noise, parameters, how)
    inputs = check_parameters("design_experiment", inputs, "inputs")
    plan = dataclasses.replace(plan, experiment=apply_starts(inputs, plan.experiment))
    _check_inputs(plan, inputs)
    order, count = _order_components(plan, interest)
    before = evaluate_excitation(plan, plan.experiment)
    scale = plan.scale()
    references = tuple(p.leaf(plan.experiment) for p in inputs)
    designer = Designer(plan, inputs, references, jnp.asarray(scale), order, count, criterion)
    found = maximise(designer, _starts(designer, num_starts, seed), max_iterations, tolerance)
    values = np.where(np.asarray(found.feasible), np.asarray(found.value), -np.inf)
    best = int(np.argmax(values))
    if values[best] == -np.inf:
        _raise_infeasible(before)
    experiment = designer.experiment(found.u[best])
    after = evaluate_excitation(plan, experiment, scale)
    return Design(
        model=experiment.model,
        state0=experiment.state0,
        inputs=_label_inputs(inputs, experiment),
        before=before,
        after=after,
        criterion=criterion,
        value=float(values[best]),
        values=values,
        history=np.asarray(found.history[best])[: int(found.iterations[best])],
        converged=bool(found.converged[best]),
        notes=_notes(after, float(plan.resolution)),
    )


def _check_inputs(plan: RunPlan, inputs: Sequence[Parameter]) -> None:
    check_no_prior("design_experiment(inputs=...)", inputs)
    for p in inputs:
        if not isinstance(p.transform, Bounded):
            raise ValueError(
                f"The input {p.name!r} needs bounds: `rj.Parameter({p.name!r}, where, "
                "rj.identification.Bounded(lower, upper))`; more of an input always tells more."
            )
        if not all(np.isfinite(x).all() for x in (p.transform.lower, p.transform.upper)):
            raise ValueError(
                f"The input {p.name!r} needs two finite bounds; got {p.transform.lower} and "
                f"{p.transform.upper}."
            )
        leaf = np.asarray(p.leaf(plan.experiment))
        p.component_labels(leaf.shape)
        try:
            p.transform.admissible(leaf)
        except ValueError as error:
            raise ValueError(
                f"The start of the input {p.name!r} cannot be used: {error}."
            ) from error


def _notes(after: Excitation, tolerance: float) -> tuple[str, ...]:
    if after.condition * tolerance < _CLOSE_TO_SINGULAR:
        return ()
    return (
        f"The designed run is close to one whose information is singular (condition "
        f"{after.condition:.2g}): one combination of the parameters is so sharp that the others "
        "can hardly be told from errors of the derivatives. Compare its standard deviations with "
        'those of `criterion="A"`, which asks for every one; plan a shorter run, or give a prior.',
    )


def _raise_infeasible(given: Excitation) -> NoReturn:
    """Say why no start will do, by the run as it was given."""
    if given.identifiability.identifiable:
        raise ValueError(
            "`design_experiment`: the run that was given determines the parameters, but the "
            "criterion has no finite derivative by the inputs there, nor at another start. Start "
            "away from bounds, or try more starts."
        )
    raise ValueError(
        "`design_experiment`: the parameters are not determined at any start. "
        f"{given.identifiability.messages[0]} Plan for fewer parameters, give a `prior` of them, "
        "choose other inputs, or try more starts."
    )


def _order_components(plan: RunPlan, interest: Sequence[str] | None) -> tuple[tuple[int, ...], int]:
    """Fitted components, those of interest last, and how many these are."""
    table = plan.component_table()
    labels, chosen = table.labels, table.fitted_indices.tolist()
    if interest is None:
        return tuple(chosen), len(chosen)
    wanted = {interest} if isinstance(interest, str) else set(interest)
    names = [plan.parameters[g].name for g in table.groups]
    unknown = wanted - {labels[k] for k in chosen} - {names[k] for k in chosen}
    if unknown or not wanted:
        raise ValueError(
            "`design_experiment(interest=...)` takes names of parameters or labels out of "
            f"{[labels[k] for k in chosen]}; got {interest!r}."
        )
    matters = [k for k in chosen if labels[k] in wanted or names[k] in wanted]
    return tuple([k for k in chosen if k not in matters] + matters), len(matters)


def _starts(designer: Designer, num_starts: int, seed: int) -> jnp.ndarray:
    """Angles of the inputs as given, and of others drawn uniformly within their bounds.

    Those that are given on a bound start inside: there the sine has no derivative.
    """
    given = np.concatenate(
        [
            p.transform.coordinates(jnp.asarray(leaf))
            for p, leaf in zip(designer.inputs, designer.references, strict=True)
        ]
    )
    given = np.clip(given, -_INSIDE, _INSIDE)
    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, (num_starts - 1, len(given)))
    return jnp.asarray(np.arcsin(np.concatenate([given[None], drawn])), given.dtype)


def _label_inputs(inputs, experiment):
    out = {}
    for p in inputs:
        leaf = p.leaf(experiment)
        labels, values = p.component_labels(leaf.shape), np.asarray(leaf).reshape(-1)
        out.update({labels[i]: float(values[i]) for i in p.transform.fitted(leaf.shape)})
    return out
