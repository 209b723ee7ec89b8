"""Damage in the log is mended: fields follow from the others, lost messages keep their places, bytes nobody names are
covered, and what was not touched stays.
"""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import pytest
import repair_rounds
from handmade_stores import HandmadeStore, HandmadeUnit, healthy, unit_bytes
from planted_faults import patch

from engine.codec import filler
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.log_damage import passed_over, repair_log
from engine.repair.repair import Repair
from engine.repair.repair_plan import plan_repairs
from engine.system_names import SCHEDULE_TOPIC


def at(root: Path, offset: int, data: bytes) -> None:
    """Write into the log of a small store."""
    name = offset // 4096 * 4096
    patch(root / "commitlog" / f"{name:020d}", offset - name, data)


def mended(root: Path, kept_to: int = 1 << 40, odd_units: tuple[int, ...] = ()) -> Repair | None:
    """Return the repair of the log, and make it."""
    with open_store(root) as store:
        repair = repair_log(store, kept_to, odd_units)
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


@pytest.fixture
def store() -> HandmadeStore:
    return healthy()


@pytest.fixture
def root(store: HandmadeStore, tmp_path: Path) -> Path:
    return store.write(tmp_path / "store")


def test_a_healthy_log_needs_no_repair(root):
    assert mended(root) is None


@pytest.mark.parametrize(
    ("position", "data", "verified"),
    [
        (0, b"\0\0\0\0", True),  # TOTALSIZE
        (4, b"xxxx", True),  # MAGICCODE
        (12, struct.pack(">iiq", 9, 0, 9999), True),  # QUEUEID, FLAG, QUEUEOFFSET: the queue's entry says them
        (28, struct.pack(">q", 5), True),  # PHYSICALOFFSET
        (84, struct.pack(">i", 1 << 30), True),  # BODYLEN
        (0, bytes(36), False),  # the CRC too
    ],
)
def test_overwritten_fields_are_put_right(root, store, position, data, verified):
    unit = store.units[20]
    before = repair_rounds.units_of(root)
    at(root, unit.offset + position, data)
    repair = mended(root, odd_units=(unit.offset,))
    assert repair is not None
    assert repair_rounds.units_of(root) == before
    assert repair.certainty == ("certain" if verified else "likely")
    assert not repair.costs if verified else "cannot be verified" in repair.costs


def test_the_address_of_the_producer_stays_the_long_one(golden, tmp_path):
    """The overwritten flags said that the broker's address is the long one, not the producer's. The repair kept that:
    the message had a store time of 1970, and a wrong producer.
    """
    root = shutil.copytree(golden("ipv6-and-unicode-5.3.3"), tmp_path / "store")
    before = repair_rounds.units_of(root)
    unit = next(unit for unit in before.values() if unit.sys_flag & 0x30 == 0x10 and not unit.transaction_type)
    with open_store(root) as opened:
        log_file = opened.log.sequence.find(unit.offset)
        assert log_file is not None
        patch(Path(log_file.path), unit.offset - log_file.start_offset + 36, b"\x20\x8b\xd6\xe5")
    repair = mended(root, odd_units=(unit.offset,))
    assert repair is not None
    assert repair_rounds.units_of(root) == before


def test_an_inverted_bit_of_a_body_is_put_right(root, store):
    unit = store.units[20]
    before = repair_rounds.units_of(root)
    body = before[unit.offset].body
    at(root, unit.offset + 88, bytes([body[0] ^ 4]))
    repair = mended(root)
    assert repair is not None
    assert "bit 2 of byte 0 of the body is inverted" in repair.patches[0].why
    assert repair_rounds.units_of(root) == before


def test_a_body_that_nothing_explains_stays_where_a_start_keeps_it(root, store):
    at(root, store.units[20].offset + 88, b"????")
    assert mended(root) is None


def test_a_body_that_ends_the_log_gives_its_place_to_a_placeholder(root, store):
    unit = store.units[20]
    at(root, unit.offset + 88, b"????")
    repair = mended(root, kept_to=unit.offset)
    assert repair is not None
    assert f"1 message stays lost (Orders/{unit.queue_id}/{unit.queue_offset})" in repair.costs
    after = repair_rounds.units_of(root)[unit.offset]
    assert (after.size, after.queue_offset) == (unit.size, unit.queue_offset)
    assert repair_rounds.stands_in(after)


def test_a_crc_that_was_never_stored_is_computed(root, store):
    at(root, store.units[20].offset + 8, bytes(4))
    before = repair_rounds.units_of(root)[store.units[20].offset].body
    repair = mended(root)
    assert repair is not None
    after = repair_rounds.units_of(root)[store.units[20].offset]
    assert (after.crc, after.body) == ("ok", before)


