"""Problems of one body with a fixed point."""

from rigidjax import problems

NAMES = "free_body heavy_top heavy_top_fast steady_top symmetric_top tennis_racket tumbling_brick"
TOPS = {name: problems.all()[name] for name in NAMES.split()}
