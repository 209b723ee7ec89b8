"""How far a streaming query is behind its logs, out of what Spark tells of its progress."""

from __future__ import annotations

import json
from types import SimpleNamespace

from engine.pipeline.stream_offsets import lag


def progress(done: object, there: object) -> dict[str, object]:
    return {"sources": [{"endOffset": done, "latestOffset": there}]}


THERE = {"/a": {"first": 0, "offset": 900}, "/b": {"first": 400, "offset": 500}}


def test_bytes_that_were_there_and_not_delivered():
    assert lag(progress({"/a": {"offset": 600}, "/b": 500}, THERE)) == {"/a": 300, "/b": 0}


def test_a_log_that_was_never_read_is_behind_from_its_first_byte():
    assert lag(progress({}, THERE)) == {"/a": 900, "/b": 100}


def test_texts_and_listeners_tell_the_same():
    told = progress(json.dumps({"/a": {"offset": 600}}), json.dumps(THERE))
    assert lag(json.dumps(told)) == lag(SimpleNamespace(json=json.dumps(told))) == lag(told) == {"/a": 300, "/b": 100}


def test_where_no_offsets_are_named_nothing_is_told():
    assert lag({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}
    assert lag({}) == {}
