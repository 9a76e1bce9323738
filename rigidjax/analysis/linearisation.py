"""Linear models about a state or along a trajectory."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..annotations import Scalar
from ..checks import ArrayInput, collect_faults, is_traced, is_tracing, raise_or_collect
from ..formulations import AbstractNullSpace
from ..native import call_by_kernel
from ..persistent_jit import persistent_jit
from ..sensors import AbstractSensor
from ..state import State
from .linear_arguments import LinearModelRequest, check_inputs, check_sensors, choose_coordinates
from .local_motion import check_model, differentiate_motion, encode_state

Complex = NDArray[np.complexfloating]

_WRONG_STATE = "`linearize(state=...)`: one of the states violates the joints or is no rotation."


class Linearisation(eqx.Module):
    r"""Linear model $\dot\xi = f_0 + A\,\xi + B\,\delta u$, $\delta z = C\,\xi + D\,\delta u$.

    $\xi = (\delta, \eta, s)$ are coordinates on the constraint manifold around a state: the changes
    of independent joint coordinates, of their rates, and of states of actuators. The change of a
    rotation (of a ball joint or a free body) is a rotation vector in the axes of the angular
    velocity. The difference of two neighbouring motions satisfies $\dot\xi = A\,\xi + B\,\delta u$
    along the way. $f_0$ contains the rates at the state itself, which are zero in an equilibrium.

    Results of several states have leading axes; `linear[k]` is one of them.

    **Attributes:**

    - `A`, `B`, `C`, `D`, `f0`: (n, n), (n, m), (z, n), (z, m) and (n,), SI units.
    - `states`, `inputs`, `outputs`: names of rows and columns, n, m and z.
    - `directions`, $N$ (f, p), the generalised velocities in $\nu = N\,\dot\delta$; `labels`, their
      names.
    """

    A: Float[Array, "*t n n"]
    B: Float[Array, "*t n m"]
    C: Float[Array, "*t z n"]
    D: Float[Array, "*t z m"]
    f0: Float[Array, "*t n"]
    directions: Float[Array, "*t f p"]
    states: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    labels: tuple[str, ...] = eqx.field(static=True)

    def __getitem__(self, index: Any) -> "Linearisation":
        """Return the linear model of one of several states."""
        return jax.tree.map(lambda leaf: leaf[index], self)

    @property
    def matrix(self) -> Float[Array, "*t n n"]:
        """The matrix `A`."""
        return self.A

    @property
    def acceleration(self) -> Float[Array, "*t v"]:
        r"""Accelerations $\dot\eta$ at the state itself, (v,), and rates of states of actuators."""
        return self.f0[..., self.directions.shape[-1] :]

    @property
    def eigenvalues(self) -> Complex:
        """Eigenvalues of `A`, (n,) 1/s, sorted by |imaginary part|, then by real part."""
        return self._sort_eigenpairs()[0]

    @property
    def modes(self) -> np.ndarray:
        r"""Mode shapes in generalised velocities, (f, n), one column for each eigenvalue."""
        directions = np.asarray(self.directions)
        shapes = directions @ self._sort_eigenpairs()[1][: directions.shape[1]]
        return shapes / np.linalg.norm(shapes, axis=0)

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies of the oscillating modes, rad/s, increasing."""
        values = self.eigenvalues
        return values.imag[values.imag > 0]

    @property
    def damping_ratios(self) -> np.ndarray:
        """Damping of the modes of `frequencies`, as a fraction of critical damping."""
        values = self.eigenvalues
        values = values[values.imag > 0]
        return -values.real / np.abs(values)

    @property
    def is_stable(self) -> bool:
        """Whether no mode grows, up to round-off."""
        values = self.eigenvalues
        return bool(np.all(values.real <= 1e-7 * max(1.0, np.max(np.abs(values), initial=0.0))))

    def _sort_eigenpairs(self) -> tuple[Complex, Complex]:
        if self.A.ndim != 2:
            raise ValueError(
                f"Eigenvalues are those of one state; these are {self.A.shape[0]} linear models. "
                "Choose one: `linear[k].eigenvalues`."
            )
        values: Complex
        values, vectors = np.linalg.eig(np.asarray(self.A))
        order = np.lexsort((values.real, np.round(np.abs(values.imag), 12)))
        return values[order], vectors[:, order]


