"""Kernels on a machine with a GPU: loaded by CUDA's driver, launched on XLA's stream.

The handler that XLA calls is code of the processor: it reads the buffers from the call frame,
takes scratch memory from XLA and calls the driver. Python takes no part in a call.
"""

import ctypes
import functools
from typing import NamedTuple, Protocol

import jax
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...lowering.builder import I32, I64, int32, int64
from ...lowering.lanes import POINTER
from ...lowering.registry import NoRule
from .. import disk as disk
from ..codegen import GPUS, MachineCode, compile_module
from ..ffi_frame import CallFrame, global_variable
from ..kernel import REGISTRY_LOCK, Signature, get_kernel
from . import host_fallback as host, ptx as gpu

# Threads of a block; threads at most of a kernel with scratch memory; members up to which the
# processor computes them (see `host`).
_BLOCK, _THREADS, _SMALL_BATCH = gpu.WARP, 1 << 17, gpu.WARP
_LIBRARY = "libcuda.so.1"
# Of a jit option of CUDA: where it writes what is wrong with a text, and how much at most.
_LOG, _LOG_BYTES = 5, 6


class Driver(Protocol):
    """What is asked of CUDA's driver."""

    def load(self, ptx: str) -> int:
        """A kernel of a text, as the driver names it."""
        ...

    def address(self, name: str) -> int:
        """Where one of its functions begins."""
        ...


class Cuda:
    """CUDA's driver, which JAX has loaded too.

    **Errors:** `OSError` on a machine without one; `RuntimeError` for one that is too old.
    """

    def __init__(self):
        self._library = ctypes.CDLL(_LIBRARY)
        if not hasattr(self._library, "cuLibraryLoadData"):
            raise RuntimeError(f"{_LIBRARY} is older than CUDA 12.")
        self._called("cuInit", 0)

    def load(self, ptx: str) -> int:
        """A kernel of a text, compiled for the GPU that it runs on.

        **Raises:** `RuntimeError` if the driver does not take it.
        """
        log = ctypes.create_string_buffer(4_096)
        options = (ctypes.c_int * 2)(_LOG, _LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), ctypes.sizeof(log))
        library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        text = ptx.encode() + b"\0"
        self._called(
            "cuLibraryLoadData", ctypes.byref(library), text, options, values, 2, None, None, 0,
            log=log,
        )  # fmt: skip
        self._called("cuLibraryGetKernel", ctypes.byref(kernel), library, gpu.NAME.encode())
        return kernel.value or 0

    def address(self, name: str) -> int:
        """Where a function of the driver begins."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def _called(self, name, *args, log=None):
        code = getattr(self._library, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            more = log.value.decode(errors="replace") if log is not None else ""
            known = (text.value or b"").decode()
            raise RuntimeError(
                f'CUDA\'s {name} failed with {known} ({code}). {more} Use `backend="xla"`, or a '
                "driver for CUDA 12 or newer."
            )


@functools.cache
def find_driver() -> Driver | None:
    """CUDA's driver; `None` on a machine without one."""
    try:
        return Cuda()
    except (OSError, RuntimeError):
        return None


@functools.cache
def find_architecture() -> str | None:
    """The newest of `GPUS` that all of JAX's GPUs can run; `None` without such a GPU."""
    try:
        devices = jax.devices("cuda")
    except RuntimeError:
        return None
    capabilities = [int(d.compute_capability.replace(".", "")) for d in devices]
    fit = [name for name in GPUS if int(name[3:]) <= min(capabilities)]
    return fit[-1] if fit else None


@functools.cache
def scratch_limit() -> int:
    """Bytes of scratch memory that a kernel takes at most: an eighth of the smallest GPU's."""
    stats = [device.memory_stats() or {} for device in jax.devices("cuda")]
    return min(one.get("bytes_limit", 8 << 30) for one in stats) // 8


def why_not_on_default_device(closed: ClosedJaxpr) -> list[str]:
    """What keeps a program from being a kernel on JAX's default device; empty if nothing."""
    chosen = getattr(jax.config, "jax_default_device", None)
    platform = getattr(chosen, "platform", chosen) or jax.default_backend()
    if platform == "cpu":
        return []
    if platform in ("gpu", "cuda") and find_driver() and find_architecture():
        return _why_too_many_buffers(closed)
    return [
        f"native kernels run on processors and on NVIDIA's GPUs ({GPUS[0]} or newer, with a "
        f"driver for CUDA 12), and JAX's default device is {platform!r}"
    ]


class Handler:
    """What XLA calls in programs for GPUs.

    **Arguments:** `text`, its module; `values` of the module's variables, by name.

    **Attributes:** `address`.
    """

    def __init__(self, text: str, values: dict[str, int]):
        self._code = compile_module(text)
        for name, value in values.items():
            ctypes.c_void_p.from_address(self._code.variable(name)).value = value
        self.address = self._code.address("handler")


def make_gpu_handler(ptx: str, handler: str, cuda: Driver) -> Handler:
    """The handler of a kernel of the GPU, of both texts."""
    return Handler(handler, {"kernel": cuda.load(ptx), "launch": cuda.address("cuLaunchKernel")})


def make_host_handler(handler: str, code: MachineCode, cuda: Driver) -> Handler:
    """The handler of a kernel of the processor, of its text and that kernel's code."""
    values = {name: cuda.address(name) for name in host.FUNCTIONS}
    return Handler(handler, {"computed": code.address("handler"), **values})


