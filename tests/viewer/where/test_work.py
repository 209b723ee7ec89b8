"""A search answers the question of the view, and each piece of evidence has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.inspection.samples import sample
from engine.inspection.where.evidence import Evidence, WhereResult
from engine.rules.where import BEGINS_WITH
from engine.sentences import sentence
from viewer.runtime.places import Place, log, queue, trace
from viewer.where import work as where_work
from viewer.where.work import WhereQuery, log_offsets, place_of, place_of_result, place_words, where_of

RESULT = WhereResult("found", 700, "Orders", 2, 17)
CASES = (
    (Evidence("unit", "00000000000000000000", 700, "Orders/2/17: stored in its topic"), log(700), "700"),
    (
        Evidence("queue entry", "/s/consumequeue/Orders/2", 340, "entry 17 points at it"),
        queue("Orders", 2, 17),
        "Orders/2/17",
    ),
    (Evidence("queue", None, None, "Gone/1 has no folder"), queue("Gone", 1), "Gone/1"),
    (Evidence("index", "/s/index/2026", None, "Orders#K1 leads to it"), trace("Orders", "K1"), "Orders#K1"),
    (Evidence("group", None, None, "billing reads 18 next"), Place("groups", name="billing"), "billing"),
    (Evidence("abort", "/s/abort", None, "the store was not closed"), Place("abort"), "abort"),
    (Evidence("lock", None, None, "a broker is running"), Place("abort"), "lock"),
    (Evidence("id", None, None, "as an offset message id"), None, ""),
    (Evidence("op message", "00000000000000000000", 900, "names half message 3 as settled"), log(900), "900"),
    (Evidence("beginning", None, None, sentence(BEGINS_WITH, name="7F00AB")), Place("where", key="7F00AB"), "7F00AB"),
    (Evidence("beginning", None, None, "207 keys begin with it"), None, ""),
)


class CancellableControl:
    """A control that is never cancelled, or from the ``stop``-th question on."""

    def __init__(self, stop: int = 1 << 30) -> None:
        self.check_count, self.stop = 0, stop

    @property
    def cancelled(self) -> bool:
        self.check_count += 1
        return self.check_count > self.stop

    def emit(self, items: object) -> None: ...
    def report(self, done: float, total: float | None = None, note: str = "") -> None: ...


@pytest.mark.parametrize(("evidence", "place", "words"), CASES)
def test_evidence_leads_to_where_it_is_seen(evidence: Evidence, place: Place | None, words: str) -> None:
    shown_place = place_of(evidence, RESULT)
    assert shown_place == place
    assert place_words(evidence, shown_place) == words


def test_a_result_leads_to_its_unit_or_its_entry() -> None:
    assert place_of_result(RESULT) == log(700)
    assert place_of_result(WhereResult("expired", None, "Orders", 2, 3)) == queue("Orders", 2, 3)
    assert place_of_result(WhereResult("neverSeen", None, None, None, None)) is None
    assert log_offsets([RESULT, WhereResult("neverSeen", None, None, None, None)]) == [700]


def test_every_message_of_a_key_is_answered() -> None:
    answer = where_of(CancellableControl(), sample("orders-damaged"), None, WhereQuery("SO-000749"))
    assert [result.verdict for result in answer.results] == ["truncated", "truncated", "damaged"]
    assert not answer.is_truncated


def test_a_search_that_is_stopped_tells_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    store: Path = sample("orders")
    stopped = where_of(CancellableControl(stop=3), store, None, WhereQuery("SO-000300"))
    assert stopped.is_truncated
    monkeypatch.setattr(where_work, "MAX_MESSAGES", 1)
    cut = where_of(CancellableControl(), store, None, WhereQuery("SO-000300"))
    assert cut.is_truncated
    assert len(cut.results) == 1