def linearize(
    model: Any,
    t: ArrayInput,
    state: State,
    *,
    inputs: Sequence[str] | Mapping[str, Any] = (),
    outputs: Sequence[AbstractSensor] = (),
    coordinates: str | Sequence[str] | None = None,
) -> Linearisation:
    r"""Linearise the equations of motion about a state, by exact derivatives.

    It works under `jax.jit`, `jax.vmap` and `jax.grad`, at the cost of one Jacobian in forward
    mode. States with a leading axis, such as `sol.states` with `sol.ts`, give the linear models
    along a trajectory.

    ```python
    linear = rj.linearize(model, 0.0, state, inputs=["u"], outputs=[rj.JointCoordinate("hinge")])
    linear.A, linear.B, linear.frequencies
    ```

    With closed loops, the coordinates belong to independent joints, which are chosen at the state
    (at the first of several, in the reference configuration if the state is traced). Around a
    position in which they do not determine the others, give `coordinates`.

    **Arguments:**

    - `model`, a `NullSpace`, a `Relative` or a system; `t`, s, a scalar, or (T,) for T states;
      `state`, at rest or moving.
    - `inputs`, names of `rj.Input`s, which have their defaults at the state, or their values by
      name, (T, ...) for T states. Other inputs have their defaults. An input that is bound to an
      `rj.Signal` or a policy has no column in `B`; with a policy `A` is that of the closed loop.
    - `outputs`, sensors. Their rows in `C` and `D` are those of `sensor.channels`; an `Attitude`
      has the rotation vector of its change.
    - `coordinates`, names of joints, or entries of `rate_labels`, whose velocities determine all
      others; needed for closed loops in a model with traced values.

    **Returns:** a `Linearisation`.
    **Errors:** `TypeError` for another model, or no sensor; `ValueError` for a state that violates
    the joints, a sensor with a delay, two sensors of one name, coordinates that do not fit, an
    unknown input, a wrong shape of its value, and an input that prescribes a motion.
    """
    model = check_model(model, "linearize")
    if isinstance(t, State):
        raise TypeError("`linearize(model, t, state)` takes the time before the state.")
    if not isinstance(state, State):
        raise TypeError(f"`linearize(state=...)` takes a `State`; got {type(state).__name__}.")
    names = check_sensors(model, outputs)
    is_batch = jnp.ndim(state.position) == 3
    first = jax.tree.map(lambda leaf: leaf[0], state) if is_batch else state
    targets, u, others = check_inputs(model, inputs, len(state.position) if is_batch else None)
    chosen = choose_coordinates(model, first, coordinates)
    columns = [
        name if target.size is None else f"{name}[{k}]"
        for name, target in targets.items()
        for k in range(target.size or 1)
    ]
    request = LinearModelRequest(chosen, targets, others, tuple(outputs), (tuple(columns), names))
    t = jnp.asarray(t, u.dtype)
    traced = is_traced((model, state, t, u, others)) or is_tracing()
    if not is_batch:
        state = request.bind(model, u).check_state(state, t)
        return (_linearise if traced else _linearise_by_kernel)(model, t, state, u, request)
    ts = jnp.broadcast_to(t, (len(state.position),))
    linearise = _linearise_all if traced else _linearise_all_by_kernel
    linear, is_wrong = linearise(model, ts, state, u, request)
    if is_traced(is_wrong):
        return raise_or_collect(linear, is_wrong.any()[None], [_WRONG_STATE])
    for k in np.flatnonzero(is_wrong)[:1]:
        state = jax.tree.map(lambda leaf, k=k: leaf[k], state)
        request.bind(model, u[k]).check_state(state, ts[k])
        raise ValueError(_WRONG_STATE)
    return linear


def _linearise_state(
    model: AbstractNullSpace,
    t: Scalar,
    state: State,
    u: Float[Array, " m"],
    request: LinearModelRequest,
) -> Linearisation:
    bound = request.bind(model, u)
    y = encode_state(bound, t, state)
    local = request.chosen.coordinates(model.num_rates, u.dtype)
    found = differentiate_motion(lambda u: request.bind(model, u), u, t, y, local, request.sensors)
    states = request.chosen.names(bound)
    return Linearisation(*found, states, *request.names, model.rate_labels)


def _linearise_states(
    model: AbstractNullSpace,
    ts: Float[Array, " T"],
    states: State,
    us: Float[Array, "T m"],
    request: LinearModelRequest,
) -> tuple[Linearisation, Bool[Array, " T"]]:
    """Return the linear models of several states, and which states are not admissible."""

    def of_state(t, state, u):
        with collect_faults() as faults:
            state = request.bind(model, u).check_state(state, t)
        is_wrong = jnp.any(jnp.stack([jnp.array(False), *faults]))
        return _linearise_state(model, t, state, u, request), is_wrong

    return jax.vmap(of_state)(ts, states, us)


_linearise = persistent_jit(_linearise_state)
_linearise_all = persistent_jit(_linearise_states)
# Kernels of these functions, which compile faster.
_linearise_by_kernel = persistent_jit(functools.partial(call_by_kernel, _linearise_state))
_linearise_all_by_kernel = persistent_jit(functools.partial(call_by_kernel, _linearise_states))
