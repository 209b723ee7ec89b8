"""Runs of whole units in any bytes, whatever lies before, between and behind them."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from raw_units import raw_log, raw_unit

from engine.codec import log_copies
from engine.codec.unit_survey import Surveyor
from engine.inspection.salvage import run_search, store_units
from engine.inspection.salvage.run_search import RunSearch
from engine.inspection.salvage.searched_files import image_source
from engine.inspection.salvage.store_units import StoreUnits
from engine.inspection.salvage.unit_tables import SearchResult
from engine.inspection.snapshot import open_store
from engine.mapped.image_file import ImageFile
from engine.mapped.reading import Reading

END = bytes(40)


def search(tmp_path: Path, data: bytes) -> SearchResult:
    path, root = tmp_path / "image", tmp_path / "store"
    path.write_bytes(data)
    (root / "commitlog").mkdir(parents=True, exist_ok=True)
    (root / "commitlog" / f"{0:020d}").write_bytes(raw_unit(0, body=b"live").ljust(4096, b"\0"))
    image = ImageFile(path, Reading(alone=True))
    with open_store(root) as store:
        units = StoreUnits()
        units.add(np.array([0]), len(raw_unit(0, body=b"live")))
        finder = RunSearch(store.log, units)
        finder.search(image_source(image), 7, lambda _: None)
    image.close()
    return finder.result()


def test_units_back_to_back_are_one_run(tmp_path: Path) -> None:
    log = raw_log({}, {"sys_flag": 48}, {"version": 2, "topic": b"T" * 200}, base=8192)
    result = search(tmp_path, b"junk \xda\xa3\x20\xa7" + log + END)
    (run,) = result.runs
    assert (run.source, run.position, run.physical_offset, run.size, run.unit_count) == (7, 9, 8192, len(log), 3)
    assert (run.is_live, run.shift, run.end_offset) == (False, 9 - 8192, 8192 + len(log))


def test_units_of_different_places_are_two_runs(tmp_path: Path) -> None:
    result = search(tmp_path, raw_unit(8192) + raw_unit(4096) + END)
    assert [run.physical_offset for run in result.runs] == [4096]  # what follows the first one is not the next unit
    assert [head.head.physical_offset for head in result.heads] == [8192]


def test_bytes_that_the_store_has_at_that_offset_are_live(tmp_path: Path) -> None:
    result = search(tmp_path, raw_unit(0, body=b"live") + END + raw_unit(0, body=b"dead") + END)
    assert [run.is_live for run in result.runs] == [True, False]


def test_a_unit_in_the_body_of_a_whole_unit_is_no_unit(tmp_path: Path) -> None:
    assert search(tmp_path, raw_unit(8192, body=b"x" * 9 + raw_unit(100)) + END).runs[0].unit_count == 1


def test_a_unit_in_a_damaged_body_is_marked(tmp_path: Path) -> None:
    data = raw_unit(8192, body=b"x" * 9 + raw_unit(100) + END + b"tea")
    result = search(tmp_path, data.replace(b"tea", b"TEA") + END)
    assert [(run.physical_offset, run.in_damaged) for run in result.runs] == [(100, True)]
    assert [(head.head.physical_offset, head.is_bad_body) for head in result.heads] == [(8192, True)]


def test_a_unit_without_an_end_is_a_head(tmp_path: Path) -> None:
    result = search(tmp_path, raw_unit(8192, body=b"x" * 500)[:300])
    assert (list(result.runs), [head.head.physical_offset for head in result.heads]) == ([], [8192])


@pytest.mark.parametrize("window", [1 << 12, 5000, 1 << 14])
def test_the_size_of_the_window_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    """Units at the end of a window, and one that is longer than two of them."""
    bodies = [b"x" * (137 * number % 1500) for number in range(60)] + [b"y" * 40_000, b"z"]
    log = raw_log(*({"body": body} for body in bodies), base=8192)
    data = b"-" * 700 + log + END + b"-" * 3000 + raw_log({}, {}, base=512) + END
    expected = list(search(tmp_path, data).runs)
    monkeypatch.setattr(run_search, "WINDOW_BYTES", window)
    monkeypatch.setattr(run_search, "CHUNK_BYTES", 1000)
    assert list(search(tmp_path, data).runs) == expected
    assert [run.unit_count for run in expected] == [62, 2]


def test_a_beginning_at_the_end_of_a_file_behind_live_and_other_units(tmp_path: Path) -> None:
    """The second search of the block, with CRCs, stopped in front of the beginning, and salvage failed."""
    live, other = raw_unit(0, body=b"live"), raw_unit(8192)
    result = search(tmp_path, live + END + live + END + other + END + raw_unit(9000, body=b"x" * 500)[:300])
    assert [run.is_live for run in result.runs] == [True, True, False]
    assert [head.head.physical_offset for head in result.heads] == [9000]


def test_units_behind_headers_of_entries_are_one_run(tmp_path: Path) -> None:
    """Each unit of a DLedger log was a run of its own, and what follows each one was searched for."""
    data, offset = b"", 8192
    for number in range(5):
        unit = raw_unit(offset + 48, body=b"x" * number)
        header = struct.pack(">iiqqqiiii", 1, 48 + len(unit), number, 3, offset, 0, 0, 0, len(unit))
        data += header + unit
        offset += 48 + len(unit)
    result = search(tmp_path, b"-" * 700 + data + END)
    (run,) = result.runs
    assert (run.unit_count, run.has_entries, run.physical_offset, run.end_offset) == (5, True, 8192 + 48, offset)


def test_a_unit_behind_a_copy_that_is_cut_by_a_page_is_found(tmp_path: Path) -> None:
    """The lengths and the body of a copy in a body were whole, its last bytes were the first ones of another file."""
    copy, unit = raw_unit(77_777), raw_unit(8192, body=b"x" * 300)
    result = search(tmp_path, (b"-" * 3000 + copy[:-10])[-1024:] + unit + END)
    assert [run.physical_offset for run in result.runs] == [8192]


def test_a_survey_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a log between other bytes, units that are damaged, live, cut, of other places, and longer than a block.

    The result is that of the search alone.
    """
    monkeypatch.setattr(run_search, "WINDOW_BYTES", 1 << 15)
    monkeypatch.setattr(run_search, "CHUNK_BYTES", 1 << 13)
    rng = random.Random(1)
    for number in range(12):
        sizes = [rng.choice((0, 50, 700, 3000)) for _ in range(150)]
        log = bytearray(raw_log(*({"body": rng.randbytes(size)} for size in sizes), base=8192))
        log[20_000:20_000] = raw_unit(0, body=b"live") + raw_unit(512, body=b"y" * rng.choice((10, 50_000)))
        for _ in range(3):
            log[rng.randrange(len(log))] ^= 1
        pieces = [
            bytes(log[start : start + 8192]) + rng.choice((rng.randbytes, bytes))(4096)
            for start in range(0, len(log), 8192)
        ]
        data = b"".join(pieces) if number % 3 else bytes(log)
        result = search(tmp_path, data + END)
        with monkeypatch.context() as patch:
            patch.setattr(Surveyor, "survey", lambda *_: None)
            expected = search(tmp_path, data + END)
        assert result.runs.rows.tolist() == expected.runs.rows.tolist()
        assert sorted(result.heads.rows.tolist()) == sorted(expected.heads.rows.tolist())
        assert result.open_ends == expected.open_ends


