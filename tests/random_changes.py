"""Files with random changes of their bytes."""

from collections.abc import Callable

import numpy as np

PIECES = [b"", b"0", b"-", b"nan", b"<", b">", b'"', b"/", b"&", b"1e999", b"\xff", b"world"]


def assert_errors_or_models(good: bytes, read: Callable[[bytes], None]) -> None:
    """Read 150 changed copies of a file: some are models, others end in errors with a message."""
    rng = np.random.default_rng(7)
    outcomes = set()
    for _ in range(150):
        content = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            at, length = int(rng.integers(len(content))), int(rng.choice([0, 1, 1, 30]))
            content[at : at + length] = PIECES[rng.integers(len(PIECES))]
        try:
            read(bytes(content))
            outcomes.add("model")
        except (ValueError, OSError) as error:
            assert str(error)
            outcomes.add("error")
    assert outcomes == {"model", "error"}
