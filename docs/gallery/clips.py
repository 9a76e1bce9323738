"""Record looping clips of the gallery's views in headless Chromium: `python docs/gallery/clips.py [NAME ...]`.

Each clip is an animated WebP picture with a transparent background, recorded from NAME.json.gz. It
needs Debian's packages chromium and chromium-driver.
"""

import base64
import gzip
import io
import json
import pathlib
import shutil
import sys
import tempfile

from PIL import Image
from selenium import webdriver

import rigidjax as rj

HERE = pathlib.Path(__file__).resolve().parent
PICTURES = HERE.parent / "pictures"
SIZE = (320, 214)  # pixels
SECONDS, RATE = 3.2, 10.0  # longest clip, pictures per second
FLAGS = (
    "--headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader "
    "--enable-unsafe-swiftshader --hide-scrollbars"
).split()

# Return the pictures of a page at given times as data addresses.
_RENDER = """
const v = window.rigidjaxViewer;
return arguments[0].map((time) => {
  v.seek(time);
  v.render();
  return v.stage.canvas.toDataURL();
});
"""

# Open the options and select a joint.
_SELECT = """
const v = window.rigidjaxViewer;
document.getElementById("show-options").click();
v.picking.select({ joint: 1 });
v.render();
"""


def start_browser() -> webdriver.Chrome:
    """Start headless Chromium with a window of the size of a clip."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(600)
    metrics = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return driver


def record(browser: webdriver.Chrome, scene: dict, path: pathlib.Path) -> None:
    """Record a scene at its speed and write the clip; a longer motion is shown faster."""
    with tempfile.TemporaryDirectory() as folder:
        page = rj.viewer.View(scene).save(pathlib.Path(folder) / "view.html")
        browser.get("about:blank")
        browser.get(f"{page.as_uri()}#bare")
        start, end = scene["start"], scene["end"]
        count = round(min((end - start) / scene["speed"], SECONDS) * RATE)
        times = [start + (end - start) * k / (count - 1) for k in range(count)]
        # A few at a time, as the browser has two minutes for each call.
        parts = [browser.execute_script(_RENDER, times[k : k + 5]) for k in range(0, count, 5)]
    pictures = [_picture(address) for part in parts for address in part]
    options = {"save_all": True, "duration": round(1000 / RATE), "loop": 0, "minimize_size": True}
    options |= {"quality": 30, "alpha_quality": 10, "method": 4}
    pictures[0].save(path, format="WEBP", append_images=pictures[1:], **options)


def _picture(address: str) -> Image.Image:
    """Return the picture of a data address."""
    return Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))).convert("RGBA")


def photograph(browser: webdriver.Chrome, scene: dict, title: str) -> None:
    """Write pictures of the whole page, in light and in dark mode, for the page on the viewer."""
    metrics = {"width": 1100, "height": 640, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for theme in ("light", "dark"):
        with tempfile.TemporaryDirectory() as folder:
            shown = rj.viewer.View({**scene, "title": title, "theme": theme})
            page = shown.save(pathlib.Path(folder) / "view.html")
            browser.get(f"{page.as_uri()}#t={0.3 * scene['end']}")
            browser.execute_script(_SELECT)
            picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
        picture.save(PICTURES / f"viewer_{theme}.webp", quality=80, method=6)


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.name.split(".")[0] for path in HERE.glob("*.json.gz"))
    chromium = start_browser()
    scenes = {n: json.loads(gzip.decompress((HERE / f"{n}.json.gz").read_bytes())) for n in names}
    for name, data in scenes.items():
        clip = HERE / f"{name}.webp"
        record(chromium, data, clip)
        print(f"{name}: {clip.stat().st_size / 1000:.0f} kB", flush=True)
    if "four_bar" in scenes:
        photograph(chromium, scenes["four_bar"], "Four-bar linkage")
    chromium.quit()
