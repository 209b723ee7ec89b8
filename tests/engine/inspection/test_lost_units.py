"""Messages in damaged bytes: units of the log are spoiled, and the remaining bytes identify them."""

from __future__ import annotations

import base64
import itertools
import json
import random
import shlex
import struct

import agree
import pytest
from where_cases import reopened

from engine.codec.message import Unit, list_fields
from engine.codec.unit_scan import Damage
from engine.inspection.lost_units import lost_units, was
from engine.inspection.where.evidence import where

pytestmark = pytest.mark.golden

SPOILS = {
    "totalSize": (0, struct.pack(">i", 217_728_000)),
    "magicCode": (4, b"\0\0\0\0"),
    "bodyLength": (84, struct.pack(">i", 9)),
}


def listed(path, count=60):
    """Return plain units from the middle of a store."""
    with reopened(path) as store:
        units = store.log.items(store.log.align(store.log.max_offset // 2), count)
        return [
            unit
            for unit in units
            if isinstance(unit, Unit) and unit.topic in store.topics() and unit.keys and not unit.transaction_type
        ], [(file.start_offset, file.end_offset, file.path) for file in store.log.files]


def patch(files, offset, data):
    start, _, path = next(item for item in files if item[0] <= offset < item[1])
    with open(path, "r+b") as file:
        file.seek(offset - start)
        file.write(data)


@pytest.mark.full_form(keep=4)
@pytest.mark.parametrize("field", SPOILS)
@pytest.mark.parametrize("name", ["clean-5.3.3", "clean-4.9.8", "broker-orders"])
def test_a_spoiled_unit_is_still_identified(spoiled, name, field):
    """Only its offset, its length and a truncated reason were shown, although all other fields were readable."""
    path = spoiled(name)
    units, files = listed(path)
    unit = random.Random(field).choice(units[1:-1])
    position, data = SPOILS[field]
    if field == "bodyLength":
        with reopened(path) as store:
            raw = store.log.read(unit.offset, unit.size)
        position = next(entry.position for entry in list_fields(raw) if entry.name == "bodyLength")
    patch(files, unit.offset + position, data)
    with reopened(path) as store:
        (damage_item,) = [row for row in store.log.walk(crc=False) if isinstance(row, Damage)]
        (lost,) = lost_units(store, damage_item.offset, damage_item.size)
        assert (lost.offset, lost.size) == (unit.offset, unit.size)
        place = f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
        assert was(lost) == ", ".join((place, *unit.keys))
        assert [entry.field for entry in lost.wrong] == [field]
        assert (lost.salvage.unit.body, lost.salvage.unit.properties) == (unit.body, unit.properties)
        for text in (unit.offset_msg_id, place):
            (result,) = where(store, text)
            # In the part that a broker's recovery walks, the log ends at the first unreadable unit.
            assert result.verdict == ("truncated" if unit.offset >= store.log.max_offset else "damaged")
            assert any(entry.what == "was" and entry.holds == was(lost) for entry in result.evidence), text
            assert f"{result.topic}/{result.queue_id}/{result.queue_offset}" == place
    code, out, _ = agree.command("message", path, str(unit.offset), "--json")
    record = json.loads(out)
    assert (code, record["type"]) == (1, "damage")
    assert record["salvage"]["keys"] == unit.keys
    assert [entry["field"] for entry in record["salvage"]["wrong"]] == [field]
    code, out, _ = agree.command("message", path, str(unit.offset))
    assert f"it was {place}" in out
    command = shlex.split(next(line for line in out.splitlines() if line.startswith("copy it out: ")))
    assert command[3:] == ["storescope", "message", str(path), str(unit.offset), "--json", "--body"]
    code, out, _ = agree.command("message", path, *command[6:])
    assert base64.b64decode(json.loads(out)["salvage"]["body"]) == unit.body
    assert "  copy it out: storescope message " in agree.command("where", path, place)[1]
    for text in (unit.unique_key, unit.offset_msg_id, place):
        code, out, _ = agree.command("message", path, text, "--json")
        assert (code, json.loads(out)) == (1, record), text
    code, out, _ = agree.command("units", path, "--json")
    (damage,) = [entry for entry in map(json.loads, out.splitlines()) if entry["type"] == "damage"]
    assert damage["salvage"]["topic"] == unit.topic


def test_zeroed_units_are_identified_by_their_queue_entries(spoiled):
    path = spoiled("clean-5.3.3")
    units, files = listed(path)
    zeroed_start, zeroed_end = units[2].offset, units[8].end
    patch(files, zeroed_start, bytes(zeroed_end - zeroed_start))
    with reopened(path) as store:
        (damage_item,) = [damage for damage in store.log.walk(crc=False) if isinstance(damage, Damage)]
        lost_by_offset = {
            lost_unit.offset: lost_unit for lost_unit in lost_units(store, damage_item.offset, damage_item.size)
        }
    for unit in units[2:9]:
        lost = lost_by_offset[unit.offset]
        assert (lost.topic, lost.queue_id, lost.queue_offset) == (unit.topic, unit.queue_id, unit.queue_offset)
        assert lost.salvage is None


def test_several_units_in_one_range_are_all_salvaged(spoiled):
    path = spoiled("clean-5.3.3")
    units, files = listed(path)
    pair = next((a, b) for a, b in itertools.pairwise(units) if a.end == b.offset)
    for unit in pair:
        patch(files, unit.offset + 4, b"\xff\xff\xff\xff")
    with reopened(path) as store:
        (item,) = [damage for damage in store.log.walk(crc=False) if isinstance(damage, Damage)]
        all_lost = lost_units(store, item.offset, item.size)
        assert [was(lost_unit).split(",")[0] for lost_unit in all_lost] == [
            f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}" for unit in pair
        ]
        assert all([lost_unit.field for lost_unit in lost.wrong] == ["magicCode"] for lost in all_lost)


def zero_page(path) -> int:
    """Write zeros over a page that begins in the body of a unit of the second log file; return its offset."""
    with reopened(path) as store:
        file = store.log.files[1]
        units = [row for row in store.log.walk(file.start_offset + 100_000) if isinstance(row, Unit)]
    for unit in units:
        page = unit.offset // 4096 * 4096 + 4096
        if unit.offset + 150 < page < unit.offset + 88 + len(unit.body):
            break
    with open(file.path, "r+b") as log:
        log.seek(page - file.start_offset)
        log.write(bytes(4096))
    return page


def test_a_partly_overwritten_unit_is_salvaged_with_its_queue_entry(spoiled):
    """A page of zeros covered the end of one message, some whole messages, and the beginning of another. The check only
    named them, although head and body of the first and the keys of the last were readable.
    """
    path = spoiled("broker-orders")
    page = zero_page(path)
    with reopened(path) as store:
        damage = next(item for item in store.log.walk(store.log.align(page)) if isinstance(item, Damage))
        head_lost, *zeroed, tail_lost = lost_units(store, damage.offset, damage.size)
    assert head_lost.salvage is not None
    assert head_lost.offset < page < head_lost.offset + head_lost.size
    assert head_lost.salvage.unit.topic == head_lost.topic
    assert head_lost.salvage.unit.physical_offset == head_lost.offset
    assert len(head_lost.salvage.unit.body) > page - head_lost.offset - 88 > 0
    assert {entry.field for entry in head_lost.wrong} >= {"topicLength", "propertiesLength", "bodyCRC"}
    assert all(entry.salvage is None for entry in zeroed), "none of their bytes remain"
    assert tail_lost.salvage is not None
    assert tail_lost.keys
    assert tail_lost.salvage.unit.body
    assert {entry.field for entry in tail_lost.wrong} >= {"totalSize", "magicCode", "physicalOffset"}
