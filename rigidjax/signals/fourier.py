"""A periodic function of time as a finite Fourier series."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..annotations import Scalar
from ..checks import as_leaf, check_finite, finite_leaf, float_array, scalar_leaf


class FourierSeries(eqx.Module):
    r"""The function of time $c_0 + \sum_{k=1}^{K} a_k \sin k\omega t + b_k \cos k\omega t$.

    As a torque (`rj.Motor`, `rj.Torque`, the `moment` of a `FixedPointBody`) or as a prescribed
    motion it is the usual excitation of an experiment: periodic, band-limited, and smooth in its
    coefficients, which are leaves.

    **Arguments:**

    - `frequency`, $\omega$ of the first harmonic, rad/s.
    - `sine`, $a$: (K,) for a number, (K, 3) for a vector; `None` for zero.
    - `cosine`, $b$: likewise.
    - `offset`, $c_0$: a number, or (3,).

    **Returns**, when called with a time (further arguments are ignored): a number, or (3,), in the
    unit of the coefficients.
    **Errors:** `ValueError` for inconsistent shapes, or neither sine nor cosine.
    **Source:** Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997, (13); here
    the coefficients are those of the function itself, not of its integral.
    """

    frequency: Scalar
    sine: Float[Array, "K *shape"]
    cosine: Float[Array, "K *shape"]
    offset: Float[Array, " *shape"]

    def __init__(
        self,
        frequency: ArrayLike,
        sine: ArrayLike | None = None,
        cosine: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ):
        self.frequency = scalar_leaf(frequency, "FourierSeries(frequency=...)")
        given = [_coefficients(x, n) for x, n in ((sine, "sine"), (cosine, "cosine"))]
        present = [array for array in given if array is not None]
        if not present:
            raise ValueError("`FourierSeries` needs `sine`, `cosine`, or both; got neither.")
        zero = jnp.zeros_like(present[0])
        self.sine, self.cosine = (zero if array is None else array for array in given)
        if self.sine.shape != self.cosine.shape:
            raise ValueError(
                "`FourierSeries(sine=..., cosine=...)` must have the same shape; got "
                f"{self.sine.shape} and {self.cosine.shape}."
            )
        shape = self.sine.shape[1:]
        name = "FourierSeries(offset=...)"
        offset = jnp.zeros(shape) if offset is None else offset
        self.offset = finite_leaf(offset, name, shape)

    def __call__(self, t: Scalar, *state: Array) -> Float[Array, " *shape"]:
        harmonics = jnp.arange(1, len(self.sine) + 1, dtype=self.sine.dtype)
        phase = harmonics * self.frequency * t
        waves = jnp.tensordot(jnp.sin(phase), self.sine, 1)
        return self.offset + waves + jnp.tensordot(jnp.cos(phase), self.cosine, 1)


def _coefficients(value: ArrayLike | None, argument: str) -> Array | None:
    if value is None:
        return None
    name = f"FourierSeries({argument}=...)"
    array = jnp.asarray(float_array(value, name))
    if array.ndim not in (1, 2) or len(array) == 0 or array.shape[1:] not in ((), (3,)):
        raise ValueError(f"`{name}` must have shape (K,) or (K, 3); got {array.shape}.")
    return as_leaf(check_finite(array, name))
