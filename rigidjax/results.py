"""How a simulation can end."""

import diffrax


class RESULTS(diffrax.RESULTS):  # pyright: ignore[reportGeneralTypeIssues]
    """Outcomes of a simulation: those of diffrax, optimistix and lineax, and these."""

    singular_parametrization = (
        "The rotation came to a singularity of its parametrization. Let the formulation move its "
        "reference on (`recharting=True`), or use `rj.Quaternion()`, which has no singularity."
    )
    chart_left = (
        "A body turned by 2 pi or more within one step: it left the chart of the rotation group in "
        "which a Lie-group method makes its steps. Take shorter steps or an adaptive step size."
    )
    signal_ended = (
        "The run goes beyond the table of a `Signal`: before its first sample or after its last "
        'one, delay included. Give it more samples, or `extrapolation="constant"` or "zero".'
    )
    jump_within_step = (
        "A `Signal` jumps within a step of fixed length. Choose `dt` so that steps end at its "
        "samples, or take an adaptive step size, which ends there by itself."
    )
    invalid_input = (
        "The run has not begun: its model, state, times or step are not admissible (a mass, an "
        "inertia, an axis, a quaternion, a state that the joints do not allow, numbers that are "
        "not finite). Build this one outside of `jax.vmap`, or pass throw=True: the error names it."
    )
    nonfinite_state = (
        "The state is no longer finite. Take smaller steps or an adaptive step size, or check the "
        "forces for values that are not finite."
    )


class SimulationError(RuntimeError):
    """A simulation that did not reach its end, with the reason; see `Solution.result`."""
