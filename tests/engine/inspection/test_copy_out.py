"""The command that copies one message out, in shell syntax."""

from __future__ import annotations

import shlex

from engine.inspection.copy_out import copy_one


def test_what_can_be_read_goes_into_a_new_store_and_the_rest_to_the_screen():
    assert shlex.split(copy_one("/a b", 42, readable=True)) == [
        "storescope",
        "copy",
        "/a b",
        "NEW",
        "--where",
        "physicalOffset == 42",
    ]
    assert shlex.split(copy_one("/a b", 42, readable=False)) == [
        "storescope",
        "message",
        "/a b",
        "42",
        "--json",
        "--body",
    ]
