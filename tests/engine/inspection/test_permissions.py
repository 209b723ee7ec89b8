"""What a broker refuses to hand out, by the tables of groups and topics."""

from __future__ import annotations

import json

from broken_stores import table
from made_stores import healthy

from engine.inspection.permissions import Permissions, read_permissions
from engine.inspection.snapshot import open_store


def test_groups_and_topics_that_are_barred(tmp_path):
    root = healthy().write(tmp_path / "store")
    groups = {"billing": {"groupName": "billing", "consumeEnable": False}, "audit": {"groupName": "audit"}}
    table(root, "subscriptionGroup.json", json.dumps({"subscriptionGroupTable": groups}))
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {"perm": 2}, "Payments": {"perm": 4}}}))
    with open_store(root) as store:
        permissions = read_permissions(store)
    assert permissions == Permissions(frozenset({"billing"}), {"Orders": 2})
    assert permissions.why_barred("billing", "Payments").endswith("subscriptionGroup.json says consumeEnable=false")
    assert permissions.why_barred("audit", "Orders") == "Orders may not be read: topics.json says perm 2"
    assert permissions.why_barred("audit", "Payments") == ""


def test_without_tables_nothing_is_barred(tmp_path):
    with open_store(healthy().write(tmp_path / "store")) as store:
        assert read_permissions(store) == Permissions()