@pytest.mark.parametrize("max_pages", [0, 3, 1000])
def test_units_are_live_by_digests_of_pages_exactly_where_the_bytes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_pages: int
) -> None:
    rng = random.Random(max_pages)
    log = raw_log(*({"body": rng.randbytes(300), "body_crc": rng.choice((None, None, 0))} for _ in range(200)))
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(log.ljust(1 << 17, b"\0"))
    changed = bytearray(log)
    for _ in range(20):
        changed[rng.randrange(len(log))] ^= 1
    (tmp_path / "image").write_bytes(log[: 1 << 14] + rng.randbytes(4096) + bytes(changed) + END + log[1 << 13 :] + END)
    monkeypatch.setattr(run_search, "WINDOW_BYTES", 1 << 14)
    monkeypatch.setattr(run_search, "CHUNK_BYTES", 1 << 12)
    monkeypatch.setattr(log_copies, "MAX_PAGES", max_pages)
    image = ImageFile(tmp_path / "image", Reading(alone=True))
    with open_store(tmp_path) as store:
        units = store_units.walk_store(store, lambda _: None, with_digests=True)
        finder = RunSearch(store.log, units)
        finder.search(image_source(image), 0, lambda _: None)
    image.close()
    data = (tmp_path / "image").read_bytes()
    runs = list(finder.result().runs)
    for run in runs:
        copy = data[run.position : run.end_position]
        assert run.is_live == (log[run.physical_offset : run.end_offset] == copy)
    assert {run.is_live for run in runs} == {True, False}
