"""Which problems are about one body with a fixed point, and which about systems."""

from rigidjax import problems

SYSTEMS = (
    "adams_case",
    "andrews",
    "bricard",
    "chain",
    "dual_spin_satellite",
    "flyball_governor",
    "four_bar",
    "n_four_bar",
    "simple_pendulum",
    "slider_crank",
    "turntable",
    "two_bodies",
    "two_bodies_slow",
)
TOPS = {name: build for name, build in problems.all().items() if name not in SYSTEMS}
