"""Rules are registered under their ids, in the group that the first two letters say."""

from __future__ import annotations

import pytest

from engine.rules.parts import INDEX
from engine.rules.register import Register


def test_a_rule_stands_under_its_id_in_its_group():
    rules = Register()
    made = rules.add("IX99", "warn", "Title", "Why.", "What next.", "#1", needs=INDEX)
    assert rules["IX99"] is made
    assert (made.id, made.group, made.severity) == ("IX99", "index", "warn")


def test_letters_that_are_no_group_are_refused():
    with pytest.raises(KeyError):
        Register().add("ZZ01", "warn", "Title", "Why.", "What next.", needs=INDEX)
