"""Calls that are one operation on a mesh of devices.

Inside `jax.shard_map` the types of values tell along which mesh axes a value varies, and on meshes
with explicit axes how it is sharded. The carry of a loop must change neither, but loops of diffrax
start from constants. A run is therefore traced without a mesh and called as one operation.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
from jax.core import ShapedArray
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec


def opaque_call(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)` of pytrees; on a mesh, as one operation traced without the mesh."""
    leaves = filter(eqx.is_array, jax.tree.leaves(args))
    if all(jax.typeof(x).sharding.mesh.empty for x in leaves):
        return function(*args)
    from .primitive import native_call

    arrays, static = eqx.partition(args, eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)

    def flat(*leaves):
        nonlocal out_tree, out_static
        out = function(*eqx.combine(jax.tree.unflatten(tree, leaves), static))
        arrays, out_static = eqx.partition(out, eqx.is_array)
        out, out_tree = jax.tree.flatten(arrays)
        return out

    out_tree, out_static = None, None
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=jax.typeof(x).weak_type) for x in leaves
    ]
    out = native_call(trace_without_mesh(flat, *shapes), leaves, by_xla=True)
    return eqx.combine(jax.tree.unflatten(out_tree, out), out_static)


def trace_without_mesh(function: Callable[..., Any], *shapes: Any, **options: Any) -> Any:
    """Return `jax.make_jaxpr(function, **options)(*shapes)`, traced with an empty mesh.

    JAX caches traces by function and mesh. No mesh is set while a user's function is traced, but an
    empty one while it is lowered, so that functions would otherwise be traced twice.
    """
    with jax.sharding.use_abstract_mesh(AbstractMesh((), ())):
        return jax.make_jaxpr(function, **options)(*shapes)


def align_varying_axes(arrays: Sequence[Any]) -> list[Any]:
    """Return the arrays, all typed as varying along the union of their `jax.shard_map` axes.

    The derivative with respect to an array that is equal on all devices then sums over devices.
    """
    varying = [jax.typeof(x).manual_axis_type.varying for x in arrays]
    axes = frozenset().union(*varying)
    return [
        x if present == axes else jax.lax.pcast(x, tuple(axes - present), to="varying")
        for x, present in zip(arrays, varying, strict=True)
    ]


def result_types(
    avals: Sequence[Any], inputs: Sequence[Any], batched: Sequence[bool], size: int | None
) -> list[ShapedArray]:
    """Return the types of the results of a call, with the sharding of its inputs.

    **Arguments:** `avals`, result types without batch axis and mesh; `inputs`, the types of the
    arguments; `batched`, which arguments have a batch axis; `size`, the extent of the batch, `None`
    without a batch.
    """
    lead = () if size is None else (size,)
    shapes = [(*lead, *a.shape) for a in avals]
    on_mesh = [x for x in inputs if not x.sharding.mesh.empty]
    if not on_mesh:
        return [
            ShapedArray(s, a.dtype, weak_type=a.weak_type)
            for s, a in zip(shapes, avals, strict=True)
        ]
    specs = [x.sharding.spec[0] for x, b in zip(inputs, batched, strict=True) if b]
    axes = next((spec for spec in specs if spec is not None), None)
    sharding = NamedSharding(on_mesh[0].sharding.mesh, PartitionSpec(*[axes] * len(lead)))
    manual_axis_type = on_mesh[0].manual_axis_type
    return [
        ShapedArray(s, a.dtype, a.weak_type, sharding=sharding, manual_axis_type=manual_axis_type)
        for s, a in zip(shapes, avals, strict=True)
    ]


def without_mesh(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a lowering rule so that its argument types have no mesh."""

    def lowering(context, *args, **params):
        avals = [ShapedArray(a.shape, a.dtype) for a in context.avals_in]
        return rule(context.replace(avals_in=avals), *args, **params)

    return lowering