def test_a_blank_of_the_wrong_length_reaches_to_the_end_of_its_file(root):
    with open_store(root) as store:
        blank = next(item for item in store.units() if not isinstance(item, Unit))
    at(root, blank.offset, struct.pack(">i", 9))
    repair = mended(root)
    assert repair is not None
    with open_store(root) as store:
        assert blank in list(store.units())


def test_messages_that_are_gone_keep_their_places(root, store):
    lost = store.units[20:25]
    before = repair_rounds.units_of(root)
    at(root, lost[0].offset, bytes(lost[-1].offset + lost[-1].size - lost[0].offset))
    repair = mended(root)
    assert repair is not None
    after = repair_rounds.units_of(root)
    assert after.keys() == before.keys()
    for unit in lost:
        now = after[unit.offset]
        assert repair_rounds.stands_in(now)
        assert (now.topic, now.queue_id, now.queue_offset) == (unit.topic, unit.queue_id, unit.queue_offset)
        assert before[store.units[19].offset].store_timestamp == now.store_timestamp
    assert {offset: unit for offset, unit in after.items() if not repair_rounds.stands_in(unit)} == {
        offset: unit for offset, unit in before.items() if offset not in {unit.offset for unit in lost}
    }


def test_messages_of_which_no_entry_is_known_are_told_by_the_queue_offsets_around_them(store, tmp_path):
    root = store.write(tmp_path / "store", queues=False)
    lost = store.units[20:25]
    at(root, lost[0].offset, bytes(lost[-1].offset + lost[-1].size - lost[0].offset))
    repair = mended(root)
    assert repair is not None
    assert repair.certainty == "likely"
    assert repair.new_units == len(lost)
    units = repair_rounds.units_of(root).values()
    placeholders = {(unit.topic, unit.queue_id, unit.queue_offset) for unit in units if repair_rounds.stands_in(unit)}
    assert placeholders == {(unit.topic, unit.queue_id, unit.queue_offset) for unit in lost}
    assert store.units[25].offset in {unit.end for unit in units}


def test_bytes_of_which_nothing_is_known_are_covered(tmp_path):
    """Messages of queues that end in front of the damage: neither an entry nor a queue offset tells them."""
    store = HandmadeStore()
    for topic in ("Orders", "Payments", "Orders"):
        for _ in range(20):
            store.put(topic)
    root = store.write(tmp_path / "store", queues=False)
    lost = store.units[35:40]
    at(root, lost[0].offset, bytes(lost[-1].offset + lost[-1].size - lost[0].offset))
    repair = mended(root)
    assert repair is not None
    assert (repair.certainty, repair.new_units) == ("likely", 0)
    unit = repair_rounds.units_of(root)[lost[0].offset]
    assert unit.topic == filler.FILLER_TOPIC
    assert unit.end == store.units[40].offset


def test_damage_up_to_the_end_of_a_file_becomes_a_blank(root, store):
    with open_store(root) as opened:
        blank = next(item for item in opened.units() if not isinstance(item, Unit))
    at(root, blank.offset, bytes(blank.size))
    assert mended(root) is not None
    with open_store(root) as opened:
        assert blank in list(opened.units())


def test_damage_at_the_end_of_the_log_is_left_to_the_start(root, store):
    last = store.units[-1]
    at(root, last.offset, b"torn" + bytes(last.size - 4))
    assert mended(root) is None


def test_a_lost_message_of_the_delay_topic_is_passed_over_by_its_service(tmp_path):
    store = HandmadeStore()
    for _ in range(20):
        store.put(
            "SCHEDULE_TOPIC_XXXX", 2, body=b"x" * 100, more={"REAL_TOPIC": "Orders", "REAL_QID": "0", "DELAY": "3"}
        )
    root = store.write(tmp_path / "store")
    lost = store.units[5]
    at(root, lost.offset, bytes(lost.size))
    assert mended(root) is not None
    unit = repair_rounds.units_of(root)[lost.offset]
    assert (unit.properties["REAL_TOPIC"], unit.properties["DELAY"]) == ("RMQ_SYS_TRANS_HALF_TOPIC", "3")


@pytest.mark.golden
@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("seed", range(40))
def test_random_damage_loses_no_message_that_was_not_touched(golden, tmp_path, seed):
    rng = random.Random(seed)
    name = rng.choice(["clean-5.3.3", "clean-4.9.8", "clean-5.5.1", "propcrc-5.3.3", "broker-orders-5.5.1"])
    root = Path(shutil.copytree(golden(name), tmp_path / "store"))
    before = repair_rounds.units_of(root)
    hits = repair_rounds.damage_log(rng, root)
    mended(root)
    assert repair_rounds.wrongs(before, repair_rounds.units_of(root), hits) == []


