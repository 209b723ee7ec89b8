"""The words of the view of two stores, and its states."""

from __future__ import annotations

from engine.inspection.difference_rows import Differences, Row
from viewer.compare.pair_model import ComparedStores, PairModel, spans_of_rows
from viewer.compare.pair_rows import NO_END, DifferenceSpan, DifferenceSpans


def test_the_place_says_which_difference_is_in_front() -> None:
    model = PairModel()
    assert model.place_words(0) == ""
    spans = DifferenceSpans([DifferenceSpan(10, 20, "own"), DifferenceSpan(30, 40, "own")])
    assert model.begin()
    assert not model.begin(), "it runs already"
    model.end(ComparedStores(Differences(), None, spans))
    assert model.place_words(None) == "2 differences in the log"
    assert model.place_words(35) == "Difference 2 of 2"
    spans.is_cut = True
    assert model.place_words(12) == "Difference 1 of 2+"


def test_counts_are_those_of_messages_only() -> None:
    differences = Differences()
    differences.add(Row("unit", "here", "Orders/0/1", 3))
    differences.add(Row("queue", "there", "Orders/0", 7))
    model = PairModel()
    model.end(ComparedStores(differences, None, DifferenceSpans()))
    assert model.counts() == {"own": 3}
    assert model.sentence(is_complete=True).startswith("10 differences.")


def test_a_stop_and_an_error_are_said() -> None:
    model = PairModel()
    model.begin()
    assert model.sentence(is_complete=True) == "Comparing two stores…"
    model.end(None)
    assert model.is_stopped
    assert model.sentence(is_complete=True) == "Comparing was stopped: not all differences are known."
    model.begin()
    model.end(None, error="no such file")
    assert (model.sentence(is_complete=True), model.is_stopped) == ("no such file", False)


def test_a_message_at_two_offsets_is_marked_at_both() -> None:
    rows = [
        Row("unit", "differs", "Orders/0/1", size=50, offset=100, offset_there=300),
        Row("queue", "here", "Orders/0"),
        Row("unit", "here", "Orders/0/9", size=50, offset=900),
    ]
    spans = list(spans_of_rows(rows, 900))
    assert [(span.start, span.end, span.sign) for span in spans] == [(100, 150, "differs"), (300, 350, "differs")]
    assert len(list(spans_of_rows(rows, NO_END))) == 3
