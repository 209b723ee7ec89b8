"""Masked records: what was equal stays equal, nothing of the original is left, other exports cannot be compared."""

from __future__ import annotations

import json

from viewer.models.masking import Masking

RECORD = {
    "type": "unit", "topic": "Orders", "bornHost": "10.1.2.3:4711", "storeHost": "10.1.2.9:10911", "keys": ["A7", "B8"],
    "uniqueKey": "0A010203", "offsetMsgId": "0A01020900002A9F00", "body": "c2VjcmV0", "bodySha256": "ff", "bodyCRC": 5,
    "properties": {"KEYS": "A7 B8", "UNIQ_KEY": "0A010203", "TAGS": "paid", "CLIENT_HOST": "10.1.2.3"},
}  # fmt: skip


def test_everything_asked_for_is_gone_and_the_rest_stays() -> None:
    made = Masking(True, True, True).record(RECORD)
    text = json.dumps(made)
    for original in ("10.1.2.3", "10.1.2.9", '"A7"', "B8", "0A010203", "0A010209", "c2VjcmV0"):
        assert original not in text, original
    assert made["topic"] == "Orders"
    assert made["properties"]["TAGS"] == "paid"
    assert made["bornHost"].endswith(":4711")
    assert RECORD["keys"] == ["A7", "B8"], "the record itself is not changed"


def test_equal_values_stay_equal_within_one_export_only() -> None:
    mask = Masking(keys=True)
    first, second = mask.record(RECORD), mask.record(RECORD)
    assert first["keys"] == second["keys"]
    assert first["properties"]["KEYS"] == " ".join(first["keys"])
    assert first["uniqueKey"] == first["properties"]["UNIQ_KEY"]
    assert Masking(keys=True).record(RECORD)["keys"] != first["keys"]
    assert first["bornHost"] == RECORD["bornHost"]


def test_hosts_hide_in_unique_keys_too() -> None:
    made = Masking(hosts=True).record(RECORD)
    assert made["uniqueKey"].startswith("key-")
    assert made["keys"] == ["A7", "B8"]


def test_nothing_asked_for_changes_nothing() -> None:
    assert Masking().record(RECORD) is RECORD
    blank = {"type": "blank", "size": 3}
    assert Masking(True, True, True).record(blank) is blank
