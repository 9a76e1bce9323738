"""Parameters of the members of an ensemble: checks, selection, and reading from files."""

import hashlib
import os
import pathlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..extras import import_optional

if TYPE_CHECKING:
    import xarray

# An element of `jax.devices()`, whose class type checkers do not know.
Device: TypeAlias = Any

# Dimension of the members in a dataset; otherwise the first dimension that all variables share.
_DIMENSION = "member"


class Status(NamedTuple):
    """Outcomes of members, with a leading axis of members.

    **Attributes:** `result`, values of `rj.RESULTS`; `num_steps`, the sum over all runs of a
    member; `reached`, the last time that its last run reached, s.
    """

    result: Any
    num_steps: Any
    reached: Any


STATUS_TYPES = Status("int32", "int32", "float64")


class Members:
    """Parameters of N members: a pytree of host arrays with a leading axis of N.

    **Attributes:** `names` and `leaves` of the arrays; `count`, N.
    """

    def __init__(self, parameters: Any):
        paths, self._structure = jax.tree_util.tree_flatten_with_path(_as_tree(parameters))
        self.names = [leaf_name(path) for path, _ in paths]
        self._keys = [_is_key(leaf) for _, leaf in paths]
        self.leaves = [
            _to_host(name, leaf) for name, (_, leaf) in zip(self.names, paths, strict=True)
        ]
        if not paths:
            raise ValueError(
                "`ensemble(parameters=...)` contains no arrays; pass at least one, with a leading "
                "axis of members."
            )
        shapes = {n: leaf.shape for n, leaf in zip(self.names, self.leaves, strict=True)}
        counts = {shape[:1] for shape in shapes.values()}
        if len(counts) > 1 or () in counts:
            listed = ", ".join(f"{name}: {shape}" for name, shape in shapes.items())
            raise ValueError(
                "All parameters of an ensemble need one common leading axis of members; got the "
                f"shapes {listed}."
            )
        self.count = self.leaves[0].shape[0]
        if self.count == 0:
            raise ValueError("`ensemble(parameters=...)` has no members; pass at least one.")

    def tree(self, leaves: list[Any]) -> Any:
        """Return the pytree that a run receives, from arrays in the order of `leaves`."""
        wrapped = [
            jax.random.wrap_key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self._keys, strict=True)
        ]
        return jax.tree.unflatten(self._structure, wrapped)

    def rows(self, index: np.ndarray, size: int) -> list[np.ndarray]:
        """Return the leaves of the members `index`, the last one repeated up to `size` members."""
        padded = np.pad(index, (0, size - len(index)), "edge")
        return [leaf[padded] for leaf in self.leaves]

    def select(self, index: np.ndarray) -> "Members":
        """Return the parameters of the members `index`."""
        return Members(self.tree([leaf[index] for leaf in self.leaves]))

    def fingerprint(self) -> str:
        """Return a hash of names, types and values of all parameters."""
        total = hashlib.sha256()
        for name, leaf in zip(self.names, self.leaves, strict=True):
            total.update(f"{name} {leaf.dtype} {leaf.shape}".encode())
            total.update(np.ascontiguousarray(leaf).data)
        return total.hexdigest()[:16]


def leaf_name(path: tuple[Any, ...]) -> str:
    """Return the name of a leaf: the keys, fields and indices of its path, joined by dots."""
    parts = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
    return ".".join(parts) or "value"


def _as_tree(parameters: Any) -> Any:
    """Return the parameters as a pytree: the dictionary of variables of a dataset or a file."""
    if isinstance(parameters, str | os.PathLike):
        return _read_file(pathlib.Path(parameters))
    # Recognised by its class name, so that xarray is not imported.
    if type(parameters).__module__.startswith("xarray.") and hasattr(parameters, "data_vars"):
        return _dataset_arrays(parameters)
    return parameters


def _read_file(path: pathlib.Path) -> dict[str, np.ndarray]:
    if not path.exists():
        raise FileNotFoundError(f"There is no parameter file {path}.")
    if path.suffix not in (".nc", ".csv"):
        raise ValueError(f"Parameters are read from .nc and .csv files; got {path}.")
    try:
        if path.suffix == ".csv":
            return _read_table(path)
        xarray = import_optional("xarray", "Parameters in NetCDF files")

        # Otherwise xarray would decode a parameter in seconds as a time.
        with xarray.open_dataset(path, decode_times=False, decode_timedelta=False) as dataset:
            dataset = dataset.load()
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"The file {path} cannot be read as parameters: {reason}") from error
    return _dataset_arrays(dataset)


def _read_table(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the columns of a CSV file by name; integers keep their type."""
    pandas = import_optional("pandas", "Parameters in CSV files")

    table = pandas.read_csv(path)
    if table.empty:
        raise ValueError("it needs a line of names and a line for each member.")
    columns = {str(name): table[name].to_numpy() for name in table.columns}
    for name, values in columns.items():
        if values.dtype.kind not in "biuf":
            wrong = next(x for x in values if not isinstance(x, int | float))
            raise ValueError(f"{wrong!r} in the column {name!r} is not a number.")
    return columns


def _dataset_arrays(dataset: "xarray.Dataset") -> dict[str, np.ndarray]:
    """Return the variables of a dataset.

    Return the coordinates if there are no variables, or if an ensemble returned the dataset:
    `Ensemble.to_xarray` stores parameters as coordinates.
    """
    variables: dict[Any, Any] = dict(dataset.data_vars)
    if not variables or set(Status._fields) <= set(variables):
        variables = {k: v for k, v in dataset.coords.items() if k not in dataset.dims and v.ndim}
        if not variables:
            raise ValueError(
                "The dataset contains no parameters: it has neither variables besides those of an "
                "ensemble nor coordinates along the members; it has "
                f"{[*dataset.data_vars, *dataset.coords]}."
            )
    shared = [n for n in dataset.sizes if all(n in v.dims for v in variables.values())]
    if not shared:
        raise ValueError(
            "The variables of a dataset of parameters must share one dimension of the members, "
            f"best called {_DIMENSION!r}; got "
            + ", ".join(f"{name}: {tuple(v.dims)}" for name, v in variables.items())
            + "."
        )
    dimension = _DIMENSION if _DIMENSION in shared else shared[0]
    return {
        str(name): variable.transpose(dimension, ...).to_numpy()
        for name, variable in variables.items()
    }


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_host(name: str, leaf: Any) -> np.ndarray:
    if _is_key(leaf):
        return np.asarray(jax.random.key_data(leaf))
    if not eqx.is_array_like(leaf):
        raise TypeError(
            f"The parameter {name!r} of an ensemble must be an array; got {type(leaf).__name__}."
        )
    values = np.asarray(leaf)
    if values.dtype.kind not in "biufc":
        raise TypeError(f"The parameter {name!r} must contain numbers; got {values.dtype}.")
    # JAX uses single precision unless double precision is enabled.
    return values.astype(jax.dtypes.canonicalize_dtype(values.dtype), copy=False)
