"""A short walk finds the end of a log even if the newest queue entry is far before it. Queues that lag behind a fast
writer do not make the search longer by their lag.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_units import raw_unit

from engine.errors import CannotRead
from engine.inspection import log_reader
from engine.inspection.log_reader import UNITS_BETWEEN_TAIL_SEARCHES, LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence

SIZE = 16 << 20
BODY = b"x" * 1900


def units(count: int, base: int = 0) -> bytes:
    """Return ``count`` units, one after the other, from offset ``base`` on."""
    log = bytearray()
    for _ in range(count):
        log += raw_unit(base + len(log), body=BODY)
    return bytes(log)


class CountingLogReader(LogReader):
    """A log reader that counts the items of its walks."""

    walked = 0

    def walk(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for item in super().walk(*args, **kwargs):
            self.walked += 1
            yield item


def opened(folder: Path, data: bytes) -> CountingLogReader:
    """Open a log of one file that begins with ``data``; its queues refer only to the first unit."""
    (folder / f"{0:020d}").write_bytes(data.ljust(SIZE, b"\0"))
    first_size = int.from_bytes(data[:4], "big")
    return CountingLogReader(FileSequence([folder], DescriptorCache()), lambda: [(0, first_size)])


def test_a_far_end_costs_little(tmp_path: Path) -> None:
    data = units(7000)
    log = opened(tmp_path, data)
    assert log.max_offset == len(data)
    assert log.walked < 3 * UNITS_BETWEEN_TAIL_SEARCHES


@pytest.mark.parametrize(
    "count",
    [
        1,
        UNITS_BETWEEN_TAIL_SEARCHES - 1,
        UNITS_BETWEEN_TAIL_SEARCHES,
        UNITS_BETWEEN_TAIL_SEARCHES + 1,
        3 * UNITS_BETWEEN_TAIL_SEARCHES,
        4100,
    ],
)
def test_the_end_equals_that_of_a_walk_at_every_length(tmp_path: Path, count: int) -> None:
    data = units(count)
    assert opened(tmp_path, data).max_offset == len(data)


def test_a_file_without_a_zero_tail_ends_at_its_last_unit(tmp_path: Path) -> None:
    data = units(2000)
    assert opened(tmp_path, data + b"\x7f" * (SIZE - len(data))).max_offset == len(data)


def test_a_writer_faster_than_the_walk_does_not_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "UNITS_BETWEEN_TAIL_SEARCHES", 64)
    data = units(7000)
    shown = 200
    log = opened(tmp_path, data[: shown * len(data) // 7000])
    path = tmp_path / f"{0:020d}"
    walk = LogReader.walk

    def growing(self: LogReader, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Two units are written for each that is walked."""
        nonlocal shown
        for item in walk(self, *args, **kwargs):
            shown = min(shown + 2, 7000)
            with path.open("r+b") as file:
                file.write(data[: shown * len(data) // 7000])
            self.walked += 1  # type: ignore[attr-defined]
            yield item

    monkeypatch.setattr(CountingLogReader, "walk", growing)
    end = log.max_offset
    assert end % (len(data) // 7000) == 0
    assert shown < 7000, "it ended while the writer went on"


@pytest.mark.parametrize("bad", [None, 0, 7])
def test_the_end_found_in_the_background_is_that_of_the_plain_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int | None
) -> None:
    """A background thread searches the end. Every caller waits for it, whatever end was known before."""
    data = bytearray(units(20))
    if bad is not None:
        data[data.index(BODY, bad * (len(data) // 20))] ^= 1
    log = opened(tmp_path, bytes(data))
    log.settle(0)
    plain = log.max_offset
    assert plain == (len(data) if bad is None else bad * (len(data) // 20))
    monkeypatch.setattr(log_reader, "BULK", 0)
    go_on = threading.Event()
    in_bulk = log._settled_in_bulk
    monkeypatch.setattr(log, "_settled_in_bulk", lambda start: go_on.wait(60) and in_bulk(start))
    log.settle(0)
    assert log.known_end is None
    go_on.set()
    assert log.max_offset == log.known_end == plain


def test_a_read_error_in_the_background_reaches_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(tmp_path, units(3))
    monkeypatch.setattr(log_reader, "BULK", 0)

    def unread(start: int) -> int:
        raise CannotRead("cannot be read: gone")

    monkeypatch.setattr(log, "_settled_in_bulk", unread)
    log.settle(0)
    log.close()
    for _ in range(2):
        with pytest.raises(CannotRead, match="gone"):
            _ = log.max_offset
    log.forget_end()
    assert log.max_offset == 3 * len(units(1))
