"""A kernel: a program for a batch, as a function that XLA calls.

The function of blocks, `block(inputs, outputs, workspace, first, count)`, loads the arguments of W
members of the batch into lanes, runs the program and stores the results; where lanes are refilled
(see `refill`) it does that for all members. The handler reads the buffers from XLA's call frame
(see `frame`) and goes through all blocks.
"""

import ctypes
import dataclasses
import functools
import threading

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ..lowering import rules  # noqa: F401  (fills the registry)
from ..lowering.block_io import load_argument, store_result
from ..lowering.builder import I64, Builder, int64
from ..lowering.emitter import Emitter
from ..lowering.lane_compaction import (
    ConstantTripCount,
    LaneCompaction,
    MainLoopSplit,
    split_at_main_loop,
)
from ..lowering.lanes import POINTER, Lanes
from ..lowering.memory import KernelMemory
from ..passes.analysis import cost, count_outside_registers
from ..passes.loop_fusion import fuse_loops
from ..passes.outlining import find_jaxprs_to_outline
from ..passes.uniformity import all_lanes_if, broadcast_to_lanes, take_first_lane
from . import disk
from .cache_key import compute_cache_key
from .codegen import (
    MachineCode,
    OptimisationLevel,
    choose_optimisation_level,
    compile_module,
    default_width,
    max_width,
)
from .ffi_frame import CallFrame
from .garbage import gc_paused
from .thread_pool import emit_parallel_batch

