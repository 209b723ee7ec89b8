"""A rule speaks only where all that it concludes from was read."""

from __future__ import annotations

import pytest

from engine.rules.catalogue import may_speak
from engine.rules.parts import ALL, part_of


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("/s/commitlog/000", "log"),
        ("/s/consumequeue/Orders/0/000", "queue"),
        ("/s/consumequeue_ext/a", "queue"),
        ("/s/index/2024", "index"),
        ("/s/config/topics.json", "config"),
        ("/s/checkpoint", "checkpoint"),
        ("/s/lock", "state"),
        ("/s/timerwheel", "timer"),
        ("/s/stray", "other"),
    ],
)
def test_a_file_belongs_to_the_part_in_which_it_lies(file, part):
    assert part_of(file, "/s", ["/s/commitlog", "/logs"]) == {part}


def test_a_log_elsewhere_is_the_log_and_the_store_s_own_folder_is_everything():
    assert part_of("/logs/000", "/s", ["/logs"]) == {"log"}
    assert part_of("/logs", "/s", ["/logs"]) == {"log"}
    assert part_of("/s", "/s", ["/logs"]) == ALL
    assert part_of("/", "/s", ["/logs"]) == ALL
    assert part_of("/store2/lock", "/s", ["/logs"]) == ALL


def test_what_was_not_read_keeps_rules_quiet_and_a_rule_that_nobody_listed_first():
    assert may_speak("CL01", ALL)
    assert not may_speak("CL07", frozenset({"log"}))
    assert may_speak("CL07", frozenset({"index"}))
    assert not may_speak("ZZ99", frozenset({"other"}))
    assert may_speak("ZZ99", frozenset())
