"""Values for completion are those that a log really holds, the most frequent first."""

from __future__ import annotations

from made_stores import MadeStore

from engine.inspection import open_store
from viewer.log.known_values import LONGEST, MOST, sample


def values(tmp_path, made: MadeStore):
    with open_store(made.write(tmp_path / "store")) as store:
        return sample(store.log)


def test_fields_properties_and_their_names_are_told(tmp_path):
    made = MadeStore()
    for number in range(9):
        made.put(topic="Paid" if number % 3 else "Orders", tags="T", keys=f"K{number}", more={"region": "eu"})
    found = values(tmp_path, made)
    assert found["topic"] == ("Paid", "Orders")
    assert found["tags"] == ("T",)
    assert set(found["keys"]) >= {f"K{number}" for number in range(9)}
    assert "region" in found["properties"]
    assert found["properties.region"] == ("eu",)


def test_what_is_too_long_to_be_offered_is_left_out_and_a_field_keeps_so_many(tmp_path):
    made = MadeStore()
    made.put(tags="t" * (LONGEST + 1))
    for number in range(MOST + 60):
        made.put(keys=f"K{number}")
    found = values(tmp_path, made)
    assert "tags" not in found
    assert len(found["keys"]) <= MOST


def test_a_log_without_a_unit_has_none(tmp_path):
    assert values(tmp_path, MadeStore()) == {}
