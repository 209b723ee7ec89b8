"""Documentation in ``resources/docs``: every link, anchor and citation has a target."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import docs
import pytest

from engine import __version__
from engine.codec.message import decode
from engine.remoting.frame import Command, FrameReader

ROOT = Path(__file__).resolve().parents[2]
PAGES = docs.pages()
CITATION = re.compile(r"docs/((?:formats|protocol)/[a-z-]+\.md)(#[a-z-]+)?((?:,\s+(?:#\s)?\s*#[a-z-]+)*)")


@pytest.mark.parametrize("page", PAGES, ids=docs.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    broken = [link for link in docs.links(page) if not docs.resolves(page, link)]
    assert broken == []


def citations(text: str) -> list[tuple[str, str]]:
    """Return (page, anchor) for each citation; ``docs/formats/a.md#b, #c`` names two places of one page."""
    places = []
    for match in CITATION.finditer(text):
        anchors = [match[2] or "", *re.findall(r"#[a-z-]+", match[3])]
        places += [(match[1], anchor) for anchor in anchors]
    return places


def test_every_page_that_the_code_cites_exists() -> None:
    missing = []
    count = 0
    for folder in ("engine", "viewer", "tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file == Path(__file__):
                continue
            for page, anchor in citations(file.read_text("utf-8")):
                count += 1
                target = docs.DOCS / page
                if not target.is_file() or (anchor and anchor[1:] not in docs.anchors(target)):
                    missing.append(f"{file.relative_to(ROOT)}: docs/{page}{anchor}")
    assert count > 300
    assert missing == []


def test_no_comment_cites_a_page_that_nobody_can_open() -> None:
    """Sections were once cited by numbers of notes that are not part of the project."""
    number = re.compile(r"\b(?:spec|protocol|pop\s+page)\s+\d", re.IGNORECASE)
    texts = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for folder in ("engine", "viewer", "tests")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for match in number.finditer(file.read_text("utf-8"))
    ]
    assert texts == []


def test_a_missing_page_and_a_missing_anchor_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n## One `code` heading\n\n[a](page.md) [b](none.md) [c](#one-code-heading) [d](#two)\n")
    assert docs.links(page) == ["page.md", "none.md", "#one-code-heading", "#two"]
    assert [docs.resolves(page, link) for link in docs.links(page)] == [True, False, True, False]
    assert citations("(docs/formats/a.md#b, #c; docs/protocol/d.md)") == [
        ("formats/a.md", "#b"),
        ("formats/a.md", "#c"),
        ("protocol/d.md", ""),
    ]


def hex_blocks(page: str) -> list[bytes]:
    """Return the bytes of each block of hexadecimal digits on a page."""
    text = (docs.DOCS / page).read_text("utf-8")
    return [
        bytes.fromhex("".join(block.split()))
        for block in re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


def test_the_unit_that_the_page_prints_is_decoded_as_the_page_says() -> None:
    (data,) = hex_blocks("formats/check-vector.md")
    unit = decode(data, base=1234)
    assert (len(data), unit.topic, unit.queue_id, unit.queue_offset) == (123, "TopicTest", 3, 5)
    assert (unit.physical_offset, unit.body, unit.keys, unit.tags) == (1234, b"Hello", ["k1"], "TagA")


def command_in(frame: bytes) -> Command:
    """Return the only command in ``frame``."""
    reader = FrameReader()
    reader.feed(frame)
    (command,) = reader.commands()
    assert isinstance(command, Command)
    return command


def test_the_frames_that_the_page_prints_are_decoded_as_the_page_says() -> None:
    route, send, answer, item, error = hex_blocks("protocol/check-vectors.md")
    assert [len(data) for data in (route, send, answer, item, error)] == [49, 181, 104, 52, 54]
    request, sending, sent, failed = (command_in(data) for data in (route, send, answer, error))
    assert (sending.code, sending.fields["b"], sending.fields["e"], bytes(sending.body)) == (
        310,
        "TopicTest",
        "3",
        b"Hello",
    )
    assert (request.code, request.opaque, request.fields) == (105, 7, {"topic": "TopicTest"})
    assert (sent.opaque, sent.fields["queueOffset"]) == (8, "5")
    assert (failed.code, failed.remark) == (1, "not set any response code")


def test_generated_pages_are_current() -> None:
    """Run ``python packaging/docs.py`` after a change of a command, a rule, a filter field or a record."""
    spec = importlib.util.spec_from_file_location("docs_writer", ROOT / "packaging" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    assert sorted(writer.stale_pages()) == []


def test_the_version_of_the_program_is_the_newest_of_the_changelog() -> None:
    versions = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert versions[0] == __version__
    assert [tuple(map(int, version.split("."))) for version in versions] == sorted(
        (tuple(map(int, version.split("."))) for version in versions), reverse=True
    )


def test_the_pages_of_the_site_lead_somewhere_too(tmp_path: Path) -> None:
    script = ROOT / "packaging" / "site_pages.py"
    subprocess.run([sys.executable, str(script), str(tmp_path / "site")], check=True)
    pages = sorted((tmp_path / "site" / "docs").rglob("*.md"))
    assert len(pages) > 150
    for page in pages:
        text = page.read_text("utf-8")
        assert "](command:" not in re.sub(r"`[^`]*`", "", text), page
        assert [link for link in docs.links(page) if not docs.resolves(page, link)] == [], page
    nav = json.loads((tmp_path / "site" / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = [path for section in nav for paths in section.values() for path in paths]
    assert sorted(listed) == sorted(page.relative_to(tmp_path / "site" / "docs").as_posix() for page in pages)
