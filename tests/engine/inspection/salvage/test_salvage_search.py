"""The rows: what was found, how sure that is, and what is left out."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from planted_faults import patch
from salvage_rounds import FILE_BYTES, WrittenStore, salvage, twin_logs, write_store

from engine.inspection.salvage.salvage_search import COMPLETE


@pytest.fixture
def written(tmp_path: Path) -> WrittenStore:
    return write_store(random.Random(5), tmp_path / "store", 2)


def big(written: WrittenStore) -> int:
    """Return a unit in the middle of the first file with a body and a CRC."""
    return next(
        offset
        for offset, unit in written.units.items()
        if 20_000 < offset < 90_000 and len(unit) > 600 and unit[8:12] != bytes(4)
    )


def test_a_sound_store_has_nothing_to_salvage(written: WrittenStore) -> None:
    image = written.root.parent / "image"
    image.write_bytes(written.log)
    assert salvage(written.root, [image]) == []


def test_a_damaged_message_is_whole_in_a_replica(written: WrittenStore) -> None:
    offset, image = big(written), written.root.parent / "image"
    image.write_bytes(written.log)
    patch(written.files[0], offset + 150, b"damaged")
    (row,) = salvage(written.root, [image])
    assert (row.verdict, row.physical_offset, row.data) == ("whole", offset, written.units[offset])
    assert {"missingInLog", "queueEntry", "storeHost", "unitBefore", "unitBehind"} <= {*row.evidence}
    assert [(place.file, place.offset) for place in row.places] == [(str(image), offset)]


def test_a_damaged_message_says_what_it_was(written: WrittenStore) -> None:
    offset = big(written)
    patch(written.files[0], offset + 150, b"damaged")
    (row,) = salvage(written.root, [])
    assert (row.verdict, row.physical_offset, row.doubts) == ("damaged", offset, ("wrong:bodyCRC",))
    assert row.topic in ("Orders", "Payments", "名", "T" * 200)


def test_a_message_whose_bytes_are_gone_is_known_by_its_queue_entry(written: WrittenStore) -> None:
    offset = big(written)
    patch(written.files[0], offset, bytes(len(written.units[offset])))
    (row,) = salvage(written.root, [])
    assert (row.verdict, row.physical_offset, row.size) == ("lost", offset, len(written.units[offset]))
    assert (row.places, row.evidence) == ((), ("queueEntry",))


def test_units_behind_the_end_of_the_log_are_found(written: WrittenStore) -> None:
    last = max(written.units)
    end = last + len(written.units[last])
    position = end - FILE_BYTES
    from raw_units import raw_unit

    patch(written.files[1], position + 300, raw_unit(end + 300, body=b"of an earlier start"))
    rows = salvage(written.root, [])
    assert [(row.verdict, row.physical_offset) for row in rows] == [("whole", end + 300)]
    assert {"behindLog", "ownPlace"} <= {*rows[0].evidence}


def test_another_generation_is_listed_and_never_taken_for_this_log(written: WrittenStore, tmp_path: Path) -> None:
    """Both contents of an offset are listed; the one that the queue entry names is the likelier one."""
    offset = big(written)
    other = write_store(random.Random(9), tmp_path / "other", 2, host=2)
    image = tmp_path / "image"
    image.write_bytes(other.log + written.log)
    patch(written.files[0], offset + 150, b"damaged")
    rows = salvage(written.root, [image])
    assert [row.physical_offset for row in rows if row.verdict == "whole"] == [offset]
    conflicts = [row for row in rows if row.verdict == "conflict"]
    assert len(conflicts) > 50
    assert all({"otherUnitInStore", "queueEntryElsewhere"} & {*row.doubts} for row in conflicts)


def test_a_copy_in_the_body_of_a_lost_message_is_no_message(written: WrittenStore, tmp_path: Path) -> None:
    """The head of the outer message is gone, so nothing says where its body ends."""
    from raw_units import raw_log, raw_unit

    inner = raw_unit(77_777_777)
    data = bytearray(raw_log({}, {"body": b"x" * 300 + inner + b"y" * 300}, {}, base=1 << 30))
    start = len(raw_unit(0))
    data[start : start + 90] = bytes(90)
    image = tmp_path / "image"
    image.write_bytes(bytes(data) + bytes(40))
    verdicts = {row.physical_offset: row.verdict for row in salvage(written.root, [image])}
    assert verdicts[77_777_777] == "inBody"
    assert list(verdicts.values()).count("inBody") == 1


def test_the_end_of_a_message_names_its_topic(written: WrittenStore, tmp_path: Path) -> None:
    from raw_units import raw_log, raw_unit

    data = raw_log({"topic": b"Orders", "body": b"x" * 500}, {}, base=1 << 30)
    image = tmp_path / "image"
    image.write_bytes(data[200:] + bytes(40))
    rows = salvage(written.root, [image])
    (tail,) = [row for row in rows if row.verdict == "tail"]
    assert (tail.topic, tail.keys, tail.doubts) == ("Orders", ["k1"], ("noHead",))
    assert raw_unit() not in data[:10]


def test_messages_that_a_dledger_leader_replaced_are_found(golden: Callable[[str], Path]) -> None:
    """They were taken for beginnings without an end: the header of the next entry follows, not a unit."""
    rows = salvage(golden("dledger-replaced-5.5.1"), [])
    assert {row.verdict for row in rows} == {"whole"}
    assert len(rows) == 21
    assert "Doomed" in {row.topic for row in rows}
    assert all({"ownPlace", "behindLog", "bodyCrc"} <= {*row.evidence} for row in rows)


def test_live_copies_among_others_are_left_out(written: WrittenStore, tmp_path: Path) -> None:
    """Only a few units of a block are compared with the store at first; those in the report are compared again."""
    offsets = sorted(written.units)
    other = bytearray(written.log[: offsets[60]])
    for offset in (*offsets[:30:2], *offsets[30:59]):
        other[offset + 23] ^= 1  # another queue offset
    image = tmp_path / "image"
    image.write_bytes(bytes(other) + bytes(40))
    rows = salvage(written.root, [image])
    assert [row.physical_offset for row in rows] == [*offsets[:30:2], *offsets[30:59]]
    assert {row.verdict for row in rows} == {"conflict"}


@pytest.mark.parametrize("by", [1, 8, -13])
def test_the_last_of_moved_messages_is_whole_though_the_next_one_lies_elsewhere(written: WrittenStore, by: int) -> None:
    """Its bytes are all there, behind them is the rest of another unit: it was taken for the beginning of a unit."""
    offsets = sorted(written.units)
    number = next(
        number
        for number, offset in enumerate(offsets)
        if 20_000 < offset < 90_000
        and len(written.units[offset]) < 700
        and len(written.units[offset]) < offset % 4096 < 3000
        and written.units[offset][8:12] != bytes(4)
    )
    last = offsets[number]
    data = written.log[last - 2000 : last + len(written.units[last])]
    patch(written.files[0], last - 2000 + by, data)
    rows = {row.physical_offset: row for row in salvage(written.root, [])}
    assert (rows[last].verdict, rows[last].data) == ("whole", written.units[last])


def test_half_messages_have_no_queue_entry_and_conflict_with_none(written: WrittenStore, tmp_path: Path) -> None:
    """Their queue offset is 0, where the queue has another message: each of them was listed as a conflict."""
    from raw_units import raw_log

    image = tmp_path / "image"
    fields = {"topic": b"Orders", "queue_id": 0, "queue_offset": 0}
    image.write_bytes(raw_log({**fields, "sys_flag": 4}, {**fields, "sys_flag": 12}, fields, base=1 << 30) + bytes(40))
    assert [row.verdict for row in salvage(written.root, [image])] == ["whole", "whole", "conflict"]


def test_a_message_of_another_time_in_the_place_of_a_known_one_is_a_conflict(
    written: WrittenStore, tmp_path: Path
) -> None:
    """Nothing in the store contradicted it: the message that its queue entry names is longer, and begins before."""
    from raw_units import raw_log

    offsets = sorted(written.units)
    offset = next(offset for offset in offsets if 20_000 < offset < 90_000 and len(written.units[offset]) > 2000)
    end = offset + len(written.units[offset])
    unknown = {"topic": b"Unknown", "queue_offset": 70}
    other = raw_log(unknown, unknown, base=offset + 500)
    image = tmp_path / "image"
    image.write_bytes(other + bytes(40) + written.log[offset : end + 3000])
    patch(written.files[0], offset, b"damaged" * 40)
    rows = {row.physical_offset: row for row in salvage(written.root, [image])}
    assert rows[offset].verdict == "whole"
    assert (rows[offset + 500].verdict, rows[offset + 500].doubts) == ("conflict", ("otherUnitThere",))


def test_a_live_message_in_front_of_damage_is_no_row(written: WrittenStore, tmp_path: Path) -> None:
    """Of the unit behind it only the first bytes are left: its copies in images were listed as lost messages."""
    offset = big(written)
    image = tmp_path / "image"
    image.write_bytes(written.log)
    patch(written.files[0], offset + 20, bytes(len(written.units[offset]) - 20))
    assert [row.physical_offset for row in salvage(written.root, [image])] == [offset]
    assert [row.physical_offset for row in salvage(written.root, [])] == [offset]


def test_the_last_message_of_the_log_with_a_broken_end_is_whole_in_a_replica(
    written: WrittenStore, tmp_path: Path
) -> None:
    """Its lengths and its body's CRC are right, its properties are no text: the copy was listed as a conflict."""
    from raw_units import raw_log, raw_unit

    root = tmp_path / "short"
    data = raw_log({}, {"body": b"last"})
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / f"{0:020d}").write_bytes((data[:-9] + b"\x00\xff\x07" * 3 + b"\xff" * 50).ljust(8192, b"\0"))
    image = tmp_path / "image"
    image.write_bytes(data + bytes(40))
    rows = salvage(root, [image])
    assert [(row.verdict, row.physical_offset) for row in rows if row.data] == [("whole", len(raw_unit()))]


