"""The rules that repair may mend."""

from __future__ import annotations

from engine.rules import mendable
from engine.rules.catalogue import RULES


def test_each_is_a_rule():
    assert set(RULES) >= mendable.ALL
