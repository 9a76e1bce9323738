"""Which backend a run takes, and why."""

import equinox as eqx
import jax
from jax.extend.core import ClosedJaxpr

NAMES = ("auto", "native", "xla")
# Numbers outside of registers and of loops over stacks up to which kernels are faster. That
# of a chain of 100 bodies is (5,900; 3.3 times alone, 6 times in a batch of 32), that of four
# four-bars in a row in a batch (4,800; 0.6 and 1.8 times), that of eight is not (58,000; 0.1, 0.3).
_LARGE = 6_000


class Backend(eqx.Module):
    """A backend's name, `"native"` or `"xla"`; compares equal to it. A pytree without arrays.

    **Attributes:** `name`; `why_not`, what kept the run from being a native kernel, if anything.
    """

    name: str = eqx.field(static=True)
    why_not: tuple[str, ...] = eqx.field(static=True, default=())

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Backend) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def checked_name(backend: str) -> str:
    """The backend that was asked for.

    **Raises:** `ValueError` for a name that is none.
    """
    if backend not in NAMES:
        raise ValueError(f'`backend` must be "auto", "native" or "xla"; got {backend!r}.')
    return backend


def chosen(asked: str, program: ClosedJaxpr) -> Backend:
    """The backend for a program.

    **Raises:** `ValueError` if `"native"` was asked for and cannot be.
    """
    if asked == "xla":
        return Backend("xla", ('`backend="xla"` was asked for',))
    platform = jax.default_backend()
    if platform != "cpu":
        reasons = [f"native kernels run on the CPU, and JAX's default device is {platform!r}"]
    else:
        from .emitter import outside_registers, why_not
        from .stacks import with_loops

        reasons = why_not(program)
        if not reasons and asked == "auto":
            size = outside_registers(with_loops(program).jaxpr)
            if size > _LARGE:
                reasons = [
                    f"the system is large ({size} numbers outside of registers, {_LARGE} are the "
                    "most): XLA runs it faster"
                ]
    if not reasons:
        return Backend("native")
    if asked == "native":
        raise ValueError(
            '`backend="native"` cannot run this as a kernel: ' + "; ".join(reasons) + ". "
            'Use `backend="auto"`, which leaves such runs to XLA.'
        )
    return Backend("xla", tuple(reasons))