# Bytes of memory, without tables, up to which a kernel's blocks are the `widest`: a processor's
# first cache. On an Intel processor with AVX-512, batches of 512 tops are 1.6 (`MuntheKaas`), 1.4
# (Dopri5, Dopri8), 1.15 times (BDF, energy-momentum) as fast with 8 lanes as with 4, their tangents
# 1.1 to 1.6 times, gradients of Dopri5 and Dopri8 1.2 times; `Radau5`, of 84 kB with 4 lanes, takes
# 1.2 times as long.
FIRST_CACHE = 48 * 1024
# Numbers that a program computes (see `cost`), without tables, from which on that is not tried.
LONG_JAXPR = 50_000


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a kernel is made for.

    **Arguments:** `batched`, for each argument whether it has a batch axis (the first one);
    `is_batch`, whether there is a batch at all; `once`, whether it is compiled fast rather than
    well; `several`, the length of stacks of tangents in it, if it has some; `values`, number of its
    first results that depend on no argument with a batch axis, of which nobody reads other members
    than the first; `few`, whether there are no more members than `usual_width`.
    """

    batched: tuple[bool, ...]
    is_batch: bool
    once: bool = False
    several: int = 0
    values: int = 0
    few: bool = False


class Kernel:
    """Machine code of a program for one signature.

    **Attributes:** `code`; `name`, by which XLA knows it.
    """

    @gc_paused()
    def __init__(self, closed: ClosedJaxpr, signature: Signature):
        # Kept, so that its address stays its own.
        self.source, self.signature = closed, signature
        named = compute_cache_key(closed, signature)
        code = None if named is None else self._kept(named)
        if code is None:
            code = _register_with_xla(compile_module(self.text, self._effort))
            if named is not None:
                level, *passes = str(self._effort.level), *self._effort.passes
                disk.write(named, " ".join((code.name, level, *passes)).encode())
        self.code = code
        self.name = f"rigidjax_{self.code.name}"

    def _kept(self, named: str) -> MachineCode | None:
        """The code that another process has made, if it is on disk."""
        found = disk.read(named)
        if found is None:
            return None
        name, level, *passes = found.decode().split()
        machine_code = disk.read(name)
        if machine_code is None:
            return None
        optimisation = OptimisationLevel(tuple(passes), int(level))
        return _register_with_xla(MachineCode(name, machine_code, lambda: self.text, optimisation))

    @functools.cached_property
    def _shared(self) -> frozenset[int]:
        return frozenset() if self.signature.is_batch else find_jaxprs_to_outline(self.source)

    @functools.cached_property
    def closed(self) -> ClosedJaxpr:
        """The program as it is emitted."""
        return fuse_loops(self.source, several=self.signature.several, shared=self._shared)

    @functools.cached_property
    def _emission(self) -> tuple[str, int, bool]:
        parts = None
        if self.signature.is_batch and not self.signature.values:
            parts = split_at_main_loop(self.closed, self.signature.batched)
        text, width = "", 0
        for width in self._widths():
            try:
                text, near = self._emitted(width, parts)
            except ConstantTripCount:
                parts = None
                text, near = self._emitted(width, None)
            if near <= FIRST_CACHE:
                break
        return text, width, parts is not None

    @property
    def text(self) -> str:
        """The module as it is emitted."""
        return self._emission[0]

    @property
    def width(self) -> int:
        """Members of a block."""
        return self._emission[1]

    @property
    def is_refilled(self) -> bool:
        """Whether lanes take other members of the batch when they are done."""
        return self._emission[2]

    @property
    def _effort(self):
        # Programs with functions are long: code is generated fast, whatever lines functions save.
        once = self.signature.once or bool(self._shared)
        return choose_optimisation_level(self.text, self.signature.is_batch, once)

    def _widths(self) -> list[int]:
        """Members of a block: the first number whose memory is near enough, or the last."""
        if not self.signature.is_batch:
            return [1]
        jaxpr, few = self.closed.jaxpr, default_width()
        is_long = cost(jaxpr) - count_outside_registers(jaxpr) > LONG_JAXPR
        if self.signature.once or self.signature.few or is_long:
            return [few]
        return [max_width(), few] if max_width() > few else [few]

    def _emitted(self, width: int, parts: MainLoopSplit | None) -> tuple[str, int]:
        """The text of the module, and bytes of its memory without tables."""
        module = ir.Module("rigidjax")
        memory = emit_block(
            module, self.closed, self.signature, width, parts, row=default_width(),
            mixed=self.signature.values > 0,
        )  # fmt: skip
        of_all = memory.bytes
        _emit_handler(module, self.closed, self.signature, width, of_all, parts is not None)
        return str(module), of_all - memory.table_bytes


_codes: dict[str, MachineCode] = {}


def _register_with_xla(code: MachineCode) -> MachineCode:
    """Machine code known to XLA by a name that is the same in every process.

    So JAX's cache of compiled programs finds those that call it.
    """
    if code.name not in _codes:
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.address("handler"))
        capsule = jax.ffi.pycapsule(function)
        jax.ffi.register_ffi_target(f"rigidjax_{code.name}", capsule, platform="cpu", api_version=1)
        _codes[code.name] = code
    return _codes[code.name]


_kernels: dict[tuple, Kernel] = {}
# Threads that make the same kernel at the same time would tell XLA of it twice.
REGISTRY_LOCK = threading.RLock()


def get_kernel(closed: ClosedJaxpr, signature: Signature) -> Kernel:
    """The kernel of a program, emitted at the first call."""
    key = id(closed), signature
    with REGISTRY_LOCK:
        if key not in _kernels:
            _kernels[key] = Kernel(closed, signature)
        return _kernels[key]


@np.errstate(all="ignore")  # of what is known: infinities and NaN are numbers like others
def emit_block(
    module: ir.Module, closed: ClosedJaxpr, signature: Signature, width: int,
    parts: MainLoopSplit | None = None, row: int = 1, warp: int = 1, mixed: bool = False,
) -> KernelMemory:  # fmt: skip
    """Emit `block`, for all members that follow if there are `parts`; `row` as in `Emitter`.

    If `mixed`, only what differs from lane to lane is computed for each of them (see `mixed`).
    Returns the memory that it needs. Where the threads of a `warp` have it together, the last
    argument of `block` is the number of a thread among them.
    """
    kind = ir.FunctionType(
        ir.VoidType(), [POINTER, POINTER, POINTER, I64, I64, *[I64] * (warp > 1)]
    )
    function = ir.Function(module, kind, "block")
    function.linkage = "internal"
    # LLVM would go through its instructions again in each function that it becomes a part of.
    function.attributes.add("noinline")
    # Else vectors that registers cannot hold lie across cache lines on the stack.
    function.attributes.alignstack = 64 if width > 1 else 0
    inputs, outputs, workspace, first, count, *thread = function.args
    workspace.add_attribute("noalias")
    entry = function.append_basic_block("entry")
    builder = Builder(entry)
    start = function.append_basic_block("start")
    builder.branch(start)
    builder.position_at_end(start)
    lanes, row = (1, width) if mixed else (width, row)
    of_warp = (warp, thread[0]) if thread else None
    em = Emitter(builder, lanes, workspace, row, warp=of_warp, has_divergence=mixed)
    sources = [_load_pointer(builder, inputs, k) for k in range(len(closed.in_avals))]
    targets = [_load_pointer(builder, outputs, k) for k in range(len(closed.out_avals))]
    if parts is None:
        with all_lanes_if(em, mixed):
            members = _batch_indices(em.lanes, first, count)
        limits, args = em.find_register_limits(closed.jaxpr, [None] * len(sources)), []
        for pointer, aval, batched, limit in zip(
            sources, closed.in_avals, signature.batched, limits, strict=True
        ):
            with all_lanes_if(em, mixed and batched):
                args.append(load_argument(em, pointer, aval, members if batched else None, limit))
        results = em.emit(closed, args)
        everyone = members if signature.is_batch else [int64(0)]
        for k, (pointer, aval) in enumerate(zip(targets, closed.out_avals, strict=True)):
            if k < signature.values:
                store_result(em, pointer, aval, take_first_lane(em, results[k]), [int64(0)])
                continue
            with all_lanes_if(em, mixed):
                result = broadcast_to_lanes(em, results[k]) if mixed else results[k]
                store_result(em, pointer, aval, result, everyone)
    else:
        LaneCompaction(em, closed, signature.batched, parts).emit(sources, targets, first, count)
    builder.ret_void()
    return em.memory


def _batch_indices(lanes: Lanes, first, count):
    """Member of the batch in each lane; the last one again where there are no more."""
    build, out = lanes.builder, []
    last = build.sub(count, int64(1))
    for k in range(lanes.width):
        member = build.add(first, int64(k))
        out.append(build.select(build.icmp_signed("<", member, last), member, last))
    return out


def _load_pointer(builder, pointers, k):
    """Pointer number `k` of an array of pointers."""
    return builder.load(builder.gep(pointers, [int64(k)], source_etype=POINTER), typ=POINTER)


def _emit_handler(module, closed, signature, width, workspace_bytes, at_once):
    """Emit the function that XLA calls."""
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER]), "handler")
    frame = CallFrame(function)
    builder = frame.builder
    inputs = frame.pointers(frame.arguments, len(closed.in_avals))
    outputs = frame.pointers(frame.results, len(closed.out_avals))
    count = int64(1)
    if signature.is_batch:
        count = frame.first_extent(frame.results, 0)
    malloc = ir.Function(module, ir.FunctionType(POINTER, [I64]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    run = _emit_range(module, width, workspace_bytes, at_once, malloc, free)
    if signature.is_batch:
        emit_parallel_batch(frame, count, inputs, outputs, width, run)
    else:
        builder.call(run, [inputs, outputs, int64(0), count])
    builder.ret(ir.Constant(POINTER, None))


def _emit_range(module, width, workspace_bytes, at_once, malloc, free):
    """Emit the function that does the members from `first` to before `last`."""
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
    function = ir.Function(module, kind, "members")
    function.linkage = "internal"
    function.attributes.add("noinline")
    inputs, outputs, begin, last = function.args
    before = function.append_basic_block("entry")
    builder = Builder(before)
    allocated = builder.call(malloc, [int64(workspace_bytes + 64)])
    # Where a cache line begins.
    aligned = builder.and_(builder.add(builder.ptrtoint(allocated, I64), int64(63)), int64(-64))
    workspace = builder.inttoptr(aligned, POINTER)
    test, turn, end = (function.append_basic_block(name) for name in ("test", "turn", "end"))
    builder.branch(test)
    builder.position_at_end(test)
    first = builder.phi(I64)
    first.add_incoming(begin, before)
    builder.cbranch(builder.icmp_signed("<", first, last), turn, end)
    builder.position_at_end(turn)
    builder.call(module.globals["block"], [inputs, outputs, workspace, first, last])
    first.add_incoming(last if at_once else builder.add(first, int64(width)), turn)
    builder.branch(test)
    builder.position_at_end(end)
    builder.call(free, [allocated])
    builder.ret_void()
    return function
