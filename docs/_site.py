"""Generated pages, mathematics, and a check of all links."""

import gzip
import html
import inspect
import json
import logging
import pathlib
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from latex2mathml.converter import convert
from mkdocs.structure.files import File

import rigidjax as rj

ROOT = pathlib.Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery"
LOG = logging.getLogger("mkdocs.hooks.site")

# Paths in the site of files outside `docs`, longer prefixes first.
BESIDE = {
    "../../benchmarks/figures/": "../figures/",
    "../benchmarks/figures/": "figures/",
    "../CONTRIBUTING.md": "CONTRIBUTING.md",
    "../docs/": "",
    "docs/": "",
}


# Examples that stand first in the gallery; the others follow by name.
FIRST = ("robot_arm", "four_bar", "reaction_wheels", "hinge_fit", "humanoid", "bouncing_hoop")
# Tags of the examples in the gallery.
TAGS = {
    "andrews": ("closed loops", "stiff"),
    "bouncing_hoop": ("impacts", "friction"),
    "bricard": ("closed loops", "redundant constraints"),
    "cassie_leg": ("closed loops", "robot", "springs"),
    "dual_spin_satellite": ("space", "conservation"),
    "ensemble": ("batch",),
    "flyball_governor": ("closed loops", "springs"),
    "four_bar": ("closed loops", "plane"),
    "hinge_fit": ("fit", "measured data"),
    "humanoid": ("URDF", "robot", "control"),
    "pendulum": ("first steps",),
    "racket": ("free body",),
    "reaction_wheels": ("space", "control"),
    "robot_arm": ("robot", "control"),
    "slider_crank": ("closed loops",),
    "stewart": ("closed loops", "robot"),
    "swing_up": ("gradient", "control"),
    "synthesis": ("gradient", "closed loops"),
    "top": ("fixed point",),
}


def on_config(config):
    """Append guides that are not in the menu."""
    guides = next(entry["Guides"] for entry in config["nav"] if "Guides" in entry)
    menu = str(config["nav"])
    present = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    guides += [name for name in present if f"'{name}'" not in menu]
    return config


def on_files(files, config):
    """Add the generated pages, and pages that are elsewhere in the repository."""

    def add(path, text):
        files.append(File.generated(config, path, content=text))

    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        add(name, (ROOT / name).read_text("utf-8"))
    for figure in sorted((ROOT / "benchmarks" / "figures").glob("*.png")):
        add(f"figures/{figure.name}", figure.read_bytes())
    names = sorted(path.name.split(".")[0] for path in GALLERY.glob("*.json.gz"))
    names = [*FIRST, *(name for name in names if name not in FIRST)]
    add("gallery.md", gallery(names))
    for name in names:
        add(f"gallery/{name}.md", example(name))
        scene = json.loads(gzip.decompress((GALLERY / f"{name}.json.gz").read_bytes()))
        add(f"gallery/{name}-view.html", rj.viewer.View({**scene, "title": headline(name)}).page)
    return files


def headline(name):
    return description(GALLERY / f"{name}.py").split(":")[0].rstrip(".")


def description(path):
    return inspect.cleandoc(compile(path.read_text("utf-8"), str(path), "exec").co_consts[0])


def gallery(names):
    """Return a page of cards, each with a looping clip, a title, a line of text and tags."""
    cards = []
    for name in names:
        text = description(GALLERY / f"{name}.py").split("\n\n")[0].replace("\n", " ")
        line = text.split(": ", 1)[-1]
        tags = "".join(f"<span>{tag}</span>" for tag in TAGS[name])
        cards.append(
            f'<a class="clip" href="gallery/{name}.html">'
            f'<img src="gallery/{name}.webp" width="320" height="214" loading="lazy" alt="">'
            f"<strong>{html.escape(headline(name))}</strong>"
            f"<p>{html.escape(line[0].upper() + line[1:])}</p><p>{tags}</p></a>"
        )
    return (
        "# Gallery\n\nEach example has its code and a view to play with.\n\n"
        f'<div class="clips">{"".join(cards)}</div>\n'
    )


def example(name):
    text = description(GALLERY / f"{name}.py")
    code = (GALLERY / f"{name}.py").read_text("utf-8").split('"""', 2)[2].strip()
    return (
        f"# {headline(name)}\n\n{text}\n\n"
        f'<iframe src="{name}-view.html#play" title="{html.escape(text)}" loading="lazy" '
        'style="width: 100%; height: 30rem; border: 0; border-radius: 8px"></iframe>\n\n'
        f"[Open the view in a separate page]({name}-view.html)\n\n```python\n{code}\n```\n"
    )


def on_page_markdown(markdown, page, config, files):
    """Adapt links to files outside `docs`, which have other paths in the site."""
    for here, there in BESIDE.items():
        markdown = markdown.replace(f"]({here}", f"]({there}")
    # The titles say how tests run the blocks.
    return re.sub(r'^```python title="(?:continued|fragment)"$', "```python", markdown, flags=re.M)


def on_page_content(content, page, config, files):
    """Convert formulas to MathML, which browsers render without scripts."""

    def formula(found):
        text = html.unescape(found.group(3))
        if found.group(2) == r"\(":
            return convert(text)
        return f'<div class="formula">{convert(text, display="block")}</div>'

    # Each part of a docstring begins on a new line.
    parts = "Arguments|Attributes|Returns|Raises|Errors|Source"
    content = re.sub(rf"(?<!<p>)<strong>({parts}):</strong>", r"<br><strong>\1:</strong>", content)
    # Paths in tables may break at their separators.
    content = re.sub(
        r"(?<=<code>)[^<>]{25,}(?=</code>)",
        lambda found: re.sub(r"(::|[/.])", r"\1<wbr>", found.group()),
        content,
    )
    pattern = r'<(span|div) class="arithmatex">(\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>'
    return re.sub(pattern, formula, content, flags=re.DOTALL)


class _Links(HTMLParser):
    """Targets of links, and anchors, in a page."""

    def __init__(self):
        super().__init__()
        self.targets, self.anchors, self.loaded = [], set(), []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.targets += [given[name] for name in ("href", "src") if given.get(name)]
        if tag in ("script", "img", "iframe") or (
            tag == "link" and given.get("rel") != "canonical"
        ):
            self.loaded += [given[name] for name in ("href", "src") if given.get(name)]
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}


def on_post_build(config):
    """Warn, and so fail, for broken links within the site, and for content from the network."""
    site = pathlib.Path(config["site_dir"])
    pages = {}
    for path in site.rglob("*.html"):
        if not path.name.endswith("-view.html"):
            pages[path] = _Links()
            pages[path].feed(path.read_text("utf-8"))
    for path, links in pages.items():
        if path.name == "404.html":
            continue
        for target in set(links.loaded):
            if urlsplit(target).netloc:
                LOG.warning("%s loads %s from the network", path.relative_to(site), target)
        for target in set(links.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("https", "http", "mailto", "data"):
                    LOG.warning("%s has a link of an unknown kind: %s", path.name, target)
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            there = file.exists() and (
                not parts.fragment
                or file not in pages
                or unquote(parts.fragment) in pages[file].anchors | {"__top"}
            )
            if not there:
                LOG.warning("%s links to %s, which is not there", path.relative_to(site), target)
