"""XLA's call frame and CUDA's driver, played by the processor.

Structures as `xla/ffi/api/c_api.h` of jaxlib has them, written down once more: the package has
offsets alone.
"""

import ctypes as c

import numpy as np
from llvmlite import ir

from rigidjax.native.runtime.codegen import compile_module
from rigidjax.native.runtime.cuda import host_fallback as host, launch, ptx as gpu
from rigidjax.native.runtime.ffi_frame import VERSION
from rigidjax.native.runtime.kernel import get_kernel
from rigidjax.native.values.builder import I64

BASE = [("size", c.c_size_t), ("extension", c.c_void_p)]


def structure(name, *fields):
    return type(name, (c.Structure,), {"_fields_": [*BASE, *fields]})


Version = structure("Version", ("major", c.c_int), ("minor", c.c_int))
Buffer = structure(
    "Buffer",
    ("dtype", c.c_int),
    ("data", c.c_void_p),
    ("rank", c.c_int64),
    ("dims", c.POINTER(c.c_int64)),
)
Buffers = structure(
    "Buffers", ("count", c.c_int64), ("types", c.c_void_p), ("buffers", c.POINTER(c.c_void_p))
)
Attributes = structure(
    "Attributes", ("count", c.c_int64), ("types", c.c_void_p), ("names", c.c_void_p),
    ("values", c.c_void_p),
)  # fmt: skip
CallFrame = structure(
    "CallFrame", ("api", c.c_void_p), ("context", c.c_void_p), ("stage", c.c_int),
    ("arguments", Buffers), ("results", Buffers), ("attributes", Attributes),
    ("future", c.c_void_p),
)  # fmt: skip
StreamGet = structure("StreamGet", ("context", c.c_void_p), ("stream", c.c_void_p))
Allocate = structure(
    "Allocate", ("context", c.c_void_p), ("bytes", c.c_size_t), ("alignment", c.c_size_t),
    ("data", c.c_void_p),
)  # fmt: skip
Free = structure("Free", ("context", c.c_void_p), ("bytes", c.c_size_t), ("data", c.c_void_p))
Create = structure("Create", ("message", c.c_char_p), ("code", c.c_int))

FUNCTIONS = (
    "Error_Create Error_GetMessage Error_Destroy Handler_Register Stream_Get Type_Register "
    "ExecutionContext_Get State_Set State_Get DeviceMemory_Allocate DeviceMemory_Free "
    "ThreadPool_Schedule ThreadPool_NumThreads"
).split()
POINTERS = [(name, c.c_void_p) for name in ("internal", *FUNCTIONS)]
Api = structure("Api", ("version", Version), *POINTERS)
CONTEXT, STREAM, CURRENT, ERROR, REFUSED = 4711, 815, 1234, 99, 77


class Metadata(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("version", Version), ("traits", c.c_uint32), ("type", c.c_int64)
    ]  # fmt: skip


class Question(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("kind", c.c_int), ("next", c.c_void_p), ("metadata", c.c_void_p)
    ]  # fmt: skip


def version_of(handler):
    """Return the answer of a handler to the request for its version."""
    metadata = Metadata()
    question = Question(metadata=c.addressof(metadata))
    frame = CallFrame(extension=c.addressof(question))
    assert call(handler, frame) is None
    return metadata.version.major, metadata.version.minor


def call(handler, frame):
    return c.CFUNCTYPE(c.c_void_p, c.c_void_p)(handler)(c.addressof(frame))


