"""Texts of the view about its source."""

from __future__ import annotations

from engine.remoting.exchanges import CAME, FrameEvent
from engine.remoting.frame import Command
from viewer.requests.request_log import RequestLog
from viewer.requests.words import SourceStatus, card_words, edge_words, status_words


def filled(count: int = 3) -> RequestLog:
    log = RequestLog()
    log.take([FrameEvent(number, 1, CAME, b"x" * 1000, Command(10, opaque=number)) for number in range(count)])
    return log


def test_the_sentence_has_rate_filter_and_dropped_frames() -> None:
    log = filled()
    assert status_words(RequestLog(), SourceStatus()) == "No requests are shown"
    assert status_words(log, SourceStatus("file", "/a/talk.requests")).startswith("3 requests · ")
    assert status_words(log, SourceStatus("live", "h:1", rate=4.4)).startswith("4 requests a second · 3 requests")
    log.show(lambda row: row.opaque == 1)
    log.dropped, log.missed = 7, 2
    sentence = status_words(log, SourceStatus("paused", "h:1"))
    assert sentence.startswith("paused · 1 of 3 requests match")
    assert "7 older requests have gone" in sentence
    assert "2 frames came too fast" in sentence


def test_the_last_line_has_the_reason_for_the_end() -> None:
    assert "end stays in view" in edge_words(SourceStatus("live", "h:1", rate=3))
    assert edge_words(SourceStatus("ended", "h:1")) == "The broker at h:1 has stopped serving."
    assert "last line of the file is incomplete" in edge_words(SourceStatus("file", "f", left_out=None))
    assert "1,234 frames after it" in edge_words(SourceStatus("file", "f", left_out=1234))
    assert "64" in edge_words(SourceStatus("paused", "h:1"))
    assert edge_words(SourceStatus("file", "f")) == ""


def test_the_card_names_the_file_and_the_stored_rows() -> None:
    name, where, stored = card_words(filled(), SourceStatus("file", "/a/talk.requests"))
    assert name == "talk.requests"
    assert where.startswith("a file · since ")
    assert stored.endswith("of 64.0 MiB")
