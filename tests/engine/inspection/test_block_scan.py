"""A scan in blocks gives the same result as the log's own walk: units, blanks, damage, gaps and the end."""

import os
import random

import pytest
from column_rows import row_of, rows_of
from golden_stores import names
from raw_units import raw_blank, raw_log, raw_unit

from engine.codec import columns
from engine.codec.columns import UnitColumns
from engine.codec.message import Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence

TWINS = pytest.mark.parametrize("plain", ["0", "1"], ids=["compiled", "plain"])


@pytest.fixture(autouse=True)
def _twin(request, monkeypatch):
    monkeypatch.setenv(
        "STORESCOPE_PLAIN", request.node.callspec.params.get("plain", "0") if hasattr(request.node, "callspec") else "0"
    )


def log_at(directory):
    return LogReader(FileSequence([directory], DescriptorCache()))


def rows_by_block(log, start=None, stop=None, rows=columns.BLOCK_ROWS):
    topics = TopicTable()
    story = []
    for block in scan_log(log, start, stop, topics=topics, rows=rows):
        story += rows_of(block, topics) if isinstance(block, UnitColumns) else [block]
    return story


def rows_by_unit(log, start=None, stop=None):
    return [row_of(item) if isinstance(item, Unit) else item for item in log.walk(start, stop)]


def write(directory, *files, size):
    """Write log files of ``size`` bytes one after the other; return the directory."""
    directory.mkdir(exist_ok=True)
    for number, data in enumerate(files):
        (directory / f"{number * size:020d}").write_bytes(data.ljust(size, b"\0"))
    return directory


def units(count, base, seed=0, max_body_size=600):
    rng = random.Random(seed)
    return raw_log(
        *({"body": rng.randbytes(rng.randrange(max_body_size)), "queue_offset": n} for n in range(count)), base=base
    )


@pytest.mark.full_form(keep=15)
@TWINS
@pytest.mark.parametrize("name", names())
def test_golden_logs(golden, name, plain):
    for folder in sorted(golden(name).rglob("commitlog")):
        log = log_at(folder)
        assert rows_by_block(log) == rows_by_unit(log)


@TWINS
@pytest.mark.parametrize("rows", [1, 7, 64, 8192])
def test_blocks_of_any_number_of_rows_over_several_files(tmp_path, plain, rows):
    size = 1 << 17
    files = []
    for number in range(3):
        data = units(300, number * size, number)[: size - 8]
        full_log_end = log_end(data, number * size)
        files.append(data[:full_log_end] + raw_blank(size - full_log_end))
    log = log_at(write(tmp_path / "log", *files, size=size))
    story = rows_by_unit(log)
    assert sum(isinstance(item, Blank) for item in story) == 3
    assert rows_by_block(log, rows=rows) == story


def log_end(data, base):
    """Return the length of the complete units at the front of ``data``."""
    from engine.codec.unit_scan import walk

    return [item for item in walk(data, base) if isinstance(item, Stop)][-1].offset - base


@TWINS
@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere(tmp_path, plain, seed):
    rng = random.Random(seed)
    size = 1 << 16
    files = [bytearray(units(120, n * size, seed + n)[: size - 8]) for n in range(2)]
    for number, data in enumerate(files):
        full_log_end = log_end(bytes(data), number * size)
        data[full_log_end:] = raw_blank(size - full_log_end)
        for _ in range(rng.randrange(4)):
            position = rng.randrange(full_log_end)
            data[position : position + rng.choice((1, 4, 400))] = rng.choice((b"\xff", b"\0\0\0\0", bytes(400)))
    log = log_at(write(tmp_path / "log", *map(bytes, files), size=size))
    assert rows_by_block(log) == rows_by_unit(log)
    start = log.min_offset
    for stop in (0, 1, size - 1, size, size + 1, rng.randrange(2 * size)):
        assert rows_by_block(log, start, stop) == rows_by_unit(log, start, stop)


@TWINS
def test_a_missing_file_in_the_middle(tmp_path, plain):
    size = 1 << 14
    folder = write(tmp_path / "log", *(units(20, n * size) for n in range(4)), size=size)
    (folder / f"{size:020d}").unlink()
    log = log_at(folder)
    assert rows_by_block(log) == rows_by_unit(log)


@TWINS
def test_a_unit_larger_than_the_buffer(tmp_path, plain, monkeypatch):
    monkeypatch.setattr(columns, "BUFFER_BYTES", 1 << 14)
    monkeypatch.setattr(columns, "CHUNK_BYTES", 1 << 12)
    data = raw_log({}, {"body": bytes(20_000)}, {}, {"body": b"y" * 12_000}, {"body": bytes(70_000)}, {})
    log = log_at(write(tmp_path / "log", data, size=1 << 18))
    assert rows_by_block(log) == rows_by_unit(log)


@TWINS
def test_an_empty_log_and_a_log_of_zeros(tmp_path, plain):
    (tmp_path / "none").mkdir()
    for folder in (tmp_path / "none", write(tmp_path / "zeros", b"", b"", size=4096)):
        log = log_at(folder)
        assert rows_by_block(log) == rows_by_unit(log)


@TWINS
@pytest.mark.parametrize("remaining_size", [0, 100, 5000, 40_000])
def test_a_file_cut_short_in_the_middle_of_a_scan_ends_it_with_a_value(tmp_path, plain, remaining_size):
    """With a memory map the process would crash here, because the pages after the new end are gone."""
    size = 9 << 20
    data = units(20_000, 0)
    log = log_at(write(tmp_path / "log", data, size=size))
    path = tmp_path / "log" / f"{0:020d}"
    scan_items = []
    for block in scan_log(log, rows=100):
        scan_items.append(block)
        if len(scan_items) == 1:
            os.truncate(path, remaining_size)
    assert isinstance(scan_items[-1], Stop)
    assert len(scan_items) < 200


@TWINS
def test_a_vanished_file_is_a_separate_value(tmp_path, plain):
    """Its contents are unknown, and the scan continues after it."""
    size = 1 << 16
    folder = write(tmp_path / "log", units(100, 0), units(100, size), size=size)
    log = log_at(folder)
    for path in folder.iterdir():
        path.unlink()
    story = list(scan_log(log))
    assert [type(item) for item in story] == [Damage, Damage, Stop]
    assert [(item.offset, item.size, item.unread) for item in story[:2]] == [(0, size, True), (size, size, True)]
    assert "cannot be read" in story[0].reason


@TWINS
def test_a_log_that_grows_is_followed_by_the_next_scan(tmp_path, plain):
    folder = write(tmp_path / "log", raw_unit(0), size=4096)
    log = log_at(folder)
    assert len(rows_by_block(log)) == 2
    with (folder / f"{0:020d}").open("r+b") as file:
        file.seek(len(raw_unit()))
        file.write(raw_unit(len(raw_unit())))
    assert len(rows_by_block(log)) == 3


def test_memory_does_not_grow_with_the_log(tmp_path):
    import tracemalloc

    data = units(30_000, 0)
    log = log_at(write(tmp_path / "log", data, size=len(data) + 100))
    sum(isinstance(block, Stop) for block in scan_log(log))
    tracemalloc.start()
    blocks = sum(1 for _ in scan_log(log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert blocks > 3
    assert peak < columns.BUFFER_BYTES + 2 * columns.BLOCK_ROWS * 128 + (1 << 20)
