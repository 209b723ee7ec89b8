"""Splits: wherever a file is cut, the pieces give the same rows as one walk of the file."""

import dataclasses
import itertools
import pickle
import random
import shutil

import pytest
from column_rows import row_of, rows_of
from full_files import BODY, SIZE, full_file
from golden_stores import third_of_names
from hypothesis import given
from hypothesis import strategies as st
from raw_units import raw_log, raw_unit

from engine.codec.columns import UnitColumns
from engine.codec.message import Unit
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.pipeline import splits
from engine.pipeline.files import StorePlace, find_stores
from engine.pipeline.splits import SplitEnd, broken_seams, cut_split, plan, read_split


@pytest.fixture(autouse=True)
def _anchors_are_near(monkeypatch):
    """Make anchors close: the files here are small, and an anchor must be found, not the beginning of the file."""
    monkeypatch.setattr(splits, "NEAR_BYTES", 700)


def rows_by_engine(folder):
    log = LogReader(FileSequence([folder], DescriptorCache()))
    return [row_of(item) if isinstance(item, Unit) else item for item in log.walk() if not isinstance(item, Stop)]


def rows_by_splits(pieces, look_back=splits.LOOK_BACK_BYTES):
    """Return the rows of the pieces, and the end of each."""
    topics, story, ends = TopicTable(), [], []
    for piece in pieces:
        for block in read_split(piece, topics=topics, rows=64, look_back=look_back):
            if isinstance(block, SplitEnd):
                ends.append((piece, block))
            else:
                story += rows_of(block, topics) if isinstance(block, UnitColumns) else [block]
    return story, ends


def place_of(folder):
    return StorePlace(str(folder), None, (str(folder),))


def write(folder, *files, size=SIZE):
    folder.mkdir(exist_ok=True)
    for number, data in enumerate(files):
        (folder / f"{number * size:020d}").write_bytes(bytes(data).ljust(size, b"\0"))
    return folder


def spoil(rng, data):
    """Plant one fault of a random kind."""
    position = rng.randrange(len(data) - 8)
    kind = rng.randrange(6)
    if kind == 0:
        data[position : position + rng.randrange(1, 9)] = b"\xff" * rng.randrange(1, 9)
    elif kind == 1:
        length = min(rng.randrange(5000), len(data) - position)
        data[position : position + length] = bytes(length)
    elif kind == 2:
        source = rng.randrange(len(data))
        piece = data[source : source + rng.randrange(3000)]
        data[position : position + len(piece)] = piece[: len(data) - position]
    elif kind == 3:
        data[position:] = bytes(len(data) - position)
    elif kind == 4:
        data[position] ^= 1 << rng.randrange(8)
    else:
        unit = raw_unit(rng.randrange(1 << 40), body=bytes(rng.randrange(300)))
        data[position : position + len(unit)] = unit[: len(data) - position]


@pytest.mark.parametrize("name", third_of_names(0))
def test_golden_logs_in_splits_of_many_sizes(golden, name):
    for folder in sorted(golden(name).rglob("commitlog")):
        expected = rows_by_engine(folder)
        for split_bytes in (1 << 30, 1 << 16, 40_009):
            story, ends = rows_by_splits(plan([place_of(folder)], split_bytes).splits, look_back=1 << 14)
            assert story == expected
            assert broken_seams(ends) == []


def test_splits_of_one_byte(tmp_path):
    folder = write(tmp_path / "log", full_file(0, 1, 1024, 150), size=1024)
    pieces = plan([place_of(folder)], 1).splits
    assert len(pieces) == 1024
    assert rows_by_splits(pieces)[0] == rows_by_engine(folder)


