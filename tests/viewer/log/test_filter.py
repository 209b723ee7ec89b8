"""The messages of a running filter: while it searches, where it stopped, and at its end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import UsageError
from viewer.log.filter import MATCHES_PER_ROUND, LogFilter
from viewer.log.log_model import LogModel
from viewer.log.rows import LogSource

GIB = 1 << 30


class Session:
    """A store whose jobs start and never end."""

    def __init__(self) -> None:
        self.begun = 0
        self.unread = SimpleNamespace(edge="complete")
        self.jobs = SimpleNamespace(start=self._start)

    def _start(self, work: Any) -> Any:
        self.begun += 1
        work.close()
        return SimpleNamespace(cancel=lambda: None)


@pytest.fixture
def filtering(qapp: object) -> LogFilter:
    model = LogModel()
    model.log = LogSource(cast("Any", SimpleNamespace(min_offset=0, end_offset=GIB, known_end=GIB)))
    log_filter = LogFilter(model)
    log_filter.session = cast("Any", Session())
    reports: list[Any] = []
    log_filter.stateChanged.connect(lambda state, sentence: reports.append((state, sentence)))
    cast("Any", log_filter).kept, cast("Any", log_filter).model = reports, model
    return log_filter


def last_filter(filtering: LogFilter) -> Any:
    return cast("Any", filtering).kept[-1]


def begin(filtering: LogFilter) -> Any:
    model = cast("Any", filtering).model
    filtering.begin("crcBad", model.log)
    return model.filter


def test_a_running_filter_can_be_stopped_and_continued(filtering: LogFilter) -> None:
    state = begin(filtering)
    shown, sentence = last_filter(filtering)
    assert (shown.kind, shown.steps[0][0]) == ("loading", "Stop")
    assert sentence.startswith("0 units match")
    state.source.offsets.append(5)
    shown.steps[0][1]()
    shown, _sentence = last_filter(filtering)
    assert (shown.kind, state.running) == ("cut", False)
    assert shown.text.startswith("Stopped at 1 match.")
    shown.steps[0][1]()
    assert state.running
    assert cast("Any", filtering).session.begun == 2


def test_a_filter_on_bodies_is_refused_for_a_capsule(filtering: LogFilter) -> None:
    """The stand-ins of bodies would match nothing, which looks as if no message had the text."""

    def refuse() -> None:
        raise UsageError("a capsule has no bodies")

    session = cast("Any", filtering).session
    session.snapshot = SimpleNamespace(require_bodies=refuse)
    session.jobs = SimpleNamespace(start=asyncio.run)
    filtering.begin("body matches /x/", cast("Any", filtering).model.log)
    shown, _sentence = last_filter(filtering)
    assert (shown.kind, shown.text) == ("error", "a capsule has no bodies")


def test_after_many_matches_the_filter_waits_for_the_user(filtering: LogFilter) -> None:
    state = begin(filtering)
    state.source.offsets.extend(range(MATCHES_PER_ROUND))
    filtering.stop()
    assert last_filter(filtering)[0].text.startswith(f"First {MATCHES_PER_ROUND:,} matches.")


def test_a_filter_without_matches_can_be_cleared(filtering: LogFilter, qtbot: Any) -> None:
    state = begin(filtering)
    state.complete, state.looked, state.running = True, state.end, False
    filtering._tell()
    shown, _sentence = last_filter(filtering)
    assert (shown.kind, shown.steps[0][0]) == ("empty", "Clear the filter")
    with qtbot.waitSignal(filtering.cleared):
        shown.steps[0][1]()


def test_at_the_end_there_is_no_message_over_the_rows(filtering: LogFilter) -> None:
    state = begin(filtering)
    state.source.offsets.append(5)
    state.complete, state.looked, state.running = True, state.end, False
    filtering._tell()
    shown, sentence = last_filter(filtering)
    assert shown is None
    assert sentence.endswith("complete")
    filtering.go_on()
    assert not state.running, "what is complete does not go on"


def test_without_a_store_nothing_begins(filtering: LogFilter) -> None:
    filtering.session = None
    assert begin(filtering).source is None


def test_a_filter_that_waits_for_compiling_shows_a_message(filtering: LogFilter) -> None:
    state = begin(filtering)
    state.note = "preparing, once on this machine"
    filtering._tell()
    assert "preparing, once on this machine" in last_filter(filtering)[0].text
