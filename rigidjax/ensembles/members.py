"""The parameters of an ensemble: checked, counted, cut into chunks, and read from files."""

import hashlib
import os
import pathlib
from typing import TYPE_CHECKING, Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    import xarray

# One of `jax.devices()`, whose class is no type for a checker.
Device: TypeAlias = Any

# A dimension of this name, or the first one that all variables share, numbers the members.
_DIMENSION = "member"
# Variables by which a dataset is known as one that an ensemble returned.
ENDS = ("result", "num_steps", "reached")


class Members:
    """N members: a pytree of arrays with N in front, on the host.

    **Attributes:** `names` and `leaves` of the arrays; `count`, N.
    """

    def __init__(self, parameters: Any):
        paths, self._structure = jax.tree_util.tree_flatten_with_path(_as_tree(parameters))
        self.names = [name_of(path) for path, _ in paths]
        self._keys = [_is_key(leaf) for _, leaf in paths]
        self.leaves = [
            _on_host(name, leaf) for name, (_, leaf) in zip(self.names, paths, strict=True)
        ]
        if not paths:
            raise ValueError(
                "`ensemble(parameters=...)` holds no arrays; give at least one, with the members "
                "in front."
            )
        shapes = {n: leaf.shape for n, leaf in zip(self.names, self.leaves, strict=True)}
        counts = {shape[:1] for shape in shapes.values()}
        if len(counts) > 1 or () in counts:
            listed = ", ".join(f"{name}: {shape}" for name, shape in shapes.items())
            raise ValueError(
                "All parameters of an ensemble have the members in front, as many of each; got "
                f"the shapes {listed}."
            )
        self.count = self.leaves[0].shape[0]
        if self.count == 0:
            raise ValueError("`ensemble(parameters=...)` has no members; give at least one.")

    def tree(self, leaves: list[Any]) -> Any:
        """The pytree that a run gets, of leaves as `rows` gives them (traced or not)."""
        wrapped = [
            jax.random.wrap_key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(leaves, self._keys, strict=True)
        ]
        return jax.tree.unflatten(self._structure, wrapped)

    def rows(self, index: Any) -> list[np.ndarray]:
        """The arrays of some members."""
        return [leaf[index] for leaf in self.leaves]

    def chosen(self, index: Any) -> "Members":
        """These members alone."""
        return Members(self.tree(self.rows(np.asarray(index))))

    def fingerprint(self) -> str:
        """A hash of names, types and values of all parameters."""
        total = hashlib.sha256()
        for name, leaf in zip(self.names, self.leaves, strict=True):
            total.update(f"{name} {leaf.dtype} {leaf.shape}".encode())
            total.update(np.ascontiguousarray(leaf).data)
        return total.hexdigest()[:16]


def name_of(path: tuple[Any, ...]) -> str:
    """The name of a leaf: keys, fields and numbers, with dots between."""
    parts = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
    return ".".join(parts) or "value"


def _as_tree(parameters: Any) -> Any:
    """What was given, as a pytree: a dataset or a file is a dictionary of its variables."""
    if isinstance(parameters, str | os.PathLike):
        return _of_file(pathlib.Path(parameters))
    # Without an import: a dataset says that it is one.
    if type(parameters).__module__.startswith("xarray.") and hasattr(parameters, "data_vars"):
        return _of_dataset(parameters)
    return parameters


def _of_file(path: pathlib.Path) -> dict[str, np.ndarray]:
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path} with parameters.")
    if path.suffix not in (".nc", ".csv"):
        raise ValueError(f"Parameters are read from .nc and .csv files; got {path}.")
    try:
        if path.suffix == ".csv":
            return _of_table(path)
        import xarray

        # A parameter in seconds stays a number.
        with xarray.open_dataset(path, decode_times=False, decode_timedelta=False) as dataset:
            dataset = dataset.load()
    except ValueError as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"The file {path} cannot be read as parameters: {said}") from error
    return _of_dataset(dataset)


def _of_table(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Columns of a CSV file by their names; whole numbers stay whole."""
    import pandas

    table = pandas.read_csv(path)
    if table.empty:
        raise ValueError("it needs a line of names and a line for each member.")
    columns = {str(name): table[name].to_numpy() for name in table.columns}
    for name, values in columns.items():
        if values.dtype.kind not in "biuf":
            wrong = next(x for x in values if not isinstance(x, int | float))
            raise ValueError(f"{wrong!r} in the column {name!r} is no number.")
    return columns


def _of_dataset(dataset: "xarray.Dataset") -> dict[str, np.ndarray]:
    """Return the variables; of what an ensemble returned, or without any, the coordinates.

    `Ensemble.to_xarray` has the parameters as coordinates beside its outputs.
    """
    variables: dict[Any, Any] = dict(dataset.data_vars)
    if not variables or set(ENDS) <= set(variables):
        variables = {k: v for k, v in dataset.coords.items() if k not in dataset.dims and v.ndim}
        if not variables:
            raise ValueError(
                "The dataset holds no parameters: it has neither variables nor, besides those "
                "that an ensemble returned, coordinates that number members; it has "
                f"{[*dataset.data_vars, *dataset.coords]}."
            )
    shared = [n for n in dataset.sizes if all(n in v.dims for v in variables.values())]
    if not shared:
        raise ValueError(
            "The variables of a dataset of parameters share one dimension that numbers the "
            f"members, best called {_DIMENSION!r}; here they have "
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


def _on_host(name: str, leaf: Any) -> np.ndarray:
    if _is_key(leaf):
        return np.asarray(jax.random.key_data(leaf))
    if not eqx.is_array_like(leaf):
        raise TypeError(
            f"The parameter {name!r} of an ensemble must be an array; got {type(leaf).__name__}."
        )
    values = np.asarray(leaf)
    if values.dtype.kind not in "biufc":
        raise TypeError(f"The parameter {name!r} must hold numbers; got {values.dtype}.")
    # As JAX takes it: single precision where double precision is not switched on.
    return values.astype(jax.dtypes.canonicalize_dtype(values.dtype), copy=False)
