"""A kernel: a program for a batch, as a function that XLA calls.

The function of blocks, `block(inputs, outputs, workspace, first, count)`, loads the arguments of W
members of the batch into lanes, runs the program and stores the results. The handler reads the
buffers from XLA's call frame (see `frame`) and goes through all blocks.
"""

import contextlib
import ctypes
import dataclasses
import gc
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from .complex import Pair, is_complex, part_dtype
from .emitter import REGISTERS, Emitter
from .frame import Frame
from .lanes import I8, I64, POINTER, Lanes, element_type
from .machine import Code, best_width
from .memory import Buffer, View, row_major


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a kernel is made for.

    **Arguments:** `batched`, for each argument whether it has a batch axis (the first one);
    `is_batch`, whether there is a batch at all.
    """

    batched: tuple[bool, ...]
    is_batch: bool


class Kernel:
    """Machine code of a program for one signature."""

    def __init__(self, closed: ClosedJaxpr, signature: Signature):
        # Kept, so that its address stays its own.
        self.closed = closed
        self.width = best_width() if signature.is_batch else 1
        module = ir.Module("rigidjax")
        out_sizes = [var.aval.size for var in closed.jaxpr.outvars]
        with _nothing_collected():
            self.workspace_bytes = emit_block(module, closed, signature, self.width)
            _emit_handler(module, closed, signature, self.width, self.workspace_bytes, out_sizes)
            self.text = str(module)
        self.code = _code(self.text)
        self.name = f"rigidjax_{self.code.name}"


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Python's garbage collector waits: it would go through the program again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_codes: dict[str, Code] = {}


def _code(text: str) -> Code:
    """Machine code of a module, known to XLA by a name that is the same in every process.

    So JAX's cache of compiled programs finds those that call it.
    """
    if text not in _codes:
        code = Code(text)
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.address("handler"))
        capsule = jax.ffi.pycapsule(function)
        jax.ffi.register_ffi_target(f"rigidjax_{code.name}", capsule, platform="cpu", api_version=1)
        _codes[text] = code
    return _codes[text]


_kernels: dict[Any, Kernel] = {}


def kernel(closed: ClosedJaxpr, signature: Signature) -> Kernel:
    """The kernel of a program, emitted at the first call."""
    key = id(closed), signature
    if key not in _kernels:
        made = Kernel(closed, signature)
        _kernels[key] = made
    return _kernels[key]


def emit_block(module, closed, signature, width):
    """Emit `block`; returns the bytes of memory that it needs."""
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, I64, I64])
    function = ir.Function(module, kind, "block")
    function.linkage = "internal"
    inputs, outputs, workspace, first, count = function.args
    workspace.add_attribute("noalias")
    entry = function.append_basic_block("entry")
    builder = ir.IRBuilder(entry)
    start = function.append_basic_block("start")
    builder.branch(start)
    builder.position_at_end(start)
    em = Emitter(builder, width, workspace)
    members = _members(em.lanes, first, count)
    args = []
    for k, (aval, batched) in enumerate(zip(closed.in_avals, signature.batched, strict=True)):
        pointer = _at(builder, inputs, k)
        args.append(_argument(em, pointer, aval, members if batched else None))
    results = em.run(closed, args)
    for k, (aval, result) in enumerate(zip(closed.out_avals, results, strict=True)):
        _result(em, _at(builder, outputs, k), aval, result, members, signature.is_batch)
    builder.ret_void()
    return em.memory.bytes


def _members(lanes: Lanes, first, count):
    """Member of the batch in each lane; the last one again where there are no more."""
    build, out = lanes.builder, []
    last = build.sub(count, ir.Constant(I64, 1))
    for k in range(lanes.width):
        member = build.add(first, ir.Constant(I64, k))
        out.append(build.select(build.icmp_signed("<", member, last), member, last))
    return out


def _at(builder, pointers, k):
    """Pointer number `k` of an array of pointers."""
    return builder.load(
        builder.gep(pointers, [ir.Constant(I64, k)], source_etype=POINTER), typ=POINTER
    )


def _stored(dtype):
    return I8 if dtype == np.bool_ else element_type(dtype)


class _Members:
    """The numbers of an argument or a result of XLA's, one member of the batch in each lane."""

    def __init__(self, em, pointer, dtype, size, members):
        self.em, self.dtype, self.stored = em, dtype, _stored(dtype)
        self.parts = 2 if is_complex(dtype) else 1
        extent = ir.Constant(I64, size * self.parts)
        build = em.builder
        self.starts = [
            build.gep(pointer, [build.mul(m, extent)], source_etype=self.stored) for m in members
        ]

    def _places(self, number):
        build = self.em.builder
        first = build.mul(number, ir.Constant(I64, self.parts))
        return [build.add(first, ir.Constant(I64, k)) for k in range(self.parts)]

    def load(self, number):
        """Number `number` of each member."""
        out = [self._load(place) for place in self._places(number)]
        return Pair(*out) if self.parts == 2 else out[0]

    def _load(self, place):
        em, build = self.em, self.em.builder
        values = []
        for base in self.starts:
            address = build.gep(base, [place], source_etype=self.stored)
            align = part_dtype(self.dtype).itemsize
            values.append(build.load(address, typ=self.stored, align=align))
        value = em.lanes.gathered(values)
        return build.trunc(value, em.lanes.type(np.bool_)) if self.dtype == np.bool_ else value

    def store(self, number, value):
        """Set number `number` of each member."""
        value = self.em.lanes.value(value, self.dtype)
        values = [value.real, value.imag] if isinstance(value, Pair) else [value]
        for place, part in zip(self._places(number), values, strict=True):
            self._store(place, part)

    def _store(self, place, value):
        em, build = self.em, self.em.builder
        if self.dtype == np.bool_:
            value = build.zext(value, em.lanes.vector(I8))
        for k, base in enumerate(self.starts):
            address = build.gep(base, [place], source_etype=self.stored)
            align = part_dtype(self.dtype).itemsize
            build.store(em.lanes.lane(value, k), address, align=align)


