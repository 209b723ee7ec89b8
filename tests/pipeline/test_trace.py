"""Tracing keys: for every golden store and any splits the verdicts of ``where``, also for absent keys."""

import random

import pytest
from golden_stores import third_of_names

from engine.cli.pipeline_trace import NOT_FOUND, answer_question, questions
from engine.codec.message import Unit
from engine.codec.tally import KeySet
from engine.inspection.snapshot import open_store
from engine.inspection.where import evidence as where_module
from engine.inspection.where.evidence import KnownPlaces, where
from engine.pipeline import trace
from engine.pipeline.files import find_stores
from engine.pipeline.splits import plan

pytest.importorskip("pyarrow")


@pytest.fixture
def local_walks(monkeypatch):
    """Run the walks of a trace in this process, split by split."""

    def walk(_, splits, keys, __, damage):
        expected = KeySet(keys)
        for split in splits:
            for store, broker, *remainder in trace.matches(split, expected, damage):
                yield (store, broker), *remainder

    monkeypatch.setattr(trace, "_walk", walk)


def stores_of(folder):
    return [path.parent for path in sorted(folder.rglob("commitlog"))]


def keys_of(folder, max_count):
    with open_store(folder) as store:
        units = [item for item in store.units() if isinstance(item, Unit)]
    sample = random.Random(len(units)).sample(units, min(max_count, len(units)))
    return list(dict.fromkeys(key for unit in sample for key in [unit.unique_key, *unit.keys[:1]] if key))


def rows_by_key(stores, keys, together=500):
    """Return a dictionary: key → verdicts and places, from tasks of so many keys."""
    rows = {}
    for question in questions(stores, keys, None, None, 1, (together, together)):
        for row in answer_question(question):
            rows.setdefault(row["key"], []).append((row["verdict"], row["physicalOffset"], row["topic"]))
    return rows


@pytest.mark.full_form(keep=5)
@pytest.mark.golden
@pytest.mark.parametrize("name", third_of_names(0))
def test_keys_of_a_golden_store_get_the_verdicts_of_where(golden, local_walks, name):
    folder = stores_of(golden(name))[0]
    keys = [*keys_of(folder, 3), "never-there"]
    places = find_stores([str(folder)])
    answers = [
        rows_by_key(trace.find_keys(None, plan(places, split_bytes).splits, keys), keys, together)
        for split_bytes, together in ((100_003, 2), (1 << 26, 500))
    ]
    assert answers[0] == answers[1]
    with open_store(folder) as store:
        store.commit_log.settle_end()
        for key in keys:
            assert answers[0][key] == [(r.verdict, r.physical_offset, r.topic) for r in where(store, key)], key
    assert answers[0]["never-there"][0][0] in NOT_FOUND


@pytest.mark.full_form(keep=1)
@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-transactions", "broker-transactions-4.9.7", "broker-retries"])
def test_places_that_are_asked_for_get_the_verdicts_of_where_by_the_index_alone(golden, monkeypatch, name):
    """A message named by its place needs no walk for its units: in a large log the index has them."""
    monkeypatch.setattr(where_module, "FAMILY_SCAN_BYTES", 0)
    with open_store(stores_of(golden(name))[0]) as store:
        store.commit_log.settle_end()
        units = [unit for unit in store.units() if isinstance(unit, Unit)]
        texts = [f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}" for unit in units[:60]]
        texts += [unit.offset_msg_id for unit in units[:60]]
        places = KnownPlaces(store, {})
        for text in texts:
            assert list(places.ask(text, ())) == list(where(store, text)), text


def test_relatives_are_those_of_the_units_that_are_asked_for():
    pick = random.Random(5)
    places = trace.KeyPlaces(
        {f"k{n}": pick.sample(range(60), pick.randrange(4)) for n in range(40)},
        {},
        {f"u{n}": pick.sample(range(60), pick.randrange(1, 5)) for n in range(30)},
    )
    for _ in range(20):
        keys = pick.sample([*places.units, "k99"], 7)
        requested_offsets = {offset for key in keys for offset in places.units.get(key, ())}
        expected = {key: offsets for key, offsets in places.relatives.items() if requested_offsets & set(offsets)}
        assert places.relatives_of(keys) == expected


def test_tasks_get_more_keys_where_there_are_many():
    keys = [f"k{n}" for n in range(30_000)]
    results = {("store", None): trace.KeyPlaces({key: [n] for n, key in enumerate(keys)})}
    sizes = [len(question.keys) for question in questions(results, keys, None, None, 8)]
    assert sum(sizes) == 30_000
    assert len(sizes) == 8
    assert [len(item.keys) for item in questions(results, keys[:600], None, None, 8)] == [500, 100]
