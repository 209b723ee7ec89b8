"""What repair does about each rule, and why it leaves what it leaves."""

from __future__ import annotations

from engine.repair.repair_plan import NAMES
from engine.rules import mendable
from engine.rules.catalogue import RULES


def test_each_is_a_rule():
    assert set(RULES) >= mendable.ALL


def test_every_rule_has_a_reason_for_what_is_left():
    assert set(mendable.LEFT) == set(RULES)


def test_the_repairs_are_those_that_are_tried():
    assert set(mendable.REPAIRS) == set(NAMES) - {"real-messages", "replica-tables"}
    assert [name for name in NAMES if name in mendable.REPAIRS] == list(mendable.REPAIRS)


def test_repairs_of_a_rule_are_in_their_order():
    assert mendable.repairs_of("CQ10") == ("queues", "start-of-dispatch")
    assert mendable.repairs_of("CF05") == ("lengths",)
    assert mendable.repairs_of("CF06") == ()
