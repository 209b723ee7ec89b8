"""Stores that were exported and imported: every golden store's units again, byte for byte, for the engine to use."""

import random

import pytest
from golden_stores import names
from imported_stores import imported

from engine.cli.main import main
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore

pytest.importorskip("pyarrow")


def stores_of(folder):
    return [path.parent for path in sorted(folder.rglob("commitlog"))]


def units_of(folder):
    with open_store(folder) as store:
        return [item for item in store.units() if isinstance(item, Unit) and not item.stale and item.crc != "bad"]


@pytest.mark.golden
@pytest.mark.parametrize("name", names())
def test_a_golden_store_comes_back_byte_for_byte(golden, tmp_path, name):
    folder = stores_of(golden(name))[0]
    kept = units_of(folder)
    with open_store(folder) as store:
        whole = not any(isinstance(item, Damage) for item in store.units())
    done = imported(folder, tmp_path / "fresh", random.Random(name).choice([30_011, 400_009, 1 << 26]))
    assert (done.units, done.size) == (len(kept), sum(unit.size for unit in kept))
    again = units_of(tmp_path / "fresh")
    if done.left or not whole:  # behind what was left behind all moves up
        assert [(u.topic, u.body, u.properties_raw, u.queue_offset) for u in again] == [
            (u.topic, u.body, u.properties_raw, u.queue_offset) for u in kept
        ]
    else:
        assert again == kept


@pytest.mark.golden
def test_the_engine_opens_what_was_imported_and_finds_nothing_wrong(golden, tmp_path, capsys):
    folder = stores_of(golden("clean-5.3.3"))[0]
    imported(folder, tmp_path / "fresh", 300_007)
    assert main(["check", str(tmp_path / "fresh"), "--json"]) == 0
    assert capsys.readouterr().err == ""
    units = units_of(folder)
    with open_store(tmp_path / "fresh") as store:
        config = derived_config(store)
    with MessageStore(tmp_path / "fresh", config) as store:
        unit = next(u for u in units if u.topic == "TopicA" and u.unique_key)
        assert store.look_message_by_offset(unit.offset).body == unit.body
        found = store.query_message("TopicA", unit.unique_key, 32, 0, 1 << 62).units()
        assert [one.offset for one in found] == [unit.offset]
