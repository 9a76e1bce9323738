"""Report on a run that reached its limit of steps."""

import diffrax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..annotations import Args, Time
from ..formulations.charts import Unknowns
from .integration import RunArguments, integrate


def describe_progress(run: RunArguments) -> str:
    """Return a sentence with the time that the run reached and its last step.

    The run is repeated, because its last sample may lie long before its end.
    """
    saveat = diffrax.SaveAt(steps=True, fn=_save_nothing)
    repeated, *_ = integrate(run._replace(saveat=saveat, number=None))
    times = np.asarray(repeated.ts)
    times = np.concatenate([[float(run.t0)], times[np.isfinite(times)]])
    accepted, rejected = (
        int(repeated.stats[f"num_{kind}_steps"]) for kind in ("accepted", "rejected")
    )
    last = f"; the last step took {times[-1] - times[-2]:.3g} s" if len(times) > 1 else ""
    return (
        f"The run reached t = {times[-1]:.6g} s of {float(run.t1):.6g} s in {accepted} accepted "
        f"and {rejected} rejected steps{last}."
    )


def _save_nothing(t: Time, y: Unknowns, args: Args) -> Array:
    return jnp.zeros(0)
