"""Random numbers of every dtype, those at the edges of its range included."""

import numpy as np

FLOATS, COMPLEX = ("float64", "float32"), ("complex128", "complex64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
# With the frequencies of what users compute with.
DTYPES = (
    *("float64",) * 8, *("float32",) * 2, *("int64", "int32") * 2, *INTEGERS, "bool", "bool",
    "complex128", "complex64",
)  # fmt: skip


def edges(dtype: str) -> list:
    """Return the special values of a dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return [False, True]
    if kind in "iu":
        info = np.iinfo(dtype)
        return [0, 1, 2, info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1]
    info = np.finfo(dtype)
    largest, smallest = float(info.max), float(info.tiny)
    root = float(np.sqrt(largest))
    reals = [
        0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.pi, np.inf, -np.inf, np.nan, largest, -largest, smallest,
        -smallest, 2 * root, 0.5 / root, float(info.eps), 1 - float(info.eps), 1e5, 88.9, 20.0,
    ]  # fmt: skip
    return reals


def array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, special: float = 0.0):
    """Return a random array; `special`, the share of elements that are special values."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if kind in "iu":
        low = 0 if kind == "u" else -5
        x = rng.integers(low, 12, shape)
    else:
        scale = float(rng.choice([1.0, 1.0, 1.0, 1e-3, 1e3]))
        x = scale * rng.uniform(-2, 2, shape)
        if kind == "c":
            x = x + 1j * scale * rng.uniform(-2, 2, shape)
    x = np.asarray(x).astype(dtype)
    if special:
        chosen = rng.uniform(size=shape) < special
        values = edges(dtype)
        replacements = np.asarray([values[k] for k in rng.integers(len(values), size=x.size)])
        if kind == "c":
            other = np.asarray([values[k] for k in rng.integers(len(values), size=x.size)])
            replacements = replacements + 0j
            replacements.imag = other
        with np.errstate(all="ignore"):
            x = np.where(chosen, replacements.reshape(shape).astype(dtype), x)
    return x


def scalar(rng: np.random.Generator, dtype: str, special: bool = False) -> np.ndarray:
    """Return a constant of a dtype, with few digits."""
    value = array(rng, (), dtype, 1.0 if special else 0.0)
    return value if special or value.dtype.kind not in "fc" else value.round(3)
