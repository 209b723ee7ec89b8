"""A report is one file without external parts, and its texts cannot become markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from viewer.reports.report_html import (
    Bars,
    LogLine,
    Mark,
    Part,
    Picture,
    Report,
    Section,
    Table,
    hex_listing,
    render,
    svg,
)

EVIL = '</script><script>alert(1)</script><img src="http://example.org/x">'
REPORT = Report(
    "zh-CN",
    f"Report {EVIL}",
    (EVIL,),
    (
        Section(
            "one",
            "One",
            (
                Part(
                    EVIL, (EVIL, ""), Table(("", "n"), ((("error", EVIL), 1_234_567), (None, True))), EVIL, kind="error"
                ),
                Part(pictures=(Picture(b"\x89PNG", EVIL),)),
                Part(figure=Bars(EVIL, ((EVIL, 9, EVIL), ("none", 0, "")))),
                Part(figure=LogLine(EVIL, 0, 1000, (Mark(500, EVIL, "error"), Mark(9999, "end")))),
            ),
        ),
    ),
    {"evil": EVIL},
)


class Reader(HTMLParser):
    """Collects tags and their targets."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in {"src", "href"}]


def test_texts_of_a_store_cannot_become_markup() -> None:
    text = render(REPORT)
    reader = Reader()
    reader.feed(text)
    assert reader.tags.count("script") == 1
    assert reader.tags.count("img") == 1
    assert (reader.tags.count("svg"), reader.tags.count("rect"), reader.tags.count("circle")) == (2, 3, 1)
    assert [source for source in reader.sources if not source.startswith(("#", "data:image/png;base64,"))] == []
    assert "1,234,567" in text
    assert "◆" in text
    data = re.search(r'id="storescope-report">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(data[1]) == {"evil": EVIL}


def test_bytes_as_lines() -> None:
    text = hex_listing(b"ABC\x00" * 5, 1_000_000)
    first_line, second_line = text.splitlines()
    assert first_line.strip().startswith("1,000,000  41 42 43 00")
    assert first_line.endswith("ABC·ABC·ABC·ABC·")
    assert second_line.strip().startswith("1,000,016  41 42 43 00")


def test_highlighted_and_masked_bytes() -> None:
    text = hex_listing(b"ABCDEF", 100, marked={1, 5}, hidden={2, 3})
    assert text.split("100 ")[1].split() == ["41>42", "••", "••", "45>46", "AB••EF"]


def test_a_drawing_fits_and_has_a_text() -> None:
    text = svg(LogLine("where", 1000, 2000, (Mark(900, "before"), Mark(1500, "middle"), Mark(5000, "behind"))))
    assert 'aria-label="where"' in text
    assert re.findall(r'<line x1="([\d.]+)"', text) == ["4.0", "520.0", "1036.0"]
    widths = re.findall(r'width="([\d.]+)" height="12"', svg(Bars("b", (("a", 50, "50"), ("c", 100, "100")))))
    assert float(widths[1]) == 2 * float(widths[0])
