"""Compilation of LLVM modules to machine code of this processor, or to PTX."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import llvmlite.binding as llvm

from . import disk as disk

_LOCK = threading.Lock()
# Longest module, in lines, that gets the passes of LLVM's level 1, without which loops over tables
# are several times slower. Level 2 takes longer and makes no faster code. The compile time grows
# faster than the length of the module. Modules for batches run longer, which repays more lines.
SHORT, SHORT_BATCH = 15_000, 25_000
# Length, in lines, above which code is generated fast and is some three times slower.
LONG, LONG_BATCH = 100_000, 200_000


class OptimisationLevel(NamedTuple):
    """Optimisations by LLVM.

    **Attributes:** `passes`, names of passes, those of LLVM's level 1 if empty; `level`, the
    optimisation level of code generation.
    """

    passes: tuple[str, ...] = ()
    level: int = 2


# `instruction_combine` takes as long as fast code generation, so that it pays for batches alone.
_MINIMAL, _REDUCED = (
    OptimisationLevel(("simplify_cfg",), 0),
    OptimisationLevel(("sroa", "simplify_cfg")),
)
_REDUCED_BATCH = OptimisationLevel((
    "sroa", "instruction_combine", "simplify_cfg", "mem_copy_opt", "dead_store_elimination",
    "instruction_combine",
))  # fmt: skip
# Part of the name of code on disk. Change it whenever `MachineCode` or the pipeline changes.
_VERSION = "8"
# GPU architectures for which PTX is generated.
GPUS = ("sm_80", "sm_86", "sm_89", "sm_90")


def choose_optimisation_level(
    text: str, batch: bool = False, run_once: bool = False
) -> OptimisationLevel:
    """Return the optimisations of a module: fewer for a long module, or one that runs once.

    **Arguments:** `text` of the module; `batch`, whether it computes batches.
    """
    lines = text.count("\n")
    if run_once or lines > (LONG_BATCH if batch else LONG):
        return _MINIMAL
    if lines <= (SHORT_BATCH if batch else SHORT):
        return OptimisationLevel()
    return _REDUCED_BATCH if batch else _REDUCED


@functools.cache
def host_processor() -> tuple[str, str]:
    """Return LLVM's name and features of this machine's processor."""
    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), ",".join(
        ("+" if on else "-") + k for k, on in features.items()
    )


@functools.cache
def default_width() -> int:
    """Return the usual number of lanes: 4 with AVX2 or AVX-512, else 2."""
    features = llvm.get_host_cpu_features()
    return 4 if features.get("avx2") or features.get("avx512f") else 2


@functools.cache
def max_width() -> int:
    """Return the number of lanes for short jaxprs: 8 with AVX-512, else `default_width`."""
    return 8 if llvm.get_host_cpu_features().get("avx512f") else default_width()


@functools.cache
def _initialise_llvm() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(level: int) -> llvm.TargetMachine:
    _initialise_llvm()
    name, features = host_processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=level, cpu=name, features=features, jit=True)


class MachineCode:
    """Machine code in memory, which is freed together with this object.

    **Arguments:** `name`, its name in the cache on disk; `machine_code`, the content of an object
    file; `text`, a function that returns the LLVM module; `level`, the optimisations.
    """

    def __init__(
        self,
        name: str,
        machine_code: bytes,
        text: Callable[[], str],
        level: OptimisationLevel = OptimisationLevel(),
    ):
        self.name, self._text, self._level = name, text, level
        # LLVM's global state is not safe for concurrent use.
        with _LOCK:
            empty = llvm.parse_assembly("")
            self._engine = llvm.create_mcjit_compiler(empty, _target_machine(level.level))
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function of the module."""
        return self._engine.get_function_address(name)

    def variable(self, name: str) -> int:
        """Return the address of a global variable of the module."""
        return self._engine.get_global_value_address(name)

    def optimised_text(self) -> str:
        """Return the module after LLVM's passes."""
        with _LOCK:
            machine = _target_machine(self._level.level)
            return str(_run_passes(self._text(), machine, self._level.passes))


def compile_module(text: str, level: OptimisationLevel = OptimisationLevel()) -> MachineCode:
    """Compile a module to machine code, or read the code from the cache on disk."""
    options = *level.passes, str(level.level)
    name = disk.digest(text, _llvm_version(), *host_processor(), _VERSION, *options)
    machine_code = disk.read(name)
    if machine_code is None:
        with _LOCK:
            machine = _target_machine(level.level)
            machine_code = machine.emit_object(_run_passes(text, machine, level.passes))
        disk.write(name, machine_code)
    return MachineCode(name, machine_code, lambda: text, level)


def emit_object(text: str, level: OptimisationLevel, triple: str, cpu: str) -> bytes:
    """Compile a module to an object file of any processor, or read it from the cache on disk.

    The code is position-independent.

    **Arguments:** `triple`, LLVM's target triple; `cpu`, LLVM's name of the processor.
    """
    options = *level.passes, str(level.level)
    name = disk.digest(text, _llvm_version(), triple, cpu, _VERSION, *options)
    content = disk.read(name)
    if content is not None:
        return content
    with _LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        machine = llvm.Target.from_triple(triple).create_target_machine(
            cpu=cpu, opt=level.level, reloc="pic", codemodel="default"
        )
        header = f'target triple = "{triple}"\ntarget datalayout = "{machine.target_data}"\n'
        lines = (line for line in text.splitlines() if not line.startswith("target "))
        module = _run_passes(header + "\n".join(lines), machine, level.passes)
        content = machine.emit_object(module)
    disk.write(name, content)
    return content


def _llvm_version() -> str:
    return ".".join(map(str, llvm.llvm_version_info))


def _run_passes(text: str, machine: llvm.TargetMachine, names: Sequence[str]) -> llvm.ModuleRef:
    """Run the named passes on a module, or those of LLVM's level 1 if there are no names."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.slp_vectorization = False
    options.loop_unrolling = False  # makes modules several times longer, but no faster
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager() if names else builder.getModulePassManager()
    for name in names:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)
    return module


def compile_to_ptx(text: str, architecture: str = "sm_80") -> str:
    """Compile a module for a GPU to PTX, or read the text from the cache on disk.

    **Raises:** `ValueError` for an architecture that is not in `GPUS`, for which LLVM would abort
    the process.
    """
    if architecture not in GPUS:
        raise ValueError(f"`architecture` must be one of {', '.join(GPUS)}; got {architecture!r}.")
    passes = choose_optimisation_level(text, batch=True).passes
    name = disk.digest(text, _llvm_version(), architecture, _VERSION, *passes)
    content = disk.read(name)
    if content is not None:
        return content.decode()
    with _LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
        machine = target.create_target_machine(cpu=architecture, opt=3)
        ptx = machine.emit_assembly(_run_passes(text, machine, passes))
    disk.write(name, ptx.encode())
    return ptx
