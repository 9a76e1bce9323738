"""Tension of springs that do not push."""

import jax.numpy as jnp

from ..annotations import Scalar


def one_sided_tension(pull: Scalar, damping: Scalar) -> Scalar:
    r"""Return the tension of a cord from the forces of its spring and its damper, N.

    It is zero where the cord is slack, that is, where the spring would push. The damping force is
    limited to the size of the pull, $-p \le c\,\dot l \le p$: the tension is then continuous where
    the cord becomes taut, and never negative.
    """
    pull = jnp.maximum(pull, 0.0)
    return pull + jnp.clip(damping, -pull, pull)
