"""Views, supports, selection, traces, pictures and the address of a page in headless Chromium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from external_programs import CHROMEDRIVER, CHROMIUM, NO_BROWSER
from viewer.motions import TS
from viewer.pages import ask, click, pixels

import rigidjax as rj
from rigidjax.rotations import so3

pytestmark = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason=NO_BROWSER)


@pytest.mark.parametrize("projection", ["perspective", "parallel"])
def test_all_bodies_are_in_the_picture_at_all_times_with_a_margin(page, projection):
    """The largest coordinate of a corner in the picture, where its edges are at -1 and 1."""
    page.execute_script(f"rigidjaxViewer.setParallel({str(projection == 'parallel').lower()})")
    for look in ("home()", "lookAlong(0)", "lookAlong(1)", "lookAlong(2)"):
        page.execute_script(f"rigidjaxViewer.{look}")
        reach = ask(
            page,
            "(() => { const c = v.stage.camera; c.updateMatrixWorld(); let most = 0; const p = "
            "v.stage.points; for (let i = 0; i < p.length; i += 3) { const q = new THREE.Vector3("
            "p[i], p[i + 1], p[i + 2]).project(c); most = Math.max(most, Math.abs(q.x), "
            "Math.abs(q.y)); } return most; })()",
        )
        assert reach == pytest.approx(0.8, abs=1e-3), look
    page.execute_script("rigidjaxViewer.setParallel(false); rigidjaxViewer.home()")


def test_points_of_the_picture_contain_the_bodies(page, states):
    """Corners of the arm, a box, at all saved times are among the points, or inside their hull."""
    points = np.array(ask(page, "[...v.corners]")).reshape(-1, 3)
    half = 0.5 * np.array([0.3, 0.2, 0.1])
    rotate = jax.vmap(lambda p: rj.Quaternion().to_matrix(p))(states.orientation[:, 0])
    corners = np.asarray(states.position[:, 0]) + np.asarray(rotate) @ half
    nearest = np.min(np.linalg.norm(points - corners[:, None], axis=-1), axis=1)
    assert nearest.max() < 1e-5


def test_fixed_supports_and_axes_are_drawn(page):
    kinds = ask(page, "v.runs[0].run.joints.filter((j) => j.parent < 0).map((j) => j.kind)")
    assert kinds == ["Revolute", "Prismatic", "Screw", "Planar", "Cylindrical"]
    # Below the hinge, below the vertical rails, and at the fixed ends of spring and cable.
    assert ask(page, "v.runs[0].layers.supports.length") == 4 + 3
    before = pixels(page)
    click(page, "show-axes")
    assert np.count_nonzero(np.any(pixels(page) != before, axis=-1)) > 30
    hinge = ask(page, "v.runs[0].run.joints[0].name")
    shown = "[...document.querySelectorAll('#names span')].filter((s) => !s.hidden)"
    assert hinge in ask(page, f"{shown}.map((s) => s.textContent)")
    click(page, "show-axes")


def test_size_of_joints_can_be_changed(page):
    width = "v.runs[0].pens[0].child.children[0].geometry.parameters.radius"
    size = ask(page, width)
    move = (
        "const s = document.getElementById('joint-size'); s.value = %g;"
        "s.dispatchEvent(new Event('input'))"
    )
    page.execute_script(move % 1)
    assert ask(page, width) == pytest.approx(10 * size)
    page.execute_script(move % 0)
    assert ask(page, width) == pytest.approx(size)


def test_bodies_and_joints_are_described_and_selected(page):
    page.execute_script("rigidjaxViewer.seek(0.5); rigidjaxViewer.render()")
    at = (
        "(() => { const c = v.stage.canvas; const p = v.runs[0].bodies[2].position.clone()"
        ".project(v.stage.camera); return { offsetX: (p.x + 1) / 2 * c.clientWidth, "
        "offsetY: (1 - p.y) / 2 * c.clientHeight }; })()"
    )
    item = ask(page, f"v.picking.find({at}).item")
    assert item == {"body": 2}
    page.execute_script("rigidjaxViewer.picking.select({ body: 2 }); rigidjaxViewer.render()")
    assert page.execute_script("return document.getElementById('card').textContent") == (
        "egg (first)mass 1 kg"
    )
    pressed = (
        "[...document.querySelectorAll('#parts [aria-pressed=true]')].map((b) => b.textContent)"
    )
    assert ask(page, pressed) == ["egg"]
    page.execute_script("rigidjaxViewer.picking.select({ joint: 0 }); rigidjaxViewer.render()")
    text = page.execute_script("return document.getElementById('card').textContent")
    assert "Revolute, ground to arm" in text and "rad" in text
    page.execute_script("rigidjaxViewer.picking.select(null)")


def test_traces_have_the_given_lengths(page, states):
    """The path of the last 0.5 s, between saved times too, and a length that the page sets."""
    assert ask(page, "v.tracePoints.filter((p) => p.isShown).map((p) => [p.key, p.seconds])") == [
        ["egg", 0.5],
        ["tip", None],  # Infinity
    ]
    trace = "v.runs[0].traces.get('2 0,0,0')"
    path = (
        f"(() => {{ v.seek(1.215); v.render(); const l = {trace}.past.geometry; return ["
        "...l.attributes.instanceStart.data.array.slice(0, 6 * l.instanceCount)]; })()"
    )

    def height(time):
        return np.interp(time, TS, states.position[:, 2, 2])

    ends = np.array(ask(page, path)).reshape(-1, 2, 3)
    times = np.concatenate([[0.715], TS[15:25], [1.215]])
    np.testing.assert_allclose(ends[:, 0, 2], height(times[:-1]), atol=2e-6)
    np.testing.assert_allclose(ends[:, 1, 2], height(times[1:]), atol=2e-6)
    assert ask(page, f"[{trace}.whole.visible, {trace}.past.visible]") == [False, True]
    page.execute_script(
        "const s = document.querySelector('[title^=\"Length of the trace of egg, centre\"]');"
        "window.setLength = (x) => { s.value = x; s.dispatchEvent(new Event('input')); };"
        "setLength('0.04')"
    )
    assert len(ask(page, path)) == 6 * 2
    page.execute_script("setLength('')")
    assert len(ask(page, path)) == 6 * 25
    assert ask(page, f"{trace}.whole.visible")
    page.execute_script("setLength('0'); rigidjaxViewer.render()")
    assert ask(page, f"[{trace}.whole.visible, {trace}.past.visible]") == [False, False]
    page.execute_script("setLength('0.5')")


def test_distances_of_chosen_and_of_clicked_points(page, states):
    from selenium.webdriver import ActionChains, Keys

    page.execute_script(
        "const v = rigidjaxViewer; v.home(); v.seek(0.5); v.render();"
        "for (const [end, name] of [['from', 'egg, centre of mass'], ['to', 'origin']]) {"
        "const s = document.getElementById(`distance-${end}`);"
        "s.value = [...s.options].find((o) => o.text === name).value; }"
        "v.showRuns([v.runs[1]], false); v.render()"
    )
    wanted = np.linalg.norm(states.position[10, 2])
    text = "document.getElementById('distance').textContent"
    assert ask(page, text) == f"distance {wanted:.4f} mfrom egg, centre of mass to origin"
    canvas = page.find_element("id", "canvas")
    actions = ActionChains(page).key_down(Keys.SHIFT)
    for body in (2, 4):
        x, y = ask(
            page,
            f"v.runs[0].bodies[{body}].position.clone().project(v.stage.camera)."
            "toArray().slice(0, 2)",
        )
        right, down = x * canvas.size["width"] / 2, -y * canvas.size["height"] / 2
        actions = actions.move_to_element_with_offset(canvas, right, down).click()
    actions.key_up(Keys.SHIFT).perform()
    page.execute_script("rigidjaxViewer.seek(1.5); rigidjaxViewer.render()")
    points = np.array(ask(page, "v.distance.points.slice(-2).map((p) => p.point.toArray())"))
    assert np.all(np.abs(points) < np.array([0.3, 0.2, 0.1]) / 2 + 1e-5)
    rows = [states.position[30, [2, 4]], states.orientation[30, [2, 4]]]
    ends = rows[0] + jax.vmap(so3.rotate)(rows[1], jnp.asarray(points))
    value = np.linalg.norm(ends[1] - ends[0])
    number, names = ask(page, text).removeprefix("distance ").split(" m", 1)
    assert float(number) == pytest.approx(value, abs=5e-5 + 1e-6)  # four decimals
    assert names == "from point on egg (first) to point on slider (first)"
    assert ask(page, "v.picking.chosen") is None
    page.execute_script(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'"
        ", bubbles: true})); rigidjaxViewer.showRuns([rigidjaxViewer.runs[1]], true);"
        "rigidjaxViewer.render()"
    )
    assert ask(page, "document.getElementById('distance').hidden")


def test_steps_lead_to_saved_times(page):
    page.execute_script(f"rigidjaxViewer.seek({TS[7]})")
    for identifier, row in (("after", 8), ("before", 7), ("before", 6)):
        click(page, identifier)
        assert ask(page, "v.time") == pytest.approx(TS[row], abs=1e-6)


def test_pictures_and_videos(page):
    kinds = page.execute_async_script(
        "const done = arguments[0]; const v = rigidjaxViewer; const canvas = "
        "document.createElement('canvas'); paint(v, canvas); const first = "
        "canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3]; v.speed = 0.5;"
        "recordVideo(v).then((blob) => done([first, blob.type, blob.size, v.time]));"
    )
    opaque, kind, size, time = kinds
    assert opaque == 255 and kind.startswith("video/") and size > 1000
    assert time == pytest.approx(TS[-1])


def test_the_address_holds_time_and_view(page):
    page.execute_script(
        "const v = rigidjaxViewer; v.pause(); v.lookAlong(2); v.seek(1.25); v.address.write()"
    )
    address = page.execute_script("return location.hash")
    assert address.startswith("#t=1.25&view=")
    eye = ask(page, "v.stage.camera.position.toArray()")
    page.execute_script(
        "rigidjaxViewer.home(); rigidjaxViewer.seek(0); rigidjaxViewer.address.read()"
    )
    assert ask(page, "v.time") == 1.25
    np.testing.assert_allclose(
        ask(page, "v.stage.camera.position.toArray()"), eye, rtol=1e-4, atol=1e-4
    )
    page.execute_script("rigidjaxViewer.home()")


@pytest.mark.parametrize("width", [420, 1400])
def test_title_and_buttons_do_not_overlap(page, width):
    metrics = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.execute_script(
        "document.querySelector('h1').textContent = 'A long title of a motion with many words'"
    )
    boxes = page.execute_script(
        "return ['#left', '#tools', '#bar', '#graphs', '#stage'].map((s) => { const b = "
        "document.querySelector(s).getBoundingClientRect(); "
        "return [b.left, b.right, b.top, b.bottom]; })"
    )
    assert boxes[0][1] <= boxes[1][0]
    assert all(0 <= left and right <= width and bottom <= 700 for left, right, _, bottom in boxes)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.execute_script("document.querySelector('h1').textContent = 'All joints'")
