"""The amount that an export reports as read is the amount in the files: a missing file does not count."""

from __future__ import annotations

from types import SimpleNamespace

from viewer.log.export_work import _held


def test_a_missing_file_is_not_counted_as_read() -> None:
    """The export of a log with one missing file reported "2.33 MiB of log read", although the files have 1.33 MiB."""
    files = [SimpleNamespace(start_offset=position, end_offset=position + 100) for position in (0, 200)]
    log = SimpleNamespace(files=files)
    assert _held(log, 0, 250) == 150
    assert _held(log, 50, 90) == 40
    assert _held(log, 100, 200) == 0