def test_damage_near_other_damage_is_searched_too(written: WrittenStore) -> None:
    """The live units between two damaged ones were walked, and the search went on behind the second one."""
    offsets = [
        offset
        for offset, unit in sorted(written.units.items())
        if 10_000 < offset < FILE_BYTES - 10_000 and len(unit) > 1500 and unit[8:12] != bytes(4)
    ]
    from raw_units import raw_unit

    found = []
    for offset in (offsets[0], offsets[2]):
        patch(written.files[0], offset + 200, raw_unit(90_000_000 + offset))
        found.append(90_000_000 + offset)
    assert found == [row.physical_offset for row in salvage(written.root, []) if row.data]


def test_a_message_of_another_time_in_the_place_of_a_lost_one_is_a_conflict(
    written: WrittenStore, tmp_path: Path
) -> None:
    """The right message is nowhere, but its queue entry says that these bytes were its own."""
    from raw_units import raw_log

    offset = next(offset for offset in sorted(written.units) if offset > 20_000 and len(written.units[offset]) > 2000)
    unknown = {"topic": b"Unknown", "queue_offset": 70}
    image = tmp_path / "image"
    image.write_bytes(raw_log(unknown, unknown, base=offset + 500) + bytes(40))
    patch(written.files[0], offset, b"damaged" * 40)
    rows = [row for row in salvage(written.root, [image]) if row.data]
    assert [(row.verdict, row.doubts) for row in rows] == [("conflict", ("otherUnitThere",))] * 2


def test_of_two_brokers_logs_with_equal_sizes_only_the_own_is_whole(tmp_path: Path) -> None:
    """Both logs had a message of that size at that offset, so the queue entry spoke for both: both were whole, and what
    was put together first hid the other one.
    """
    rng = random.Random(4)
    store = write_store(rng, tmp_path / "store", 4, crc_zero=0)
    played = twin_logs(rng, store, tmp_path)
    rows = salvage(store.root, played.images)
    whole = [row for row in rows if row.verdict in COMPLETE]
    assert {row.physical_offset for row in whole} >= played.wanted
    assert all(row.data == store.units[row.physical_offset or 0] for row in whole)
    others = [row for row in rows if "otherStoreHost" in row.doubts]
    assert len(others) > 20
    assert {row.verdict for row in others} <= {"conflict", "unproven", "inBody"}
    assert any("likelierUnit" in row.doubts for row in others) or all("otherLog" in row.doubts for row in others)