class Device:
    """A GPU played by the processor: XLA's functions, and the driver's."""

    def __init__(self, closed, signature, code=0, has_memory=True, has_context=True):
        self.code, self.has_memory, self.has_context = code, has_memory, has_context
        self.texts, self.memory, self.freed, self.messages = [], {}, [], []
        self.launches = []
        module = ir.Module("host")
        self._kernel(module, closed, signature)
        self._kept = [
            c.CFUNCTYPE(c.c_void_p, c.POINTER(kind) if kind else c.c_void_p)(function)
            for kind, function in (
                (Create, self._create), (StreamGet, self._stream), (Allocate, self._allocate),
                (Free, self._free), (None, lambda args: REFUSED), (None, lambda args: None),
            )
        ]  # fmt: skip
        # XLA has no threads for a computation on a GPU, and says so.
        names = (
            "Error_Create Stream_Get DeviceMemory_Allocate DeviceMemory_Free "
            "ThreadPool_NumThreads Error_Destroy"
        ).split()
        addresses = (c.cast(f, c.c_void_p).value for f in self._kept)
        self.api = Api(**dict(zip(names, addresses, strict=True)))
        kind = c.CFUNCTYPE(
            c.c_int, c.c_void_p, *[c.c_uint] * 7, c.c_void_p, c.POINTER(c.c_void_p), c.c_void_p
        )
        self._driver = {"cuLaunchKernel": kind(self._record_launch)}
        pointer, copy = c.c_void_p, (c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p)
        for name, function, kinds in (
            ("cuStreamGetCtx", self._context_of, (pointer, c.POINTER(c.c_void_p))),
            ("cuCtxPushCurrent_v2", self._enter, (pointer,)),
            ("cuCtxPopCurrent_v2", self._leave, (c.POINTER(c.c_void_p),)),
            ("cuMemcpyDtoHAsync_v2", self._copy, copy),
            ("cuMemcpyHtoDAsync_v2", self._copy, copy),
            ("cuStreamSynchronize", self._wait, (pointer,)),
        ):
            self._driver[name] = c.CFUNCTYPE(c.c_int, *kinds)(function)
        self.contexts, self.copied = [], []

    # The driver.

    def load(self, ptx):
        self.texts.append(ptx)
        return 42

    def address(self, name):
        return c.cast(self._driver[name], c.c_void_p).value

    def _context_of(self, stream, context):
        assert stream == STREAM
        context[0] = CURRENT
        return 0 if self.has_context else 201

    def _enter(self, context):
        assert context == CURRENT
        if self.has_context:
            self.contexts.append("entered")
        return 0 if self.has_context else 201

    def _leave(self, context):
        self.contexts.append("left")
        return 0

    def _copy(self, target, source, size, stream):
        assert (stream, self.contexts) == (STREAM, ["entered"] * self.has_context)
        if not self.code:
            c.memmove(target, source, size)
            self.copied.append(size)
        return self.code

    def _wait(self, stream):
        assert stream == STREAM
        return 0

    def _kernel(self, module, closed, signature):
        """The kernel as code of the processor: the same but for where a thread's number is."""

        def place(function, build):
            found = []
            for name in ("thread", "threads"):
                variable = ir.GlobalVariable(module, I64, name)
                variable.initializer = ir.Constant(I64, 0)
                found.append(build.load(variable, typ=I64))
            return found

        self.scratch = gpu.emit_entry(module, closed, signature, place)
        self._host = compile_module(str(module))
        self._numbers = [
            c.c_int64.from_address(self._host.variable(k)) for k in ("thread", "threads")
        ]
        count = len(closed.in_avals) + len(closed.out_avals)
        kind = c.CFUNCTYPE(None, c.c_int64, *[c.c_void_p] * (1 + count))
        self._run, self._count = kind(self._host.address(gpu.NAME)), count

    def _record_launch(self, kernel, gx, gy, gz, bx, by, bz, shared, stream, places, extra):
        assert (gy, gz, by, bz, shared, extra) == (1, 1, 1, 1, 0, None)
        assert (kernel, stream) == (42, STREAM)
        self.launches.append((gx, bx))
        values = [c.c_int64.from_address(places[k]).value for k in range(2 + self._count)]
        self._numbers[1].value = gx * bx
        for thread in range(gx * bx):
            self._numbers[0].value = thread
            self._run(*values)
        return self.code

    # XLA's functions.

    def _create(self, args):
        self.messages.append((args[0].message.decode(), args[0].code))
        return ERROR

    def _stream(self, args):
        assert args[0].context == CONTEXT
        args[0].stream = STREAM

    def _allocate(self, args):
        # XLA gives more, and refuses to be asked for more.
        if not self.has_memory or args[0].alignment > 16:
            return REFUSED
        memory = c.create_string_buffer(args[0].bytes)
        args[0].data = c.addressof(memory)
        self.memory[args[0].data] = memory

    def _free(self, args):
        assert args[0].bytes == len(self.memory[args[0].data])
        self.freed.append(args[0].data)

    def call_handler(self, handler, arguments, results):
        """Call the handler with arrays and return its result."""
        kept = []

        def buffers(arrays):
            each = []
            for x in arrays:
                dims = (c.c_int64 * x.ndim)(*x.shape)
                each.append(Buffer(data=x.ctypes.data, rank=x.ndim, dims=dims))
            pointers = (c.c_void_p * max(len(each), 1))(*map(c.addressof, each))
            kept.append((each, pointers))
            return Buffers(count=len(each), buffers=pointers)

        assert all(isinstance(x, np.ndarray) for x in (*arguments, *results))
        frame = CallFrame(
            api=c.addressof(self.api), context=CONTEXT, stage=3, arguments=buffers(arguments),
            results=buffers(results),
        )  # fmt: skip
        return call(handler, frame)


def launch_kernel(closed, signature, count, inputs, limit=1 << 30, by_processor=False, **device):
    """Return the status of the handler of a kernel, the results, and the device."""
    played = Device(closed, signature, **device)
    if by_processor:
        text = host.handler_text(closed, signature)
        made = launch.make_host_handler(text, get_kernel(closed, signature).code, played)
    else:
        texts = launch.emit_texts(closed, signature, "sm_90", limit)
        made = launch.make_gpu_handler(*texts, played)
    assert version_of(made.address) == VERSION
    lead = () if count is None else (count,)
    results = [np.zeros((*lead, *a.shape), a.dtype) for a in closed.out_avals]
    return played.call_handler(made.address, inputs, results), results, played
