"""Optimal design of experiments."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from ...annotations import Flag, Scalar
from ...formulations import AbstractFormulation
from ...formulations.choice import ModelInput
from ...persistent_jit import persistent_jit
from ...results import RESULTS
from ...state import State
from ..experiment.checked_arguments import check_no_prior, check_parameters
from ..experiment.parameters import (
    Experiment,
    Parameter,
    apply_starts,
    leaves_from_coordinates,
    replace_leaves,
)
from ..experiment.simulation import Settings, Simulation, resolve_simulation
from ..starts.named_parameters import find_named_parameters
from ..transforms import Bounded
from .excitation import Excitation, evaluate_excitation
from .plan import RunPlan, make_plan


def d_criterion(R: Float[Array, "k k"]) -> Scalar:
    r"""Return $\frac{1}{2k} \log\det F$: minus the log of the mean radius of the ellipsoid."""
    return jnp.mean(jnp.log(jnp.abs(jnp.diag(R))))


def a_criterion(R: Float[Array, "k k"]) -> Scalar:
    r"""Return $-\frac12 \log(\frac1k \mathrm{tr}\,F^{-1})$: minus the log rms deviation."""
    inverse = solve_triangular(R, jnp.eye(len(R), dtype=R.dtype))
    return -0.5 * jnp.log(jnp.sum(inverse**2) / len(R))


def e_criterion(R: Float[Array, "k k"]) -> Scalar:
    r"""Return $\frac12 \log\lambda_{\min}(F)$: minus the log largest radius of the ellipsoid."""
    return jnp.log(jnp.linalg.svd(R, compute_uv=False)[-1])


# Each criterion is minus the logarithm of a relative standard deviation: larger is better, and an
# increase of one divides the standard deviation by e.
CRITERIA: dict[str, Callable[[Array], Array]] = {
    "D": d_criterion,
    "A": a_criterion,
    "E": e_criterion,
}


def information_factor(
    jacobian: Float[Array, "N p"], count: int, tolerance: Any
) -> tuple[Float[Array, "k k"], Flag]:
    """Return the triangular $R$ with $R^T R$ the information on the last `count` parameters.

    The other parameters are unknown too: $R^T R$ is the Schur complement, the inverse of the block
    of the covariance, computed without forming the whole information matrix.

    **Returns:** $R$, and whether the information on all parameters is regular: no singular value of
    the Jacobian is below `tolerance` times the largest. Otherwise $R$ consists of errors of the
    derivatives, and its determinant has no meaning.
    """
    R = jnp.linalg.qr(jacobian, mode="r")
    values = jnp.linalg.svd(jax.lax.stop_gradient(R), compute_uv=False)
    return R[-count:, -count:], values[-1] > tolerance * values[0]


# Fraction of the largest regular condition number above which a note warns.
_CLOSE_TO_SINGULAR = 0.1
# Largest coordinate of a start; the bounds are -1 and 1.
_INSIDE = 0.98


@dataclasses.dataclass(frozen=True, repr=False)
class Design:
    """A designed experiment.

    **Attributes:**

    - `model`, `state0`: the planned run with the best inputs.
    - `inputs`: their values by label.
    - `before`, `after`: the `Excitation` of the given run and of the designed one, both in changes
      relative to the parameters of the given run.
    - `criterion`, its name; `value`, its best value (see `rj.design_experiment`).
    - `values`: for every start, the given run first; `-inf` if the simulation fails at the start,
      or if the information is singular there within the accuracy of the derivatives.
    - `history`: the criterion after each iteration of the best start.
    - `converged`: whether the best start met the tolerance.
    - `notes`: warnings about the design.
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
    model: ModelInput,
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
    r"""Choose inputs so that a run is as informative about parameters as possible.

    BFGS maximises the criterion with its exact gradient (forward mode over the forward
    sensitivities), from several starts at once. The optimum holds for the parameter values in the
    model: repeat the design when they are known better.

    The information is that of all parameters, including their priors. A run with singular
    information has no criterion: a step to it is rejected, and a start there is given up. A prior
    on a combination that the run cannot determine, such as a scale, therefore makes the other
    parameters designable.

    Criteria are minus the logarithm of a standard deviation, relative to the given parameters,
    where $F$ is the information on relative changes of the $k$ parameters of interest:

    - `"D"`, $\frac{1}{2k}\log\det F$: the mean radius of the ellipsoid of uncertainty.
    - `"A"`, $-\frac12\log(\frac1k\mathrm{tr} F^{-1})$: the rms standard deviation.
    - `"E"`, $\frac12\log\lambda_{\min}(F)$: the largest radius. It is not smooth where the two
      smallest eigenvalues meet, as they often do at the optimum, and BFGS may then stop short of
      it.

    **Arguments:**

    - `model`, `state0`, `ts`, `noise`, `parameters`, `simulation`, `solver`, `rtol`, `atol`, `dt`,
      `projection`, `adjoint`, `max_steps`, `backend`: as in `rj.excitation`.
    - `inputs`: the chosen quantities: leaves of the model (coefficients of an `rj.FourierSeries`),
      the start state or the sensors (their positions), each a `Parameter` with the transformation
      `rj.identification.Bounded`. An input may also be one of `parameters`, such as unknown start
      rates. A `start` replaces the value in the model.
    - `criterion`: `"D"`, `"A"` or `"E"`.
    - `interest`: names of parameters, or labels of components, of interest; `None` for all. The
      others are unknown too, and are eliminated (Schur complement).
    - `num_starts`: number of starts: the given run, and others drawn uniformly within the bounds.
    - `seed`: of the random starts.
    - `max_iterations`, `tolerance`: of BFGS, relative and absolute.

    **Returns:** a `Design`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, for a start outside its
    bounds, for an input with a prior, and if no start determines the parameters; `SimulationError`.
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
    run_settings = resolve_simulation("design_experiment", simulation, settings)
    plan = make_plan("design_experiment", model, state0, ts, noise, parameters, run_settings)
    inputs = check_parameters("design_experiment", inputs, "inputs")
    inputs = find_named_parameters(inputs, plan.experiment.model, plan.experiment.sensors)
    plan = dataclasses.replace(plan, experiment=apply_starts(inputs, plan.experiment))
    _check_inputs(plan, inputs)
    order, count = _order_components(plan, interest)
    before = evaluate_excitation(plan, plan.experiment)
    scale = plan.scale()
    references = tuple(p.leaf(plan.experiment) for p in inputs)
    designer = Designer(plan, inputs, references, jnp.asarray(scale), order, count, criterion)
    maxima = _maximise(designer, _starts(designer, num_starts, seed), max_iterations, tolerance)
    values = np.where(np.asarray(maxima.feasible), np.asarray(maxima.value), -np.inf)
    best = int(np.argmax(values))
    if values[best] == -np.inf:
        _raise_infeasible(before)
    experiment = designer.experiment(maxima.u[best])
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
        history=np.asarray(maxima.history[best])[: int(maxima.iterations[best])],
        converged=bool(maxima.converged[best]),
        notes=_notes(after, float(plan.resolution)),
    )


def _check_inputs(plan: RunPlan, inputs: Sequence[Parameter]) -> None:
    check_no_prior("design_experiment(inputs=...)", inputs)
    for p in inputs:
        if not isinstance(p.transform, Bounded):
            raise ValueError(
                f"The input {p.name!r} needs bounds: `rj.Parameter({p.name!r}, where, "
                "rj.identification.Bounded(lower, upper))`, as larger inputs always tell more."
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
        "can hardly be distinguished from errors of the derivatives. Compare its standard "
        'deviations with those of `criterion="A"`, which asks for every one; '
        "plan a shorter run, or give a prior.",
    )


def _raise_infeasible(given: Excitation) -> NoReturn:
    """Raise `ValueError` with the reason why no start is feasible, judged by the given run."""
    if given.identifiability.identifiable:
        raise ValueError(
            "`design_experiment`: the run that was given determines the parameters, but the "
            "criterion has no finite derivative with respect to the inputs there, nor at another "
            "start. Start away from bounds, or try more starts."
        )
    raise ValueError(
        "`design_experiment`: the parameters are not determined at any start. "
        f"{given.identifiability.messages[0]} Plan for fewer parameters, give a `prior` of them, "
        "choose other inputs, or try more starts."
    )


def _order_components(plan: RunPlan, interest: Sequence[str] | None) -> tuple[tuple[int, ...], int]:
    """Return the fitted components, those of interest last, and the number of interest."""
    table = plan.component_table()
    labels, fitted = table.labels, table.fitted_indices.tolist()
    if interest is None:
        return tuple(fitted), len(fitted)
    wanted = {interest} if isinstance(interest, str) else set(interest)
    names = [plan.parameters[g].name for g in table.groups]
    unknown = wanted - {labels[k] for k in fitted} - {names[k] for k in fitted}
    if unknown or not wanted:
        raise ValueError(
            "`design_experiment(interest=...)` takes names of parameters or labels out of "
            f"{[labels[k] for k in fitted]}; got {interest!r}."
        )
    of_interest = [k for k in fitted if labels[k] in wanted or names[k] in wanted]
    return tuple([k for k in fitted if k not in of_interest] + of_interest), len(of_interest)


class Designer(eqx.Module):
    """A criterion as a function of angles, whose sines are the coordinates of the inputs.

    Coordinates of `Bounded` lie between -1 and 1. A step of an angle beyond a bound returns inside,
    so that the optimiser need not handle bounds.

    **Attributes:** `plan`; `inputs`, and `references`, their given leaves; `scale`, of all
    components of the parameters; `order`, the fitted components, with the `count` ones of interest
    last; `criterion`, its name.
    """

    plan: RunPlan
    inputs: tuple[Parameter, ...]
    references: tuple[Array, ...]
    scale: Float[Array, " K"]
    order: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)
    criterion: str = eqx.field(static=True)

    def experiment(self, u: Float[Array, " q"]) -> Experiment:
        """Return the experiment with these inputs."""
        leaves = leaves_from_coordinates(self.inputs, self.references, jnp.sin(u))
        return replace_leaves(self.inputs, self.plan.experiment, leaves)

    def value(self, u: Float[Array, " q"]) -> tuple[Scalar, Flag]:
        """Return the criterion, and whether simulation succeeds and information is regular."""
        J, result = self.plan.jacobian(self.experiment(u), self.order)
        relative = J * self.scale[jnp.asarray(self.order)][None]
        R, regular = information_factor(relative, self.count, self.plan.resolution)
        return CRITERIA[self.criterion](R), regular & (result == RESULTS.successful)

    def value_and_gradient(self, u: Float[Array, " q"]) -> tuple[Scalar, Float[Array, " q"], Flag]:
        """Return the criterion, its gradient by forward mode, and whether both are valid."""

        def push(direction):
            value, slope, okay = jax.jvp(self.value, (u,), (direction,), has_aux=True)
            return value, slope, okay

        values, gradient, okay = jax.vmap(push)(jnp.eye(len(u), dtype=u.dtype))
        okay = okay[0] & jnp.isfinite(values[0]) & jnp.all(jnp.isfinite(gradient))
        return values[0], gradient, okay


class Maximum(eqx.Module):
    """Results of the maximisation from all starts, with a leading start axis.

    **Attributes:** `u`, angles, see `Designer`; `value`, of the criterion; `feasible`, whether
    value and gradient were valid at the start; `converged`; `iterations`; `history` of the
    criterion, `-inf` after the end.
    """

    u: Float[Array, "S q"]
    value: Float[Array, " S"]
    feasible: Bool[Array, " S"]
    converged: Bool[Array, " S"]
    iterations: Int[Array, " S"]
    history: Float[Array, "S M"]


@persistent_jit
def _maximise(
    designer: Designer, starts: Float[Array, "S q"], max_iterations: int, tolerance: float
) -> Maximum:
    """Maximise from all starts at once; an infeasible start ends immediately."""
    return jax.vmap(lambda u: _maximise_from(designer, u, max_iterations, tolerance))(starts)


def _maximise_from(
    designer: Designer, start: Float[Array, " q"], max_iterations: int, tolerance: float
) -> Maximum:
    @jax.custom_jvp
    def loss(u):
        value, _, okay = designer.value_and_gradient(u)
        return jnp.where(okay, -value, jnp.inf)

    # One solve yields value and gradient; the derivative rule then only multiplies.
    @loss.defjvp
    def _(primals, tangents):
        value, gradient, okay = designer.value_and_gradient(*primals)
        gradient = jnp.where(okay, gradient, 0.0)
        return jnp.where(okay, -value, jnp.inf), -gradient @ tangents[0]

    def function(u, args):
        return loss(u), None

    solver = optx.BFGS(rtol=tolerance, atol=tolerance)
    shape, _ = jax.eval_shape(function, start, None)
    first = solver.init(function, start, None, {}, shape, None, frozenset())
    dynamic, static = eqx.partition(first, eqx.is_array)

    def is_searching(carry):
        _, _, iterations, done, _ = carry
        return ~done & (iterations < max_iterations)

    def body(carry):
        u, dynamic, iterations, _, history = carry
        state = eqx.combine(dynamic, static)
        u, state, _ = solver.step(function, u, None, {}, state, frozenset())
        done, _ = solver.terminate(function, u, None, {}, state, frozenset())
        value = -state.f_info.as_min()
        # The first step evaluates the start.
        done = done | ~jnp.isfinite(value)
        history = history.at[iterations].set(value)
        return u, eqx.filter(state, eqx.is_array), iterations + 1, done, history

    history = jnp.full(max_iterations, -jnp.inf, start.dtype)
    carry = (start, dynamic, jnp.array(0), jnp.array(False), history)
    u, dynamic, iterations, done, history = jax.lax.while_loop(is_searching, body, carry)
    value = -eqx.combine(dynamic, static).f_info.as_min()
    feasible = jnp.isfinite(value)
    return Maximum(u, value, feasible, done & feasible, iterations, history)


def _starts(designer: Designer, num_starts: int, seed: int) -> jnp.ndarray:
    """Return angles of the given inputs, and of others drawn uniformly within their bounds.

    Inputs that are given on a bound start inside it, because the sine has no derivative there.
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


def _label_inputs(inputs: Sequence[Parameter], experiment: Experiment) -> dict[str, float]:
    values_by_label = {}
    for p in inputs:
        leaf = p.leaf(experiment)
        labels, values = p.component_labels(leaf.shape), np.asarray(leaf).reshape(-1)
        values_by_label.update(
            {labels[i]: float(values[i]) for i in p.transform.fitted(leaf.shape)}
        )
    return values_by_label
