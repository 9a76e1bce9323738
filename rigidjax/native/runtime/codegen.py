"""LLVM: from the text of a module to machine code of this processor, or to PTX."""

import functools
import threading
from collections.abc import Callable
from typing import NamedTuple

import llvmlite.binding as llvm

from . import disk as disk

_LOCK = threading.Lock()
# Lines of a module up to which it gets LLVM's level 1, without which loops over tables take up to
# five times as long to run (`Odex`); level 2 takes longer and makes no faster code. Its times grow
# faster than the length: of `Radau5` on a top it takes 0.6 of 2.1 s, and gains nothing. What is
# made for a batch runs for longer, so that it pays for more lines.
SHORT, SHORT_BATCH = 15_000, 25_000
# Lines from which on code is generated fast rather than well (of 130,000 lines 0.6 s in the place
# of 3.8, and 2.5 times the time of a run).
LONG, LONG_BATCH = 75_000, 200_000


class OptimisationLevel(NamedTuple):
    """What LLVM does: its passes (those of level 1 if there are none), and its level for code."""

    passes: tuple[str, ...] = ()
    level: int = 2


# Before code that is generated fast, to combine instructions takes as long as to generate it; of
# a batch of tops with `Radau5` it takes 1 of 4 s, and a tenth of the time of a run.
_MINIMAL, _REDUCED = (
    OptimisationLevel(("simplify_cfg",), 0),
    OptimisationLevel(("sroa", "simplify_cfg")),
)
_REDUCED_BATCH = OptimisationLevel((
    "sroa", "instruction_combine", "simplify_cfg", "mem_copy_opt", "dead_store_elimination",
    "instruction_combine",
))  # fmt: skip
# Part of the name of code on disk: to be changed with what `Code` does.
_VERSION = "8"
# Architectures that PTX is written for.
GPUS = ("sm_80", "sm_86", "sm_89", "sm_90")


def choose_optimisation_level(
    text: str, batch: bool = False, once: bool = False
) -> OptimisationLevel:
    """What a module is worth: less if it is long, is no `batch`, or runs `once`."""
    lines = text.count("\n")
    if once or lines > (LONG_BATCH if batch else LONG):
        return _MINIMAL
    if lines <= (SHORT_BATCH if batch else SHORT):
        return OptimisationLevel()
    return _REDUCED_BATCH if batch else _REDUCED


@functools.cache
def host_processor() -> tuple[str, str]:
    """Name and features of this machine's processor, as LLVM calls them."""
    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), ",".join(
        ("+" if on else "-") + k for k, on in features.items()
    )


@functools.cache
def default_width() -> int:
    """Lanes of a block: float64 of a register with AVX2, half of one with AVX-512, else two."""
    features = llvm.get_host_cpu_features()
    return 4 if features.get("avx2") or features.get("avx512f") else 2


@functools.cache
def max_width() -> int:
    """Lanes of a block of a short program: 8 with AVX-512, `usual_width` else."""
    return 8 if llvm.get_host_cpu_features().get("avx512f") else default_width()


@functools.cache
def _initialise_llvm() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(level: int):
    _initialise_llvm()
    name, features = host_processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=level, cpu=name, features=features, jit=True)


class MachineCode:
    """Machine code, kept in memory as long as this object, and on disk (see `disk`).

    **Arguments:** `name`, by which it is on disk; `machine_code`; `text`, gives the module that it
    is of; `effort`.
    """

    def __init__(
        self,
        name: str,
        machine_code: bytes,
        text: Callable[[], str],
        level: OptimisationLevel = OptimisationLevel(),
    ):
        self.name, self._text, self._level = name, text, level
        # LLVM's passes share state of the process.
        with _LOCK:
            empty = llvm.parse_assembly("")
            self._engine = llvm.create_mcjit_compiler(empty, _target_machine(level.level))
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function of the module begins."""
        return self._engine.get_function_address(name)

    def variable(self, name: str) -> int:
        """Where a variable of the module is."""
        return self._engine.get_global_value_address(name)

    def optimised(self) -> str:
        """The module after LLVM's passes."""
        with _LOCK:
            machine = _target_machine(self._level.level)
            return str(_run_passes(self._text(), machine, self._level.passes))


def compile_module(text: str, level: OptimisationLevel = OptimisationLevel()) -> MachineCode:
    """Machine code of a module, from disk if it is there."""
    how = *level.passes, str(level.level)
    name = disk.digest(text, _llvm_version(), *host_processor(), _VERSION, *how)
    machine_code = disk.read(name)
    if machine_code is None:
        with _LOCK:
            machine = _target_machine(level.level)
            machine_code = machine.emit_object(_run_passes(text, machine, level.passes))
        disk.write(name, machine_code)
    return MachineCode(name, machine_code, lambda: text, level)


def _llvm_version():
    return ".".join(map(str, llvm.llvm_version_info))


def _run_passes(text, machine, names):
    """A module after these of LLVM's passes, or after those of level 1."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.slp_vectorization = False
    options.loop_unrolling = False  # of 5,600 lines it makes 20,000, and no faster code
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager() if names else builder.getModulePassManager()
    for name in names:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)
    return module


def compile_to_ptx(text: str, architecture: str = "sm_80") -> str:
    """PTX of a module that was emitted for a GPU.

    **Raises:** `ValueError` for an architecture that is not among `GPUS`: LLVM would end the
    process.
    """
    if architecture not in GPUS:
        raise ValueError(f"`architecture` must be one of {', '.join(GPUS)}; got {architecture!r}.")
    passes = choose_optimisation_level(text, batch=True).passes
    name = disk.digest(text, _llvm_version(), architecture, _VERSION, *passes)
    kept = disk.read(name)
    if kept is not None:
        return kept.decode()
    with _LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
        machine = target.create_target_machine(cpu=architecture, opt=3)
        made = machine.emit_assembly(_run_passes(text, machine, passes))
    disk.write(name, made.encode())
    return made
