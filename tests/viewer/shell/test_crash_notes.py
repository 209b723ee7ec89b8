"""Last words are found once, put aside, and offered only where a run ended badly."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewer.shell.crash_notes import NAME, OLD, take


@pytest.mark.parametrize("sign", ["Fatal Python error: Segmentation fault", "uncaught at 2026-11-21\nTraceback …"])
def test_last_words_are_taken_once(tmp_path: Path, sign: str) -> None:
    (tmp_path / NAME).write_text(f"before\n{sign}\nafter\n", "utf-8")
    assert sign in take(tmp_path)
    assert take(tmp_path) == ""
    assert sign in (tmp_path / OLD).read_text("utf-8")


def test_a_run_that_ended_well_leaves_nothing_to_offer(tmp_path: Path) -> None:
    assert take(tmp_path) == ""
    (tmp_path / NAME).write_text("StoreError: a job that failed and was told\n", "utf-8")
    assert take(tmp_path) == ""
    assert (tmp_path / NAME).exists()
