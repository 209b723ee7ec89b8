"""``units`` and ``damage``: the same as the list of units, column by column."""

from __future__ import annotations

import shutil

import pytest

from engine.codec.unit_fields import OF_RECORDS
from engine.codec.unit_scan import Damage
from engine.inspection.snapshot import open_store
from engine.sql.answer_text import rows
from engine.sql.store_queries import StoreQueries

NAMES = [field.name for field in OF_RECORDS if field.name not in {"body", "bodySha256"}]


@pytest.mark.golden
@pytest.mark.parametrize("store", ["broker-orders-5.5.1", "ipv6-and-unicode-5.3.3", "crash-flip-5.3.3"])
def test_every_field_is_that_of_the_list_of_units(ask, records, store):
    units = records("unit", "units", store=store)
    assert len(units) > 20
    found = ask("SELECT * FROM units", store)
    assert [{name: row[name] for name in NAMES} for row in found] == [
        {name: unit.get(name) for name in NAMES} for unit in units
    ]


@pytest.mark.golden
def test_bodies_are_there_when_asked_for(ask, records):
    (unit,) = records("unit", "units", "--limit", "1", "--body")
    (row,) = ask("SELECT body, bodySha256 FROM units LIMIT 1", with_bodies=True)
    assert (row["body"], row["bodySha256"]) == (unit["body"], unit["bodySha256"])


@pytest.mark.golden
def test_damage_is_a_relation_of_its_own(golden, tmp_path):
    path = tmp_path / "store"
    shutil.copytree(golden("broker-orders-5.5.1"), path)
    with open(path / "commitlog" / "00000000000000000000", "r+b") as file:
        file.seek(9000)
        file.write(b"\0" * 3000)
    with open_store(path) as store, StoreQueries(store) as queries:
        damage = [item for item in store.units() if isinstance(item, Damage)]
        found = list(rows(queries.ask("SELECT * FROM damage")))
        (units,) = rows(queries.ask("SELECT count(*) AS n, sum(size) AS bytes FROM units"))
    assert found == [
        {"physicalOffset": span.offset, "size": span.size, "file": "0" * 20, "reason": span.reason} for span in damage
    ]
    assert len(found) == 1
    assert units["n"] == 2822 - 5