def test_a_message_with_too_many_bytes_of_properties_keeps_its_body(tmp_path):
    """A batch of 4.x stores it; no broker dispatches it. Without its longest property it can be read."""
    store = HandmadeStore(log_size=1 << 17, queue_size=400)
    for number in range(10):
        store.put("Orders", 0, body=b"m%d" % number)
    long = {"comment": "c" * 40_000, "colour": "red"}
    text = "".join(f"{name}\x01{value}\x02" for name, value in {**long, "UNIQ_KEY": "U10"}.items()).encode()
    raw = bytearray(unit_bytes("Orders", 0, 10, store.end, store.time, b"whole")[:-2])
    raw += (len(text) & 0xFFFF).to_bytes(2, "big") + text
    size = len(raw)
    raw[:4] = size.to_bytes(4, "big")
    store.log += raw
    store.units.append(HandmadeUnit(store.end - size, size, "Orders", 0, 10, 0, [], store.time))
    store.next_offsets["Orders", 0] = 11
    store.put("Orders", 0, body=b"m11")
    root = store.write(tmp_path / "store", index=False)
    with open_store(root) as opened:
        repair = repair_log(opened, 1 << 40)
    assert repair is not None
    assert "Orders/0/10 (comment)" in repair.costs
    apply_patches(root, PatchList(repair.patches), RealDisk())
    units = repair_rounds.units_of(root)
    unit = units[store.units[10].offset]
    assert (unit.body, unit.crc, unit.properties) == (b"whole", "ok", {"colour": "red", "UNIQ_KEY": "U10"})
    assert units[store.units[11].offset].body == b"m11"
    assert sum(map(repair_rounds.stands_in, units.values())) == 1


def test_a_message_that_is_shorter_than_its_placeholder_takes_bytes_of_the_one_beside_it(tmp_path):
    """One such message in 60 KB of zeros, and nothing was offered: a start lost all messages behind them."""
    store = HandmadeStore()
    for number in range(40):
        topic = SCHEDULE_TOPIC if number in (12, 20) else "Orders"
        store.put(topic, 0, body=b"" if topic == SCHEDULE_TOPIC else b"some body " * 8, unique="u")
    root = store.write(tmp_path / "store")
    short = store.units[12]
    properties = passed_over(SCHEDULE_TOPIC, 0)
    assert short.size < filler.shortest_placeholder(SCHEDULE_TOPIC, properties, is_named=False)
    start, end = store.units[10].offset, store.units[14].offset
    at(root, start, bytes(end - start))
    before = repair_rounds.units_of(store.write(tmp_path / "whole"))
    plan = plan_repairs(root, None, "5.5")
    assert plan.mended.findings == ()
    apply_patches(root, PatchList(plan.patches), RealDisk())
    after = repair_rounds.units_of(root)
    assert repair_rounds.wrongs(before, after, [repair_rounds.Hit(start, end, "zeros")]) == []
    places = [(unit.topic, unit.queue_id, unit.queue_offset) for unit in after.values()]
    assert places == [(unit.topic, unit.queue_id, unit.queue_offset) for unit in store.units]


def test_a_message_overwritten_by_the_bytes_of_another_topic_stays_in_its_own_queue(tmp_path):
    """Its body and topic were those of another page. The placeholder went into a queue that never existed, and the real
    queue lacked one.
    """
    store = HandmadeStore()
    for number in range(12):
        store.put("Orders" if number % 2 else "Events", 0, body=b"%d " % number * 40)
    root = store.write(tmp_path / "store")
    victim, source = store.units[5], store.units[6]
    foreign = store.log[source.offset + 120 : source.offset + source.size]
    at(root, victim.offset + 120, foreign[: victim.size - 120])
    properties_length = victim.offset + bytes(store.log).index(b"Orders", victim.offset) - victim.offset + 6
    at(root, properties_length, b"\x7f\xff")
    repair = mended(root)
    assert repair is not None
    after = repair_rounds.units_of(root)
    assert (after[victim.offset].topic, after[victim.offset].queue_offset) == ("Orders", 2)


def test_an_overwritten_length_of_the_topic_is_put_right(tmp_path):
    """The topic was read with one letter less: the message became a placeholder in a queue that never existed."""
    store = HandmadeStore()
    for _ in range(12):
        store.put("Orders", 0, body=b"some body " * 8)
    root = store.write(tmp_path / "store")
    before = repair_rounds.units_of(root)
    topic_at = bytes(store.log).index(b"Orders", store.units[5].offset)
    at(root, topic_at - 1, b"\x05")
    assert mended(root) is not None
    assert repair_rounds.units_of(root) == before
