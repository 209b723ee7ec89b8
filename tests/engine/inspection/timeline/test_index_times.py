"""When index files were made, by their names."""

from __future__ import annotations

from types import SimpleNamespace

from engine.files.layout import index_file_name
from engine.inspection.timeline.index_times import read_index_times

BEGIN = 1_795_000_000_000


def store_with(files):
    """A store whose index files have (name, store time of the first message)."""
    readers = [
        SimpleNamespace(
            name=name, header=SimpleNamespace(begin_timestamp=begin, begin_phy_offset=100 * number, index_count=10)
        )
        for number, (name, begin) in enumerate(files)
    ]
    return SimpleNamespace(index=SimpleNamespace(files=lambda note_undecoded: readers))


def names_at(times, shift=0):
    return [index_file_name(time + shift, "") for time in times]


def test_a_file_made_long_after_its_first_message_is_late():
    begins = [BEGIN, BEGIN + 60_000, BEGIN + 120_000]
    names = names_at([begins[0] + 3, begins[1] + 1, begins[2] + 9000])
    times = read_index_times(store_with(zip(names, begins, strict=True)))
    assert [(file.created_ms, file.first_stored, file.offset) for file in times.late] == [
        (begins[2] + 9000, begins[2], 200)
    ]


def test_the_zone_of_the_broker_is_the_one_in_which_most_names_fit():
    zone = 8 * 3_600_000 + 2_700_000
    begins = [BEGIN, BEGIN + 60_000]
    here = read_index_times(store_with(zip(names_at(begins), begins, strict=True))).zone_ms
    times = read_index_times(store_with(zip(names_at(begins, zone), begins, strict=True)))
    assert (times.zone_ms, times.late) == (here + zone, ())


def test_names_that_fit_to_no_zone_say_nothing():
    begins = [BEGIN, BEGIN + 60_000]
    times = read_index_times(store_with(zip(names_at(begins, 400_000), begins, strict=True)))
    assert (times.zone_ms, times.late) == (None, ())
    assert [(file.created_ms - file.first_stored) for file in times.unsettled] == [400_000, 400_000]


def test_names_that_are_no_times_are_passed_over():
    assert read_index_times(store_with([("20261399999999999", BEGIN), ("x", BEGIN)])).zone_ms is None
