"""Positions of a store, and what is not known of them."""

from __future__ import annotations

import pytest
from panes import on_store

from engine.inspection.positions import positions
from viewer.pane.position_facts import gap_list, look, rows, ruler_view
from viewer.positions.pane import PositionsPane


@pytest.mark.golden
def test_what_files_cannot_tell_is_said_and_never_drawn(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        found = positions(session.snapshot)
        assert found.flushed.offset is None
        assert any("flushed" in text and "not written down" in text for text in pane._unknown.texts())
        row = next(r for r in rows(pane._seen) if r.key == "flushed")
        assert (row.offset, row.behind) == (None, None)
        assert not any(flag.name == "flushed" for flag in ruler_view(pane._seen, None).flags)
        assert "flushed" not in [name for name, _, _ in gap_list(pane._seen)]

    on_store(qapp, PositionsPane, golden("crash-power-5.3.3"), drive)


def test_a_store_with_an_empty_log_is_drawn_without_a_line(qapp, tmp_path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(8192))

    async def drive(pane, session) -> None:
        seen = look(session.snapshot, 0)
        assert seen.positions.wrote.offset == 0
        assert ruler_view(seen, None).lens()[1] > 0
        pane.ruler.grab()

    on_store(qapp, PositionsPane, tmp_path, drive)


@pytest.mark.golden
def test_a_log_by_itself_does_not_claim_to_be_flushed(qapp, golden) -> None:
    """Without its store nothing says whether the broker was stopped: the page cache may hold the tail."""

    async def drive(pane, session) -> None:
        row = next(r for r in rows(pane._seen) if r.key == "flushed")
        assert row.offset is None
        assert "log by itself" in row.why
        assert "whole store" in pane._plan_words.text()

    on_store(qapp, PositionsPane, next(golden("clean-5.3.3").rglob("commitlog")), drive)
