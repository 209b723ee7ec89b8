"""Tables as rows: every value by its path, and what two tables do not share."""

from __future__ import annotations

from engine.inspection.tree_values import MAX_DEPTH, Change, changes, value_text, values


def test_every_leaf_has_its_path() -> None:
    tree = {"topics": {"A": {"queues": [4, 8]}, 7: None}, "empty": {}}
    assert [(value.path, value.value) for value in values(tree)] == [
        ("topics.A.queues[0]", 4),
        ("topics.A.queues[1]", 8),
        ("topics.7", None),
        ("empty", {}),
    ]


def test_a_tree_without_a_bottom_ends() -> None:
    tree: dict[str, object] = {}
    tree["inner"] = tree
    (only,) = values(tree)
    assert only.path.count("inner") == MAX_DEPTH


def test_differences_follow_the_first_table_then_values_of_the_second_alone() -> None:
    left, right = {"a": 1, "b": {"c": "x"}, "d": True}, {"b": {"c": "y"}, "a": 1, "e": [None]}
    assert changes(left, right) == [Change("b.c", "x", "y"), Change("d", "true", None), Change("e[0]", None, "null")]
    assert [change.kind for change in changes(left, right)] == ["differs", "here", "there"]
    assert changes(left, left) == []
    assert len(changes({str(n): n for n in range(9)}, {}, max_values=3)) == 4, "the first three, and the empty other"


def test_values_on_one_line() -> None:
    assert [value_text(value) for value in ("a b", 7, None, False, ["é"])] == ["a b", "7", "null", "false", '["é"]']
