"""Programs as one operation on meshes of devices.

Inside of `jax.shard_map` types tell along which axes of the mesh a value varies, and on meshes with
explicit axes how it is sharded. Loops must change neither, and those of diffrax start from
constants. So what a run consists of is traced without a mesh.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
from jax.core import ShapedArray
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec


def opaque_call(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`, pytrees; on a mesh as one operation whose inside knows of no mesh."""
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
    """The program of a function, `jax.make_jaxpr`, traced without a mesh.

    What is called twice is traced once only if meshes are the same: there is none while a user's
    function is traced, an empty one while it is lowered.
    """
    with jax.sharding.use_abstract_mesh(AbstractMesh((), ())):
        return jax.make_jaxpr(function, **options)(*shapes)


def align_varying_axes(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, all varying along the same axes of `jax.shard_map`.

    The derivative by one that is the same on all devices then is the sum over them.
    """
    varying = [jax.typeof(x).manual_axis_type.varying for x in arrays]
    axes = frozenset().union(*varying)
    return [
        x if own == axes else jax.lax.pcast(x, tuple(axes - own), to="varying")
        for x, own in zip(arrays, varying, strict=True)
    ]


def result_types(
    avals: Sequence[Any], inputs: Sequence[Any], batched: Sequence[bool], size: int | None
) -> list[ShapedArray]:
    """Types of the results of a program where its inputs are, of a batch if `size` is given."""
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
    where = NamedSharding(on_mesh[0].sharding.mesh, PartitionSpec(*[axes] * len(lead)))
    varies = on_mesh[0].manual_axis_type
    return [
        ShapedArray(s, a.dtype, a.weak_type, sharding=where, manual_axis_type=varies)
        for s, a in zip(shapes, avals, strict=True)
    ]


def without_mesh(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering rule that sees no mesh in the types of its arguments."""

    def lowered(context, *args, **params):
        plain = [ShapedArray(a.shape, a.dtype) for a in context.avals_in]
        return rule(context.replace(avals_in=plain), *args, **params)

    return lowered
