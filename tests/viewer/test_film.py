"""Filmstrips and animations."""

import numpy as np
import pytest
from viewer.motions import TS, mechanism, turned_states

import rigidjax as rj
from rigidjax import plotting, viewer
from rigidjax.plotting.film import faces_of


@pytest.fixture(scope="module")
def moving_view():
    return rj.view(mechanism(), state=turned_states(9), ts=TS)


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (viewer.box((0.3, 0.2, 0.1), (1, 2, 3)), 0.006),
        (viewer.cylinder(0.2, 0.5, axis=(1, 1, 0)), np.pi * 0.02),
        (viewer.cone(0.2, 0.6), np.pi * 0.04 * 0.2),
        (viewer.sphere(0.5), np.pi / 6),
        (viewer.ellipsoid((0.3, 0.2, 0.1)), 4 / 3 * np.pi * 0.006),
    ],
)
def test_surfaces_enclose_the_volume_with_normals_outwards(shape, volume):
    body = rj.Body.sphere("b", 1.0, mass=1.0)
    scene = rj.view(rj.System(body), shapes={"b": shape}).scene
    faces, is_closed = faces_of(scene["runs"][0]["bodies"][0]["shapes"][0])
    assert is_closed
    a, b, c, d = np.moveaxis(faces - np.array(shape.position), 1, 0)
    signed = sum(np.sum(p * np.cross(q, r)) for p, q, r in ((a, b, c), (a, c, d))) / 6
    assert volume * 0.95 < signed < volume * 1.001


def test_a_filmstrip_shows_the_run_at_its_times(moving_view):
    figure = plotting.plot_filmstrip(moving_view, 3, "Strip")
    assert [ax.get_title() for ax in figure.axes] == ["0 s", "1 s", "2 s"]
    assert figure.get_suptitle() == "Strip"
    # Paths grow; bodies are drawn inside the picture.
    path = [len(ax.lines[0].get_xdata()) for ax in figure.axes]
    assert path == [1, 21, 41]
    (low, high), polygons = figure.axes[1].get_ylim(), figure.axes[1].collections[0].get_paths()
    inside = [np.all((p.vertices[:, 1] > low) & (p.vertices[:, 1] < high)) for p in polygons]
    assert len(polygons) > 9 * 3 and np.all(inside)


def test_an_animation_has_a_picture_for_each_time(moving_view, tmp_path):
    from PIL import Image

    path = plotting.save_animation(moving_view, tmp_path / "run.gif", fps=2, width=2.0)
    with Image.open(path) as picture:
        speed = moving_view.scene["speed"]
        assert picture.n_frames == round(2 / speed * 2)
        assert picture.info["loop"] == 0
        first = np.asarray(picture.convert("RGB"), int)
        picture.seek(1)
        assert np.any(np.asarray(picture.convert("RGB"), int) != first)
    with pytest.raises(FileExistsError, match="exists"):
        plotting.save_animation(moving_view, path)


def test_invalid_input_raises(moving_view, tmp_path):
    with pytest.raises(ValueError, match="1 or more"):
        plotting.plot_filmstrip(moving_view, 0)
    with pytest.raises(ValueError, match="Change the suffix"):
        plotting.save_animation(moving_view, tmp_path / "run.mp4")
    with pytest.raises(ValueError, match="from 1 to 50"):
        plotting.save_animation(moving_view, tmp_path / "run.gif", fps=100)
    with pytest.raises(ValueError, match="more than one time"):
        plotting.save_animation(rj.view(mechanism()), tmp_path / "run.gif")
    assert list(tmp_path.iterdir()) == []
