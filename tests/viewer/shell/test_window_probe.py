"""What ``doctor`` hears of the window."""

from __future__ import annotations

import pytest

from viewer.shell import system_libraries, window_probe


def test_qt_its_plug_ins_and_fonts_are_listed(qapp: object) -> None:
    rows = {row["name"]: row for row in window_probe.probe()}
    assert rows["Qt"]["value"].startswith("6.")
    assert "offscreen" in rows["platform plug-ins"]["value"]
    assert {"font Inter", "Chinese fonts"} <= rows.keys()


def test_libraries_that_a_display_needs_are_named_with_their_packages(
    qapp: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_libraries, "_lacking_for", lambda _: ["libxcb-cursor.so.0"])
    (row,) = [row for row in window_probe.probe() if row["name"] == "display"]
    assert (row["value"], row["fix"]) == ("Qt lacks libxcb-cursor.so.0", "apt-get install libxcb-cursor0")
