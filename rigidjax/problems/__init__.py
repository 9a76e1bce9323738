"""Systems with known solutions, and comparisons of formulations on them.

Start with `problem.py`.
May import `simulate` and lower layers.
"""

from collections.abc import Callable

from ..checks import did_you_mean as _did_you_mean
from .adams_case import adams_case as adams_case
from .andrews import andrews as andrews
from .comparison import (
    Comparison as Comparison,
    Row as Row,
    compare as compare,
    formulations as formulations,
)
from .free_bodies import (
    free_body as free_body,
    tennis_racket as tennis_racket,
    tumbling_brick as tumbling_brick,
)
from .linkages import (
    bricard as bricard,
    flyball_governor as flyball_governor,
    four_bar as four_bar,
    n_four_bar as n_four_bar,
    slider_crank as slider_crank,
)
from .pendulums import chain as chain, simple_pendulum as simple_pendulum
from .problem import Problem as Problem
from .rotors import dual_spin_satellite as dual_spin_satellite, turntable as turntable
from .tops import (
    heavy_top as heavy_top,
    heavy_top_fast as heavy_top_fast,
    steady_top as steady_top,
    symmetric_top as symmetric_top,
)
from .two_bodies import two_bodies as two_bodies, two_bodies_slow as two_bodies_slow


def all() -> dict[str, Callable[..., Problem]]:
    """Return the functions that build the problems, by name."""
    functions = (
        free_body,
        heavy_top,
        heavy_top_fast,
        steady_top,
        symmetric_top,
        tennis_racket,
        tumbling_brick,
        two_bodies,
        two_bodies_slow,
        chain,
        four_bar,
        slider_crank,
        turntable,
        dual_spin_satellite,
        simple_pendulum,
        n_four_bar,
        andrews,
        bricard,
        flyball_governor,
        adams_case,
    )
    return {function.__name__: function for function in functions}


def find(name: str) -> Callable[..., Problem]:
    """Return the function that builds the problem `name`.

    **Raises:** `ValueError` for an unknown name, with the most similar existing name.
    """
    builders = all()
    key = name.lower().replace("-", "_")
    if key in builders:
        return builders[key]
    hint = _did_you_mean(key, builders, f" There are: {', '.join(builders)}.", 0.5)
    raise ValueError(f"There is no problem {name!r}.{hint}")
