"""Conditions as a tree."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from query_trees import conditions

from engine.query import parse, text_of

NOW = 1_795_167_667_250


@given(conditions(NOW))
def test_a_tree_that_is_printed_and_read_again_is_the_same(tree):
    text = text_of(tree)
    assert parse(text, now_ms=NOW, zone=UTC).tree == tree, text
