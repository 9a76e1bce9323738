"""External programs that some tests need and that `pip` and `make` do not install."""

import importlib.util
import pathlib
import shutil


def _ptxas() -> str | None:
    """Return the path of NVIDIA's assembler, of the CUDA toolkit or of the wheel; None without."""
    if on_path := shutil.which("ptxas"):
        return on_path
    # The wheel has no `__init__.py`: its folders are namespace packages.
    if importlib.util.find_spec("nvidia") is None:
        return None
    package = importlib.util.find_spec("nvidia.cuda_nvcc")
    folders = package.submodule_search_locations if package is not None else None
    candidates = [pathlib.Path(folder, "bin", "ptxas") for folder in folders or ()]
    return next((str(path) for path in candidates if path.is_file()), None)


CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PTXAS = _ptxas()

# Reasons of skipped tests, which the summary after the tests repeats: what is missing, the remedy.
NO_BROWSER = (
    "Debian's packages chromium and chromium-driver are not installed: "
    "apt-get install chromium chromium-driver"
)
NO_PTXAS = "`ptxas` of CUDA is not installed: make ptxas"
NO_QEMU = "Debian's package qemu-user is not installed: apt-get install qemu-user"
NO_GPU = "no GPU of NVIDIA's"


def allowed_in_ci(reason: str) -> bool:
    """Return whether a test may be skipped for this reason in continuous integration."""
    return reason == NO_GPU
