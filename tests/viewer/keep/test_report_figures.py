"""Drawings of a report."""

from __future__ import annotations

import re

from viewer.keep.report_figures import Bars, LogLine, Mark, svg


def test_a_drawing_keeps_to_its_room_and_has_words() -> None:
    text = svg(LogLine("where", 1000, 2000, (Mark(900, "before"), Mark(1500, "middle"), Mark(5000, "behind"))))
    assert 'aria-label="where"' in text
    assert re.findall(r'<line x1="([\d.]+)"', text) == ["4.0", "520.0", "1036.0"]
    widths = re.findall(r'width="([\d.]+)" height="12"', svg(Bars("b", (("a", 50, "50"), ("c", 100, "100")))))
    assert float(widths[1]) == 2 * float(widths[0])
