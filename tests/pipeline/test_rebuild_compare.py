"""Differences between a store's queues and index and those built from its log: each entry counted at its place."""

import shutil
from dataclasses import replace

import pytest
from golden_stores import names
from rebuilt_stores import InProcessRunner, rebuilt

from engine.cli.pipeline_rebuild import facts_of
from engine.codec.index import Geometry
from engine.pipeline import rebuild_compare
from engine.pipeline.files import find_stores
from engine.pipeline.rebuild import rebuild
from engine.pipeline.rebuild_compare import SCHEMA, compare, compare_tasks
from engine.pipeline.splits import plan


def differences(store, built):
    facts = next(facts_of(find_stores(str(store)), None, built))
    rows = InProcessRunner()([[task] for task in compare_tasks(facts, built, 2)], compare, SCHEMA)
    assert rows
    return {
        (row["topic"], row["queueId"]): {
            name: row[name] for name in SCHEMA.replace(",", "").split()[::2][5:] if row[name] not in (0, None)
        }
        for row in rows
        if row["missing"] or row["extra"] or row["different"]
    }


@pytest.fixture
def pair(golden, tmp_path, monkeypatch):
    """Return a store that the test may change, and the queues and index built from its log."""
    monkeypatch.setattr(rebuild_compare, "CHUNK_ENTRIES", 37)
    shutil.copytree(golden("clean-5.3.3"), tmp_path / "store")
    rebuilt(tmp_path / "store", tmp_path / "new")
    return tmp_path / "store", tmp_path / "new"


@pytest.mark.parametrize("name", [name for name in names() if name.startswith(("clean", "multi", "batch", "first"))])
def test_an_orderly_store_differs_nowhere(golden, tmp_path, name):
    rebuilt(golden(name), tmp_path / "new")
    assert differences(golden(name), tmp_path / "new") == {}


def test_entries_that_are_missing_stray_or_wrong_are_told_with_their_first_places(pair):
    store, built = pair
    first_queue = store / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    raw = bytearray(first_queue.read_bytes())
    raw[20 * 40 : 20 * 43] = bytes(60)
    raw[20 * 77 : 20 * 77 + 8] = (5).to_bytes(8, "big")
    first_queue.write_bytes(raw)
    path = built / "consumequeue" / "TopicA" / "1" / f"{0:020d}"
    raw = bytearray(path.read_bytes())
    raw[20 * 12 : 20 * 13] = bytes(20)
    path.write_bytes(raw)
    assert differences(store, built) == {
        ("TopicA", 0): {"missing": 3, "different": 1, "firstMissing": 40, "firstDifferent": 77},
        ("TopicA", 1): {"extra": 1, "firstExtra": 12},
    }


def test_index_entries_are_held_against_each_other_by_where_they_lead(pair):
    store, built = pair
    path = sorted((store / "index").iterdir())[1]
    raw = bytearray(path.read_bytes())
    facts = next(facts_of(find_stores(str(store)), None, built))
    geometry = Geometry(facts.config.max_hash_slot_num, facts.config.max_index_num)
    position = geometry.entry_position(7)
    offset = int.from_bytes(raw[position + 4 : position + 12], "big")
    raw[position : position + 4] = b"\x00\x00\x00\x01"
    path.write_bytes(raw)
    difference = differences(store, built)[None, None]
    assert difference == {"missing": 1, "extra": 1, "firstMissing": offset, "firstExtra": offset}


@pytest.mark.parametrize("name", ["clean-5.5.1", "broker-tags-5.5.1"])
def test_entries_of_tags_are_no_difference_whoever_has_them(golden, tmp_path, monkeypatch, name):
    """A quarter of the index of healthy stores of 5.4 and later was called extra."""
    monkeypatch.setattr(rebuild_compare, "CHUNK_ENTRIES", 37)
    for tag_entries in (False, True):
        built = tmp_path / str(tag_entries)
        facts = replace(next(facts_of(find_stores(str(golden(name))), None, built)), tag_entries=tag_entries)
        places = find_stores(str(golden(name)))
        rebuild(InProcessRunner(), [facts], plan(places).splits, built)
        assert differences(golden(name), built) == {}
        assert differences(built_store(golden(name), built, tmp_path / f"other-{tag_entries}"), built) == {}


def built_store(store, built, target):
    """Copy the store with an index that has tag entries if the built one has none, and the other way round."""
    shutil.copytree(store, target)
    facts = next(facts_of(find_stores(str(target)), None, built))
    other_build = target.with_name(f"{target.name}-built")
    has_tags = len(list((built / "index").iterdir())) == len(list((store / "index").iterdir()))
    rebuild(
        InProcessRunner(),
        [replace(facts, tag_entries=not has_tags)],
        plan(find_stores(str(target))).splits,
        other_build,
    )
    shutil.rmtree(target / "index")
    (other_build / "index").rename(target / "index")
    return target
