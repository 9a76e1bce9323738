"""Python blocks of the documents, and a process that runs each of them in a fresh child.

A block is a script of its own. One with the title "continued" belongs to the script before it on
its page, one with the title "fragment" is not run.
"""

import contextlib
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import traceback
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r'^```python(?: title="(\w+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)


class Script(NamedTuple):
    """Blocks of a page that form one script; `number` counts the scripts of the page from 1."""

    page: str
    number: int
    source: str

    @property
    def name(self) -> str:
        """Name of the script in reports."""
        return f"{self.page}-{self.number}"


def scripts(path: pathlib.Path) -> list[Script]:
    """Return the scripts of a page."""
    sources: list[str] = []
    for title, code in FENCE.findall(path.read_text("utf-8")):
        if title == "continued":
            sources[-1] += code
        elif title != "fragment":
            sources.append(code)
    return [Script(path.stem, k, source) for k, source in enumerate(sources, start=1)]


def all_scripts() -> list[Script]:
    """Return the scripts of the README and of all pages."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [script for path in pages for script in scripts(path)]


class Runner:
    """A process that has imported the library, and runs scripts in forked children."""

    def __init__(self):
        environment = {key: x for key, x in os.environ.items() if key != "JAX_ENABLE_X64"}
        environment["MPLBACKEND"] = "agg"
        command = [sys.executable, __file__]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT
        )

    def run(self, script: Script, folder: pathlib.Path) -> str:
        """Run a script and the claims about it in a folder; return what it printed.

        **Raises:** `AssertionError` with the traceback.
        """
        assert self.process.stdin and self.process.stdout
        request = {**script._asdict(), "folder": str(folder)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        printed = (folder / "printed.txt").read_text("utf-8")
        assert code == 0, f"{script.name}\n{printed}\n{(folder / 'error.txt').read_text('utf-8')}"
        return printed

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def run_in_child(request: dict) -> None:
    """Execute a script, then `check_<number>` of `claims/<page>.py` with its names."""
    os.chdir(request["folder"])
    names = {"__name__": "__main__"}
    printed = pathlib.Path("printed.txt")
    with printed.open("w") as stream, contextlib.redirect_stdout(stream):
        exec(compile(request["source"], request["page"] + ".md", "exec"), names)
    claims = ROOT / "tests" / "docs" / "claims" / f"{request['page']}.py"
    if claims.exists():
        check = runpy.run_path(str(claims)).get(f"check_{request['number']}")
        if check is not None:
            check(names, printed.read_text())


def main() -> None:
    """Serve requests on standard input: fork, run, and answer with the exit code."""
    import jax  # noqa: F401
    import scipy.optimize  # noqa: F401

    import rigidjax  # noqa: F401
    from rigidjax.native.runtime import codegen

    codegen.LONG = codegen.LONG_BATCH = 0  # few optimisations, as in the other tests
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run_in_child(request)
                code = 0
            except BaseException:
                error = pathlib.Path(request["folder"]) / "error.txt"
                error.write_text(traceback.format_exc())
            os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
