"""Differences of two stores: what is said of all, and which rows each choice shows."""

from __future__ import annotations

from collections import Counter

from viewer.compare.differences import FILTERS, KIND, OtherWindowLink, verdict_words
from viewer.compare.work import Differences, Row
from viewer.runtime import places


def differing(**counts):
    differences = Differences()
    differences.compared_bytes = 4096
    differences.counts = Counter({("unit", side): count for side, count in counts.items()})
    return differences


def test_equal_is_said_only_where_all_could_be_read():
    assert verdict_words(differing()).startswith("Both stores are equal. 4.00 KiB of log compared")
    assert verdict_words(differing(), is_complete=False).startswith("No difference in what can be read.")
    assert verdict_words(differing(here=3)).startswith("3 differences.")


def test_each_choice_takes_its_rows():
    rows = [Row("unit", "here", "u"), Row("unit", "differs", "u"), Row("queue", "there", "q")]
    rows_by_choice = {key: [row.kind + row.side for row in rows if test(row)] for key, _, test in FILTERS}
    assert rows_by_choice["all"] == ["unithere", "unitdiffers", "queuethere"]
    assert (rows_by_choice["units.here"], rows_by_choice["units.there"], rows_by_choice["queues"]) == (
        ["unithere"],
        [],
        ["queuethere"],
    )


def test_a_row_leads_into_either_window():
    row = Row("unit", "differs", "T/0/5", place_here=places.log(640), place_there=places.log(700))
    jumps = {column.key: column.jump for column in KIND.columns}
    assert jumps["here"](row) == places.log(640)
    assert jumps["there"](row) == OtherWindowLink(places.log(700))
    assert KIND.record(row)["physicalOffset"] == 640
