"""``index``: index files, and their entries on request."""

from __future__ import annotations


def test_entries_are_listed_only_on_request(storescope):
    (file,) = storescope("index")
    assert (file["type"], file["indexCount"]) == ("indexFile", 25)


def test_every_key_has_an_entry_that_leads_to_its_unit(storescope):
    _file, *entries = storescope("index", "--entries")
    expected = [unit.offset for unit in storescope.store.units for _key in unit.keys]
    assert [record["phyOffset"] for record in entries] == expected
    assert [row["entry"] for row in entries] == list(range(1, len(expected) + 1))


def test_a_missing_file_is_named(storescope):
    assert "19990101000000000" in storescope.text("index", "--file", "19990101000000000", status=3)
