"""How a release checks units, by the configuration and by the time at which it does."""

from __future__ import annotations

import pytest
from handmade_stores import healthy

from engine.config import from_mapping
from engine.inspection.recovery import source_of
from engine.inspection.snapshot import open_store
from engine.store.recovery.store_rules import dispatch_rules, unit_rules, walk_rules


@pytest.fixture
def source(tmp_path):
    healthy(3).write(tmp_path)
    with open_store(tmp_path, from_mapping({"forceVerifyPropCRC": True, "duplicationEnable": True})[0]) as store:
        yield source_of(store)


@pytest.mark.parametrize(("release", "knows_levels"), [("4.9", False), ("5.5", True)])
def test_4_9_knows_no_delay_levels_while_it_recovers(source, release, knows_levels):
    rules = unit_rules(source, release)
    assert rules.delay_levels
    assert bool(walk_rules(rules, source).delay_levels) == knows_levels


def test_dispatch_checks_no_crc(source):
    rules = unit_rules(source, "5.5")
    assert (rules.crc, rules.property_crc) == (True, True)
    assert (dispatch_rules(rules).crc, dispatch_rules(rules).property_crc) == (False, False)
