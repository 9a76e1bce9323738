"""Open every page of the built site in headless Chromium: `python .ci/pages.py [NAME ...]`.

At 1400 and at 420 pixels, in light and dark mode, a page has no error on its console and is no
wider than the window. At 1400 pixels all tables fit; at 420 wide ones scroll.
"""

import pathlib
import shutil
import sys

from selenium import webdriver

SITE = pathlib.Path(__file__).resolve().parent.parent / "site"
FLAGS = (
    "--headless=new --no-sandbox --hide-scrollbars --use-gl=angle --use-angle=swiftshader "
    "--enable-unsafe-swiftshader --disable-background-networking --no-first-run "
    "--proxy-server=127.0.0.1:9"
).split()
WIDTHS = (1400, 420)
# Wide tables, and tables in containers that do not scroll.
TABLES = """
const tables = [...document.querySelectorAll(".md-typeset table:not(.highlighttable)")];
const head = table => table.querySelector("th")?.textContent ?? "";
const name = table => head(table) + ": " + table.rows.length + " rows";
const fits = table => {
  const wrap = table.closest(".md-typeset__scrollwrap");
  return wrap && (arguments[0] ? wrap.scrollWidth <= wrap.clientWidth + 1
                              : getComputedStyle(wrap).overflowX === "auto");
};
return tables.filter(table => table.offsetParent && !fits(table)).map(name);
"""


def browser():
    """Start Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def set_width(driver, width):
    """Set the width of the window."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def problems(driver, path):
    """Return the problems of a page, loaded once for each colour scheme."""
    found = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        set_width(driver, WIDTHS[0])
        driver.get(path.as_uri())
        lines = [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"]
        for width in WIDTHS:
            set_width(driver, width)
            tables = driver.execute_script(TABLES, width > 1000)
            lines += [f"table cut off at {width} px: {name}" for name in tables]
            total = driver.execute_script("return document.documentElement.scrollWidth")
            if total > width:
                lines.append(f"page is {total} px wide at {width} px")
        driver.execute_script("localStorage.clear()")  # The first page stores its colour scheme.
        found += [f"{scheme}: {line}" for line in lines]
    return found


def main(names):
    """Check the pages whose paths contain one of the names, by default all."""
    # The error page needs a server: its links begin at the root.
    pages = sorted(SITE.rglob("*.html"))
    pages = [p for p in pages if not p.name.endswith("-view.html") and p.name != "404.html"]
    pages = [p for p in pages if not names or any(name in str(p) for name in names)]
    if not pages:
        sys.exit("There are no pages in site/; run `make docs`.")
    driver, failed = browser(), 0
    for path in pages:
        for text in problems(driver, path):
            failed += 1
            print(f"{path.relative_to(SITE)}: {text}")
    driver.quit()
    print(f"{len(pages)} pages, {failed} problems")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
