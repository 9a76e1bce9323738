"""Gallery and reference: short examples, whose stored runs the viewer accepts."""

import gzip
import json
import pathlib

import numpy as np
import pytest
from PIL import Image
from viewer.motions import mechanism

import rigidjax as rj

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "gallery"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("make", "clips"))
RUNS = FOLDER.parent / "reference_runs"
RUN_NAMES = sorted(path.stem for path in RUNS.glob("*.py"))


def test_files_match_the_examples():
    assert len(EXAMPLES) >= 12
    for ending in (".json.gz", ".webp"):
        assert sorted(p.name.removesuffix(ending) for p in FOLDER.glob(f"*{ending}")) == EXAMPLES


def test_clips_are_small_and_repeat():
    clips = sorted(FOLDER.glob("*.webp"))
    assert sum(clip.stat().st_size for clip in clips) < 2_000_000
    for clip in clips:
        with Image.open(clip) as picture:
            assert picture.size == (320, 214) and picture.n_frames > 20
            assert picture.info["loop"] == 0


def test_every_force_and_special_joint_has_a_run():
    assert sorted(path.name.removesuffix(".json.gz") for path in RUNS.glob("*.gz")) == RUN_NAMES
    forces = {name for name in dir(rj) if getattr(rj, name).__class__ is type(rj.Gravity)}
    forces = {n for n in forces if getattr(rj, n).__module__.startswith("rigidjax.forces")}
    others = {"FourierSeries", "Free", "Coupling", "Constraint", "VelocityConstraint"}
    forces = {name for name in forces if not name.startswith("Abstract")}
    others |= {"Friction", "Stop"}
    assert set(RUN_NAMES) == forces | others


@pytest.mark.parametrize(
    "path",
    [*(FOLDER / name for name in EXAMPLES), *(RUNS / name for name in RUN_NAMES)],
    ids=lambda path: path.name,
)
def test_examples_are_short_and_their_runs_current(path):
    _, text, code = path.with_suffix(".py").read_text("utf-8").split('"""', 2)
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    assert text.endswith(".") and "shown = rj.view(" in code
    kept = json.loads(gzip.decompress(path.with_suffix(".json.gz").read_bytes()))
    new = rj.view(mechanism()).scene
    assert kept.keys() - {"meshes"} == new.keys()
    for run in kept["runs"]:
        assert new["runs"][0].keys() <= run.keys() | {"rates", "forces", "reactions"}
        assert all(b.keys() == new["runs"][0]["bodies"][0].keys() for b in run["bodies"])


def test_leg_of_cassie_has_the_published_lengths():
    leg = json.loads((FOLDER.parents[1] / "datasets" / "cassie_leg" / "leg.json").read_text())
    at = {joint["name"]: np.array(joint["point"]) for joint in leg["joints"]}
    # Rods between the anchors of their ends; crank and foot between their hinge and the rod.
    for start, end, length in (
        ("achilles rod", "achilles rod end", 0.5012),
        ("plantar rod", "plantar rod end", 0.35012),
        ("foot crank", "plantar rod", np.hypot(0.055, 0.00791)),
        (
            "foot",
            "plantar rod end",
            np.linalg.norm((0.058 + 0.055 + 0.35012 - 0.408, 0.006, 0.01484)),
        ),
    ):
        np.testing.assert_allclose(np.linalg.norm(at[end] - at[start]), length, atol=1e-8)
    joints = [getattr(rj, joint.pop("type"))(**joint) for joint in leg["joints"]]
    system = rj.System([rj.Body(**body) for body in leg["bodies"]], joints)
    np.testing.assert_allclose(sum(body.mass for body in system.bodies), 11.491)
    # Three at the hip, knee, shin, the heel with its spring, foot, and the spin of a rod.
    assert system.num_dof == 8
