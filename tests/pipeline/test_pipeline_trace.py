"""``pipeline trace`` as a command: the verdicts of ``where`` over a fleet."""

import shutil

import pytest
from engine_units import store_of, units_of

from engine.inspection.snapshot import open_store
from engine.inspection.where.evidence import where

pytestmark = [pytest.mark.spark, pytest.mark.golden]


def test_trace_gives_the_verdicts_of_where_over_a_fleet(pipeline, golden, tmp_path):
    for broker, name in (("a", "broker-retries"), ("b", "broker-transactions")):
        source = store_of(golden(name))
        shutil.copytree(source, tmp_path / broker / "store")
    request_fields = {}
    for broker in ("a", "b"):
        units = units_of(tmp_path / broker / "store")
        for unit in units[:: len(units) // 12]:
            for key in [unit.unique_key, *unit.keys[:1]]:
                if key:
                    request_fields.setdefault(key, None)
    keys = tmp_path / "keys.txt"
    keys.write_text("".join(f"{key}\n" for key in request_fields) + "never-there\n")
    rows, _ = pipeline("trace", tmp_path / "*" / "store", "--keys-file", keys)
    results = {}
    for row in rows:
        if row["type"] == "whereResult":
            results.setdefault((row["broker"], row["key"]), []).append((row["verdict"], row["physicalOffset"]))
    assert {verdict for verdict, _ in results.pop(next(key for key in results if key[1] == "never-there"))} == {
        "neverSeen"
    }
    for broker in ("a", "b"):
        with open_store(tmp_path / broker / "store") as store:
            store.commit_log.settle_end()
            for key in request_fields:
                known_values = [(r.verdict, r.physical_offset) for r in where(store, key) if r.topic is not None]
                assert results.get((broker, key), []) == known_values, (broker, key)
    assert rows[-1]["keysMissing"] == 1
    assert len({verdict for listed in results.values() for verdict, _ in listed}) >= 3


def test_a_key_that_is_nowhere_ends_with_1(pipeline, golden):
    rows, _ = pipeline("trace", store_of(golden("lmq-5.3.3")), "--key", "nowhere", code=1)
    assert [row["verdict"] for row in rows if row["type"] == "whereResult"] == ["neverSeen"]
