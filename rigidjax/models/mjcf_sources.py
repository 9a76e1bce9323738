"""Check of an MJCF file, and of all files that it refers to, before MuJoCo's compiler sees them."""

import math
import os
import pathlib
from collections.abc import Sequence

from .meshes import is_inside, search_folders
from .xml_source import DEEPEST, MOST, Element, parse

_DIRECTORIES = ("assetdir", "meshdir", "texturedir")
# Entries of a height field or texture; numbers of keyframes, and of values for users.
_LARGEST_ARRAY = 2**27
_LARGEST_SIZE = 1000
# Models in models; the compiler calls itself for each.
_DEEPEST_MODEL = 16


def check_sources(root: Element, packages: Sequence[str | os.PathLike[str]]) -> None:
    """Raise `ValueError`, with file and line, for a file that must not reach the compiler.

    The compiler opens whatever a file names, follows models that contain each other until it
    crashes, and makes as many elements as a file asks for. Files have to be in the folder of the
    model, one beside it, or in `packages`; elements are counted with all their copies.
    """
    _count(root, packages, (str(pathlib.Path(root.path).resolve()),))


def _count(
    root: Element, packages: Sequence[str | os.PathLike[str]], above: tuple[str, ...]
) -> int:
    """Return the number of elements that the compiler makes of a file, after checking them.

    **Arguments:** `above`, the paths of the models that contain this one, and its own.
    """
    home = pathlib.Path(above[-1]).parent
    folders = search_folders(above[-1], packages)
    elements = _expand_includes(root, home, folders)
    folders_of_files = [""] + [
        element.attributes[name]
        for element, _ in elements
        for name in _DIRECTORIES
        if element.tag == "compiler" and name in element.attributes
    ]
    models: dict[str, int] = {}
    total = 0
    for element, copies in elements:
        for attribute, value in element.attributes.items():
            if attribute.startswith("file") and element.tag != "include":
                # By `strippath` the folder of a name does not count.
                names = (value, pathlib.Path(value).name) if value else ()
                places = [home / folder / name for name in names for folder in folders_of_files]
                paths = [place for place in places if os.path.lexists(place)]
                for path in paths:
                    _check_path(element, value, path, folders)
                if element.tag == "model" and paths:
                    own = _count_model(element, paths[0], packages, above)
                    models[element.attributes.get("name", paths[0].stem)] = own
                    total += own
        total += copies * _size(element)
        if total > MOST:
            raise element.error(f"the file has more than {MOST} elements, copies included.")
    for element, copies in elements:
        if element.tag == "attach":
            total += copies * models.get(element.attributes.get("model", ""), 0)
            if total > MOST:
                raise element.error(f"the file has more than {MOST} elements, copies included.")
    return total


def _count_model(
    element: Element,
    path: pathlib.Path,
    packages: Sequence[str | os.PathLike[str]],
    above: tuple[str, ...],
) -> int:
    """Return the number of elements of a model that a file attaches."""
    name = str(path.resolve())
    if name in above:
        raise element.error(f"the model {path.name} contains itself.")
    if len(above) == _DEEPEST_MODEL:
        raise element.error(f"models are nested more than {_DEEPEST_MODEL} deep.")
    return _count(parse(name)[0], packages, (*above, name))


def _expand_includes(
    root: Element, home: pathlib.Path, folders: Sequence[pathlib.Path]
) -> list[tuple[Element, int]]:
    """Return all elements of a file and of those that it includes, with the number of copies."""
    included = {str(pathlib.Path(root.path).resolve())}
    result: list[tuple[Element, int]] = []
    stack = [(root, 1, 1)]
    while stack:
        element, copies, depth = stack.pop()
        if depth > DEEPEST:
            raise element.error(f"is nested more than {DEEPEST} deep.")
        result.append((element, copies))
        children = element.children
        if element.tag == "include":
            value = element.text_of("file")
            places = [home / value, pathlib.Path(element.path).resolve().parent / value]
            paths = [place for place in places if os.path.lexists(place)]
            if "://" in value or not paths:
                _refuse_address(element, value)
                raise element.error(f"the file {value!r} does not exist.")
            _check_path(element, value, paths[0], folders)
            name = str(paths[0].resolve())
            if name in included:
                raise element.error(f"the file {value!r} is included already.")
            included.add(name)
            children = [parse(name)[0]]
        elif element.tag == "replicate":
            copies *= max(1, _product(element, "count"))
        stack += [(child, copies, depth + 1) for child in reversed(children)]
    return result


def _check_path(
    element: Element, value: str, path: pathlib.Path, folders: Sequence[pathlib.Path]
) -> None:
    """Raise `ValueError` for a path outside the folders, or one that is no file."""
    _refuse_address(element, value)
    if not is_inside(path.resolve(), folders):
        raise element.error(
            f"{value!r} is outside the folder of the model and those beside it; copy it there, or "
            "give its folder by `load(packages=...)`."
        )
    # Devices and pipes may have no end.
    if not path.is_file():
        raise element.error(f"{value!r} is no file.")


def _refuse_address(element: Element, value: str) -> None:
    if "://" in value:
        raise element.error(f"nothing is fetched from a network; save {value!r} beside the file.")


def _size(element: Element) -> int:
    """Return the number of elements that MuJoCo makes of one element.

    **Errors:** `ValueError` for an array that is larger than any model needs.
    """
    if element.tag in ("flexcomp", "composite") and "count" in element.attributes:
        return max(1, _product(element, "count"))
    for names in (("nrow", "ncol"), ("width", "height")):
        if all(name in element.attributes for name in names):
            entries = _product(element, *names)
            if entries > _LARGEST_ARRAY:
                raise element.error(f"has {entries} entries; {_LARGEST_ARRAY} are the most.")
    for name in element.attributes:
        if name.startswith(("nkey", "nuser")) and _product(element, name) > _LARGEST_SIZE:
            raise element.error(f"`{name}` must be {_LARGEST_SIZE} at most.")
    return 1


def _product(element: Element, *attributes: str) -> int:
    """Return the product of all numbers of some attributes."""
    texts = [element.text_of(name) for name in attributes]
    return math.prod(
        int(value)
        for name, text in zip(attributes, texts, strict=True)
        for value in element.vector(name, len(text.split()))
    )
