"""The pages of the documentation, their links and their anchors."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "resources" / "docs"
GENERATED = "<!-- written by packaging/docs.py -->"
_FENCE = re.compile(r"^\s*```.*?^\s*```\s*$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"(?<!\\)\[[^]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_OUTSIDE = ("http://", "https://", "mailto:", "command:")
"""Links that are not asked here; those to commands of the window are in ``tests/viewer/shell/test_help_box.py``."""


def pages() -> list[Path]:
    """Return every page: those at the top of the project, and the documentation."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def written_pages() -> list[Path]:
    """Return the pages in English that no program wrote."""
    every = sorted(DOCS.rglob("*.md"))
    return [page for page in every if page.parts[-3] != "zh_CN" and GENERATED not in page.read_text("utf-8")]


def name(page: Path) -> str:
    """Return the path of a page within the project."""
    return page.relative_to(ROOT).as_posix()


def links(page: Path) -> list[str]:
    """Return the targets of all links and pictures outside of code."""
    return _LINK.findall(_CODE.sub("", _FENCE.sub("", page.read_text("utf-8"))))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that headings of a page have on GitHub, in Zensical and in the help."""
    return frozenset(anchor(heading) for heading in _HEADING.findall(_FENCE.sub("", page.read_text("utf-8"))))


def anchor(heading: str) -> str:
    """Return the anchor of a heading: small letters, digits, dashes."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def resolves(page: Path, link: str) -> bool:
    """Return True if ``link`` on ``page`` leads to a file, and to a heading if it names one; others are not asked."""
    if link.startswith(_OUTSIDE):
        return True
    path, _, fragment = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not fragment or (target.suffix == ".md" and fragment in anchors(target))