def _argument(em, pointer, aval, members):
    """An argument as an array of the program; `members` is `None` if it is the same for all."""
    dtype, shape, size = np.dtype(aval.dtype), tuple(aval.shape), aval.size
    shared = View(Buffer(pointer, dtype, size, shared=True, own=False), shape, row_major(shape))
    if members is None:
        return em.registers(shared) if size <= REGISTERS else shared
    load = _Members(em, pointer, dtype, size, members).load
    if size <= REGISTERS:
        out = np.empty(shape, object)
        for number, index in enumerate(np.ndindex(shape)):
            out[index] = load(ir.Constant(I64, number))
        return out
    flat = em.memory.allocate((size,), dtype)
    with em.loop(size) as number:
        em.memory.write(flat, (number,), load(number))
    return flat.reshaped(shape)


def _result(em, pointer, aval, result, members, is_batch):
    dtype, shape, size = np.dtype(aval.dtype), tuple(aval.shape), aval.size
    if not size:
        return
    build = em.builder
    everyone = members if is_batch else [ir.Constant(I64, 0)]
    store = _Members(em, pointer, dtype, size, everyone).store
    if isinstance(result, View):
        with em.indices(shape) as index:
            number = ir.Constant(I64, 0)
            for i, stride in zip(index, row_major(shape), strict=True):
                i = ir.Constant(I64, i) if isinstance(i, int) else i
                number = build.add(number, build.mul(i, ir.Constant(I64, stride)))
            store(number, em.memory.read(result, index))
        return
    for number, index in enumerate(np.ndindex(shape)):
        store(ir.Constant(I64, number), result[index])


def _emit_handler(module, closed, signature, width, workspace_bytes, out_sizes):
    """Emit the function that XLA calls."""
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER]), "handler")
    frame = Frame(function)
    builder = frame.builder
    inputs = frame.pointers(frame.arguments, len(closed.in_avals))
    outputs = frame.pointers(frame.results, len(closed.out_avals))
    count = ir.Constant(I64, 1)
    if signature.is_batch:
        count = frame.first_extent(frame.results, 0)
    malloc = ir.Function(module, ir.FunctionType(POINTER, [I64]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    workspace = builder.call(malloc, [ir.Constant(I64, workspace_bytes + 64)])
    block = module.globals["block"]
    before = builder.block
    test, turn, end = (builder.append_basic_block(name) for name in ("test", "turn", "end"))
    builder.branch(test)
    builder.position_at_end(test)
    first = builder.phi(I64)
    first.add_incoming(ir.Constant(I64, 0), before)
    builder.cbranch(builder.icmp_signed("<", first, count), turn, end)
    builder.position_at_end(turn)
    builder.call(block, [inputs, outputs, workspace, first, count])
    first.add_incoming(builder.add(first, ir.Constant(I64, width)), turn)
    builder.branch(test)
    builder.position_at_end(end)
    builder.call(free, [workspace])
    builder.ret(ir.Constant(POINTER, None))
