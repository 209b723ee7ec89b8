"""The pages of the documentation as the help shows them: their order, their text in the language in force; no Qt.

The pages are Markdown files in ``resources/docs``. ``contents.json`` there gives their sections and their order.
``zh_CN/PATH`` is the Chinese page; a page without one is shown in English.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from viewer.look.assets import LANGUAGES, language, words

CommandWords = Callable[[str], str]
"""Returns the words and the key of a command of the window, as Markdown."""
SECTIONS = (
    words("Start"),
    words("Guides"),
    words("Views"),
    words("Reference"),
    words("Commands"),
    words("Findings"),
    words("Store formats"),
    words("Remoting protocol"),
    words("The project"),
)
_COMMAND_LINK = re.compile(r"\[[^]]*\]\(command:([a-z]+\.[A-Za-z]+)\)")
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


def contents() -> dict[str, list[str]]:
    """Return the sections of the documentation, each with the paths of its pages in order."""
    listed: dict[str, list[str]] = json.loads(_docs().joinpath("contents.json").read_text("utf-8"))
    all_paths = _all_paths()
    named = {path for paths in listed.values() for path in paths}
    result = {}
    for section, patterns in listed.items():
        pages: list[str] = []
        for pattern in patterns:
            matching = [path for path in all_paths if fnmatchcase(path, pattern) and path not in named]
            pages += matching if "*" in pattern else [pattern]
        result[section] = pages
    return result


@cache
def _all_paths() -> tuple[str, ...]:
    return tuple(sorted(path for path in _walk(_docs(), "") if path.partition("/")[0] not in LANGUAGES))


def _walk(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            yield prefix + entry.name


def _docs() -> Traversable:
    return files("resources").joinpath("docs")


def page_file(path: str) -> tuple[str, str]:
    """Return folder and text of the page ``path`` in the language in force, in English where there is no other."""
    for prefix in (f"{language()}/", ""):
        entry = _docs().joinpath(prefix + path)
        if entry.is_file():
            return (prefix + path).rpartition("/")[0], entry.read_text("utf-8")
    raise FileNotFoundError(f"no page {path} in resources/docs")


def picture_bytes(path: str) -> bytes:
    """Return the picture that a page names by ``path``, the English one where a language has none of its own."""
    for name in (path, path[path.index("pictures/") :]):
        entry = _docs().joinpath(name)
        if entry.is_file():
            return entry.read_bytes()
    raise FileNotFoundError(f"no picture {path} in resources/docs")


def page_text(path: str, command_words: CommandWords) -> str:
    """Return a page as Markdown, the commands on it in words and with their keys in force."""
    text = _COMMENT.sub("", page_file(path)[1])
    return _COMMAND_LINK.sub(lambda match: command_words(match[1]), text)


def page_title(text: str) -> str:
    """Return the first heading of a page."""
    heading = _HEADING.search(text)
    return heading[1] if heading else ""


def resolve(folder: str, link: str) -> str:
    """Return the path below ``resources/docs`` that a relative ``link`` on a page in ``folder`` leads to."""
    parts = folder.split("/") if folder else []
    for part in link.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def reference_title(reference: str) -> str:
    """Return the title of what ``docs/PATH#ANCHOR`` names: ``Commit log › Property CRC``."""
    path, _, name = reference.removeprefix("docs/").partition("#")
    text = page_file(path)[1]
    heading = next(
        (match[1] for match in re.finditer(r"^##+ (.+)$", text, re.MULTILINE) if anchor(match[1]) == name), ""
    )
    return f"{page_title(text)} › {heading}" if heading else page_title(text)


def anchor(heading: str) -> str:
    """Return the anchor of a heading in links: ``Property CRC`` has ``property-crc``."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
