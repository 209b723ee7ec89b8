"""What an export says it has read is what files hold: a missing file was not read."""

from __future__ import annotations

from types import SimpleNamespace

from viewer.log.export_work import _held


def test_a_missing_file_is_not_counted_as_read() -> None:
    """A log with one file gone said "2.33 MiB of log read", where 1.33 were there."""
    files = [SimpleNamespace(start_offset=position, end_offset=position + 100) for position in (0, 200)]
    log = SimpleNamespace(files=files)
    assert _held(log, 0, 250) == 150
    assert _held(log, 50, 90) == 40
    assert _held(log, 100, 200) == 0
