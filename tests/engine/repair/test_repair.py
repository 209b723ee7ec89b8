"""A repair as JSON."""

from __future__ import annotations

from engine.patching.patches import WriteFile
from engine.repair.repair import Repair


def test_a_repair_says_what_it_mends_gains_and_costs():
    patch = WriteFile(file="checkpoint", old=None, new=b"x", why="because")
    repair = Repair(
        "checkpoint", frozenset({"CK05", "CK02"}), "Correct it", (patch,), "a start", "nothing else", "likely"
    )
    assert repair.record() == {
        "type": "repair",
        "name": "checkpoint",
        "rules": ["CK02", "CK05"],
        "title": "Correct it",
        "patches": 1,
        "gains": "a start",
        "costs": "nothing else",
        "certainty": "likely",
    }
