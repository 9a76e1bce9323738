"""Every Python block of every document runs by itself, in a process without double precision."""

import importlib.util
import re
import shutil

import pytest
from docs.blocks import ROOT, Runner, all_scripts

SCRIPTS = all_scripts()
# Scripts for other programs; CI runs all others, see `.ci/run`.
PEERS = {"coming_from-3": "mujoco", "coming_from-4": "pydrake", "coming_from-5": "pinocchio"}
PEERS |= {"coming_from-6": "exudyn"}
# The script that `make test` runs; CI runs all others too.
SHORT = ("README-1",)


@pytest.fixture(scope="module")
def runner():
    running = Runner()
    yield running
    running.close()


@pytest.mark.exhaustive(but=SHORT)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_block(script, runner, tmp_path):
    package = PEERS.get(script.name)
    if package and not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed")
    # A model file that pages load.
    shutil.copy(ROOT / "tests" / "models" / "data" / "arm.urdf", tmp_path)
    printed = runner.run(script, tmp_path)
    if script.page in ("README", "index"):
        page = ROOT / ("README.md" if script.page == "README" else "docs/index.md")
        shown = re.search(r"```\n\n```(?:text)?\n(.*?)```", page.read_text("utf-8"), re.S)
        assert shown and printed == shown[1]


def test_examples_of_front_pages_are_short():
    for script in SCRIPTS:
        if script.page in ("README", "index"):
            assert len([line for line in script.source.splitlines() if line.strip()]) <= 12
