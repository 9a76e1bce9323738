"""LLVM: from the text of a module to machine code of this processor, or to PTX."""

import functools
import threading

import llvmlite.binding as llvm

_LOCK = threading.Lock()
# Lines of a module from which on it gets fewer optimisations: of 107,000 lines 5 s in the place of
# 14, and 1.4 times the time of a run.
LONG = 60_000
# Architectures that PTX is written for.
GPUS = ("sm_80", "sm_86", "sm_89", "sm_90")


@functools.cache
def processor() -> tuple[str, str]:
    """Name and features of this machine's processor, as LLVM calls them."""
    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), ",".join(
        ("+" if on else "-") + k for k, on in features.items()
    )


@functools.cache
def best_width() -> int:
    """Lanes of a block: two registers' worth of float64 with AVX2 or AVX-512, two numbers else."""
    features = llvm.get_host_cpu_features()
    return 4 if features.get("avx2") or features.get("avx512f") else 2


@functools.cache
def _initialised() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(level: int):
    _initialised()
    name, features = processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=level, cpu=name, features=features, jit=True)


class Code:
    """Machine code of a module, kept in memory as long as this object.

    Long modules get fewer optimisations: those of LLVM take times that grow faster than the length.
    """

    def __init__(self, text: str):
        passes_level, machine_level = (1, 0) if text.count("\n") > LONG else (2, 2)
        # LLVM's passes share state of the process.
        with _LOCK:
            machine = _target_machine(machine_level)
            module = llvm.parse_assembly(text)
            module.verify()
            options = llvm.create_pipeline_tuning_options(speed_level=passes_level)
            options.slp_vectorization = False
            passes = llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
            self._engine = llvm.create_mcjit_compiler(module, machine)
            self._engine.finalize_object()
            self.optimised = module

    def address(self, name: str) -> int:
        """Where a function of the module begins."""
        return self._engine.get_function_address(name)


def ptx(text: str, architecture: str = "sm_80") -> str:
    """PTX of a module that was emitted for a GPU.

    **Raises:** `ValueError` for an architecture that is not among `GPUS`: LLVM would end the
    process.
    """
    if architecture not in GPUS:
        raise ValueError(f"`architecture` must be one of {', '.join(GPUS)}; got {architecture!r}.")
    with _LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
        machine = target.create_target_machine(cpu=architecture, opt=3)
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
        return machine.emit_assembly(module)