@given(st.integers(0, 1 << 32), st.integers(1, 3), st.integers(0, 4), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_any_cuts_of_any_log_tell_what_one_walk_tells(tmp_path_factory, seed, count, faults, nested, data):
    rng = random.Random(seed)
    files = [full_file(number * SIZE, seed + number, nested=nested) for number in range(count)]
    for _ in range(faults):
        spoil(rng, files[rng.randrange(count)])
    folder = tmp_path_factory.mktemp("log")
    write(folder, *files)
    if count == 3 and rng.random() < 0.3:
        (folder / f"{SIZE:020d}").unlink()
    cuts = data.draw(st.lists(st.integers(1, SIZE - 1), max_size=12))
    pieces = [piece for split in plan([place_of(folder)]).splits for piece in cut_at(split, cuts)]
    story, ends = rows_by_splits(pieces, look_back=SIZE)
    assert story == rows_by_engine(folder)
    assert broken_seams(ends) == []


def cut_at(split, cuts):
    edges = sorted({0, *cuts, split.stop})
    for start, stop in itertools.pairwise(edges):
        is_last = stop == split.stop
        yield dataclasses.replace(
            split, start=start, stop=stop, exact=start == 0, gap_to=split.gap_to if is_last else 0
        )


@pytest.mark.parametrize("seed", range(6))
def test_with_a_short_look_back_bodies_full_of_units_mislead_no_split(tmp_path, seed):
    """The anchors are really used: the log is much longer than the part that is looked back at."""
    size = 1 << 19
    folder = write(tmp_path / "log", full_file(0, seed, size, nested=0.5), size=size)
    expected = rows_by_engine(folder)
    for split_bytes in (10_000, 3333):
        story, ends = rows_by_splits(plan([place_of(folder)], split_bytes).splits, look_back=4096)
        assert story == expected
        assert broken_seams(ends) == []


def test_a_unit_that_hides_a_whole_window_of_made_up_units_breaks_a_seam(tmp_path):
    """The ends of the splits reveal what a short look back cannot see."""
    size, inner = 1 << 19, bytearray()
    while len(inner) < 300_000:
        inner += raw_unit(BODY + len(inner), topic=b"Inner", body=b"x" * 100)
    folder = write(tmp_path / "log", raw_log({"body": bytes(inner)}, {}, {}), size=size)
    story, ends = rows_by_splits(plan([place_of(folder)], 1 << 17).splits, look_back=1 << 14)
    assert story != rows_by_engine(folder)
    (path,) = broken_seams(ends)
    (split,) = plan([place_of(folder)]).splits
    assert path == split.path
    assert rows_by_splits([split])[0] == rows_by_engine(folder)
    assert rows_by_splits(plan([place_of(folder)], 1 << 17).splits)[0] == rows_by_engine(folder)


def test_a_log_that_ends_in_the_middle_of_a_file_and_a_file_made_ahead(tmp_path):
    for data in (raw_log({}, {}, base=SIZE), b"\0" * 16 + raw_log({}, {}, base=SIZE + 16)):
        for first_file in (full_file(0, 1), full_file(0, 1)[:9000], b""):
            folder = write(tmp_path / "log", first_file, data)
            for split_bytes in (SIZE, 1000):
                assert rows_by_splits(plan([place_of(folder)], split_bytes).splits)[0] == rows_by_engine(folder)


def test_zero_bytes_behind_the_log_are_one_split(tmp_path):
    size = 1 << 20
    folder = write(tmp_path / "log", raw_log(*({"body": b"x" * 900} for _ in range(100))), size=size)
    pieces = plan([place_of(folder)], 1 << 14).splits
    assert pieces[-1].stop == size
    assert len(pieces) < 16
    assert rows_by_splits(pieces)[0] == rows_by_engine(folder)


def test_a_file_that_is_gone_or_cut_short_is_damage(tmp_path):
    folder = write(tmp_path / "log", full_file(0, 1), full_file(SIZE, 2))
    pieces = plan([place_of(folder)], SIZE // 2).splits
    expected = rows_by_splits(pieces)[0]
    (folder / f"{0:020d}").unlink()
    story = rows_by_splits(pieces)[0]
    assert [(item.offset, item.size) for item in story[:2]] == [(0, SIZE // 2), (SIZE // 2, SIZE // 2)]
    assert "No such file" in story[0].reason
    second = folder / f"{SIZE:020d}"
    second.write_bytes(second.read_bytes()[:5000])
    story = rows_by_splits(pieces)[0][2:]
    assert isinstance(story[-1], Damage)
    assert SIZE + 4500 < story[-1].offset < SIZE + 5000
    assert story[-1].offset + story[-1].size == SIZE + 5000
    rows_of_second = [
        item for item in expected if not isinstance(item, Damage) and isinstance(item, tuple) and item[0] >= SIZE
    ]
    assert story[:-1] == rows_of_second[: len(story) - 1]


def test_a_split_is_a_small_value(tmp_path):
    folder = write(tmp_path / "log", full_file(0, 1))
    (split,) = plan([place_of(folder)]).splits
    assert pickle.loads(pickle.dumps(split)) == split
    assert len(pickle.dumps(split)) < 600
    assert list(cut_split(split, SIZE)) == [split]


def test_parts_that_are_not_wanted_are_left_out_and_told(tmp_path):
    folder = write(tmp_path / "log", full_file(0, 1), full_file(SIZE, 2))
    wanted_ranges = splits.Ranges(((SIZE + 100, SIZE + 5000),), "the offsets that were asked for")
    chosen = plan([place_of(folder)], wanted_ranges={str(folder): wanted_ranges})
    assert [(split.file_start, split.start, split.stop) for split in chosen.splits] == [(SIZE, 100, 5000)]
    assert [skipped.bytes for skipped in chosen.skipped] == [SIZE, SIZE - 4900]
    units = [item for item in rows_by_engine(folder) if isinstance(item, tuple)]
    full_units = [unit for unit in units if SIZE + 100 <= unit[0] < SIZE + 5000]
    assert rows_by_splits(chosen.splits)[0] == full_units


def test_stores_of_a_fleet(golden, tmp_path):
    for name in ("broker-a", "broker-b"):
        shutil.copytree(golden("clean-4.9.8"), tmp_path / name / "store")
    (tmp_path / "no store").mkdir()
    stores = find_stores(f"{tmp_path}/*/store")
    assert [(place.path, place.broker) for place in stores] == [
        (f"{tmp_path}/broker-a/store", "broker-a"),
        (f"{tmp_path}/broker-b/store", "broker-b"),
    ]
    assert find_stores(f"{tmp_path}/broker-a")[0].path == f"{tmp_path}/broker-a/store"
    assert {split.broker for split in plan(stores).splits} == {"broker-a", "broker-b"}


def test_a_fleet_has_no_more_splits_than_a_driver_can_hold(tmp_path, monkeypatch):
    """They are twice as long, or four times, but no longer than files."""
    stores = [
        place_of(write(tmp_path / str(n), *(full_file(SIZE * part, 9 * n + part) for part in range(3))))
        for n in range(4)
    ]
    requested_splits = plan(stores, SIZE // 16).splits
    assert len(requested_splits) == 4 * 3 * 16
    monkeypatch.setattr(splits, "MAX_SPLITS", 50)
    fewer = plan(stores, SIZE // 16).splits
    assert len(fewer) == 4 * 3 * 4
    monkeypatch.setattr(splits, "MAX_SPLITS", 2)
    full_splits = plan(stores, SIZE // 16).splits
    assert [(item.start, item.stop, item.path) for item in full_splits] == [
        (0, SIZE, f"{store.path}/{SIZE * part:020d}") for store in stores for part in range(3)
    ]
    assert rows_by_splits(requested_splits)[0] == rows_by_splits(fewer)[0] == rows_by_splits(full_splits)[0]
