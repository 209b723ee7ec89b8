"""The confirmation before something is written."""

from __future__ import annotations

import os

from viewer.pane.confirmation import process_name


def test_a_process_is_named_by_its_command() -> None:
    assert "py" in process_name(os.getpid())
    assert process_name(1 << 30) == ""
