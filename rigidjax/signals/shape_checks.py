"""Whether laws are evaluated only for the shapes of their results."""

import threading


class _ChecksShapes(threading.local):
    """Whether only shapes are evaluated, so that inputs without a value may stand in a law."""

    value: bool = False


checks_shapes = _ChecksShapes()
