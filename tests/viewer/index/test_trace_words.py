"""Texts of a trace."""

from __future__ import annotations

from viewer.index.trace_lanes import TraceQuery
from viewer.index.trace_words import command_of
from viewer.runtime.command_line import command_line


def test_the_equal_command_quotes_its_words() -> None:
    text = command_line(command_of(TraceQuery("my topic", "-k'1", 5, None, 7)), "/a b")
    assert text == """storescope trace '/a b' --begin 5 --max 7 -- 'my topic' '-k'"'"'1'"""


def test_the_command_for_tags_uses_the_tag_option():
    question = TraceQuery("Orders", "a b", index_type="T")
    assert command_line(command_of(question), "/s") == "storescope trace /s --keyType T --max 32 -- Orders 'a b'"
