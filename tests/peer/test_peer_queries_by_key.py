"""A key leads to a message exactly if the real store's query finds it, whatever was done to the index."""

from __future__ import annotations

import random
import struct

import peer
import pytest

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.key_trace import indexed_keys
from engine.inspection.where.facts import key_reaches

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]


def bend(store_path, pick):
    """Link some entries of every index file to themselves, out of the file, or to nothing."""
    with open_store(store_path) as store:
        files = [(index_file.path, index_file.geometry, index_file.header) for index_file in store.index_files()]
    for path, geometry, header in files:
        with open(path, "r+b") as file:
            for number in pick.sample(range(1, header.entries + 1), header.entries // 10):
                file.seek(geometry.entry_position(number) + 16)
                file.write(struct.pack(">i", pick.choice((number, header.index_count + 7, 0))))


def reached(store, answer):
    """Return the offsets of units with the answer's key to which our index leads."""
    results = set()
    for unit in store.log.walk():
        if isinstance(unit, Unit) and unit.topic == answer["topic"]:
            results |= {
                unit.offset
                for key_reach in key_reaches(store, unit, [])
                if key_reach.key == answer["key"] and key_reach.reached
            }
    return results


@pytest.mark.parametrize("release", peer.RELEASES)
def test_a_key_leads_where_the_real_query_leads(tmp_path, release):
    """Also over chains with loops or links out of the file: a query by such a key finds nothing after the break."""
    java, path = peer.Peer(release, tmp_path), tmp_path / "store"
    plan = dict(peer.plans(5, release))["clean"]
    java.write(plan, path)
    bend(path, random.Random(release))
    account = java.dump(plan, path, in_place=True)
    answers = [record for record in account if record["t"] == "query" and record["max"] == 32]
    answers = [row for row in answers if len(row["phys"]) < row["max"]]
    assert len(answers) > 20
    broken = 0
    with open_store(path) as store:
        for answer in answers:
            ours = reached(store, answer)
            # A collision of hashes answers with units of other keys; the client drops those.
            assert ours == {offset for offset in answer["phys"] if offset in ours or _has(store, offset, answer)}
            broken += not ours
    assert broken


def _has(store, offset, answer):
    unit = store.log.unit_at(offset)
    return isinstance(unit, Unit) and unit.topic == answer["topic"] and answer["key"] in indexed_keys(unit)