def _why_too_many_buffers(closed):
    buffers = len(closed.in_avals) + len(closed.out_avals)
    if buffers <= gpu.MAX_POINTERS:
        return []
    return [f"a kernel of CUDA's takes {gpu.MAX_POINTERS} arrays at most, this has {buffers}"]


class RegisteredKernel(NamedTuple):
    """A kernel that XLA knows.

    **Attributes:** `name`; `source`, its program, kept so that its address stays its own.
    """

    name: str
    source: ClosedJaxpr


_kernels: dict[tuple, RegisteredKernel] = {}
_handlers: dict[str, Handler] = {}


def emit_texts(
    closed: ClosedJaxpr, signature: Signature, processor: str, limit: int
) -> tuple[str, str]:
    """A program as PTX, and the module of its handler; `limit` as of `handler_text`."""
    made = gpu.ptx(closed, signature, processor)
    return made.ptx, handler_text(closed, signature, made.scratch, limit)


def get_gpu_kernel(
    closed: ClosedJaxpr, signature: Signature, size: int | None
) -> RegisteredKernel | None:
    """The kernel of a program for a batch of this size; `None` on a machine without such a GPU.

    Few members are the processor's work (see `host`).

    **Raises:** `NoRule`; `RuntimeError` if CUDA's driver does not take it.
    """
    cuda, processor = find_driver(), find_architecture()
    if cuda is None or processor is None:
        return None
    are_few = (1 if size is None else size) <= _SMALL_BATCH
    if not are_few and (reasons := _why_too_many_buffers(closed)):
        raise NoRule(*reasons)
    key = id(closed), signature, are_few
    with REGISTRY_LOCK:
        if key not in _kernels:
            if are_few:
                code, text = (
                    get_kernel(closed, signature).code,
                    host.handler_text(closed, signature),
                )
                name = _register_with_xla(
                    (code.name, text), lambda: make_host_handler(text, code, cuda)
                )
            else:
                both = emit_texts(closed, signature, processor, scratch_limit())
                name = _register_with_xla(both, lambda: make_gpu_handler(*both, cuda))
            _kernels[key] = RegisteredKernel(name, closed)
        return _kernels[key]


def _register_with_xla(texts, made):
    """The name by which XLA knows a handler. Programs that differ in names alone have the same."""
    name = f"rigidjax_{disk.digest(*texts)}"
    if name not in _handlers:
        _handlers[name] = made()
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        capsule = jax.ffi.pycapsule(kind(_handlers[name].address))
        jax.ffi.register_ffi_target(name, capsule, platform="CUDA", api_version=1)
    return name


def handler_text(closed: ClosedJaxpr, signature: Signature, scratch: int, limit: int) -> str:
    """The module of the function that XLA calls; its variables are to be set before.

    **Arguments:** `scratch`, bytes of scratch memory for a thread, and `limit`, for all.
    """
    module = ir.Module("rigidjax")
    variables = [global_variable(module, name) for name in ("kernel", "launch")]
    frame = CallFrame(ir.Function(module, ir.FunctionType(POINTER, [POINTER]), "handler"))
    build, nothing = frame.builder, ir.Constant(POINTER, None)
    count = frame.first_extent(frame.results, 0) if signature.is_batch else _number(1)
    with build.if_then(build.icmp_signed("<", count, _number(1))):
        build.ret(nothing)
    threads = count
    if scratch:
        most = _number(min(_THREADS, max(limit // scratch, _BLOCK)))
        threads = build.select(build.icmp_signed("<", count, most), count, most)
    blocks = build.sdiv(build.add(threads, _number(_BLOCK - 1)), _number(_BLOCK))
    stream = frame.stream()
    size = build.mul(blocks, _number(_BLOCK * scratch))
    memory = frame.allocate(size) if scratch else _number(0)
    # Where the values of the kernel's arguments are.
    first = gpu.pointer_array(build, [build.inttoptr(x, POINTER) for x in (count, memory)])
    places = [_pointer_at(build, first, k) for k in range(2)]
    for buffers, avals in (frame.arguments, closed.in_avals), (frame.results, closed.out_avals):
        pointers = frame.pointers(buffers, len(avals))
        places += [_pointer_at(build, pointers, k) for k in range(len(avals))]
    kind = ir.FunctionType(I32, [POINTER, *[I32] * 7, *[POINTER] * 3]).as_pointer()
    kernel, launch = (build.load(v, typ=I64) for v in variables)
    extents = build.trunc(blocks, I32), *(int32(n) for n in (1, 1, _BLOCK, 1, 1, 0))
    code = build.call(
        build.inttoptr(launch, kind),
        [
            build.inttoptr(kernel, POINTER),
            *extents,
            stream,
            gpu.pointer_array(build, places),
            nothing,
        ],
    )
    if scratch:
        frame.free(memory, size)
    with build.if_then(build.icmp_signed("!=", code, int32(0))):
        frame.refuse("CUDA could not launch a native kernel of rigidjax: its error %d", code)
    build.ret(nothing)
    return str(module)


def _number(value):
    return int64(value)


def _pointer_at(build, pointers, k):
    return build.gep(pointers, [_number(k)], source_etype=POINTER)
