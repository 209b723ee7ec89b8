"""``index``: index files, and their entries where that is asked for."""

from __future__ import annotations


def test_files_only_unless_entries_are_asked_for(asked):
    (file,) = asked("index")
    assert (file["type"], file["indexCount"]) == ("indexFile", 25)


def test_every_key_has_an_entry_that_leads_to_its_unit(asked):
    _file, *entries = asked("index", "--entries")
    expected = [unit.offset for unit in asked.made.units for _key in unit.keys]
    assert [record["phyOffset"] for record in entries] == expected
    assert [row["entry"] for row in entries] == list(range(1, len(expected) + 1))


def test_a_file_that_is_not_there_is_named(asked):
    assert "19990101000000000" in asked.words("index", "--file", "19990101000000000", status=3)
