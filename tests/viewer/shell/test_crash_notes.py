"""Crash notes are found once, moved aside, and offered only after a run that crashed."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewer.shell.crash_notes import NAME, OLD, take_crash_notes


@pytest.mark.parametrize("sign", ["Fatal Python error: Segmentation fault", "uncaught at 2026-11-21\nTraceback …"])
def test_crash_notes_are_taken_once(tmp_path: Path, sign: str) -> None:
    (tmp_path / NAME).write_text(f"before\n{sign}\nafter\n", "utf-8")
    assert sign in take_crash_notes(tmp_path)
    assert take_crash_notes(tmp_path) == ""
    assert sign in (tmp_path / OLD).read_text("utf-8")


def test_a_clean_run_leaves_no_crash_notes(tmp_path: Path) -> None:
    assert take_crash_notes(tmp_path) == ""
    (tmp_path / NAME).write_text("StoreError: a job that failed and was told\n", "utf-8")
    assert take_crash_notes(tmp_path) == ""
    assert (tmp_path / NAME).exists()
