"""The start of the programs that show a failure."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

_START = '''"""{title}

Found by `python -m tests.fuzz --kind {kind} --seed {seed}`; exits with 1 if {wrong}.
"""

import sys

# The folder of the repository, for `tests`.
sys.path.insert(0, {root!r})

{header}
jax.config.update("jax_enable_x64", True)

'''


def start(title: str, kind: str, seed: int, wrong: str, header: str) -> str:
    """Return the docstring, the imports and the settings of a program.

    **Arguments:** `wrong`, when the program exits with 1; `header`, the imports of its code.
    """
    title = title.replace("\\", "/").replace('"""', "'''")
    return _START.format(
        title=title, kind=kind, seed=seed, wrong=wrong, root=str(ROOT), header=header
    )
