"""Masked records and sentences: equal values stay equal, no original value remains, and two exports cannot be
linked.
"""

from __future__ import annotations

import json
import pickle

import pytest

from engine.errors import UsageError
from engine.rules.masking import PARTS, Masking

RECORD = {
    "type": "unit",
    "topic": "Orders",
    "bornHost": "10.1.2.3:4711",
    "storeHost": "10.1.2.9:10911",
    "keys": ["A7", "B8"],
    "uniqueKey": "0A010203",
    "offsetMsgId": "0A01020900002A9F00",
    "body": "c2VjcmV0",
    "bodySha256": "ff",
    "bodyCRC": 5,
    "properties": {"KEYS": "A7 B8", "UNIQ_KEY": "0A010203", "TAGS": "paid", "CLIENT_HOST": "10.1.2.3"},
}


def test_the_chosen_values_are_masked_and_others_stay() -> None:
    record = Masking(True, True, True).record(RECORD)
    text = json.dumps(record)
    for original in ("10.1.2.3", "10.1.2.9", '"A7"', "B8", "0A010203", "0A010209", "c2VjcmV0"):
        assert original not in text, original
    assert list(record) == list(RECORD)
    assert record["topic"] == "Orders"
    assert record["properties"]["TAGS"] == "paid"
    assert record["bornHost"].endswith(":4711")
    assert RECORD["keys"] == ["A7", "B8"], "the record itself is not changed"


def test_equal_values_stay_equal_within_one_export_only() -> None:
    mask = Masking(keys=True)
    record, same_record = mask.record(RECORD), pickle.loads(pickle.dumps(mask)).record(RECORD)
    assert record == same_record, "another process of the same export masks alike"
    assert record["properties"]["KEYS"] == " ".join(record["keys"])
    assert record["uniqueKey"] == record["properties"]["UNIQ_KEY"]
    assert Masking(keys=True).record(RECORD)["keys"] != record["keys"]
    assert record["bornHost"] == RECORD["bornHost"]


def test_hosts_hide_in_unique_keys_too() -> None:
    record = Masking(hosts=True).record(RECORD)
    assert record["uniqueKey"].startswith("key-")
    assert record["keys"] == ["A7", "B8"]
    assert record["bodyCRC"] == 5


def test_an_empty_mask_changes_nothing() -> None:
    assert Masking().record(RECORD) is RECORD
    blank = {"type": "blank", "size": 3}
    assert Masking(True, True, True).record(blank) == blank
    assert Masking().words("10.0.0.7, Orders#K1, /a/b/c/d") == "10.0.0.7, Orders#K1, /a/b/c/d"
    assert Masking().path("/a/b/c/d") == "/a/b/c/d"


def test_hashes_of_keys_cannot_be_compared_with_guesses() -> None:
    entry = {"type": "indexEntry", "entry": 7, "slot": 3, "keyHash": 12345, "phyOffset": 9}
    assert Masking(keys=True).record(entry) == entry | {"slot": None, "keyHash": None}
    assert Masking(bodies=True, hosts=True).record(entry) == entry


def test_sentences_lose_only_hosts_ids_keys_and_folders() -> None:
    mask = Masking(True, True, True)
    unique = "7F000001647430946E09697FC6310E6E"
    words = mask.words(f"10.0.0.7:10911 sent {unique} to Orders#SO-1, see /data/prod/store/x; [fe80::1]:10911 and ::1")
    for secret in ("10.0.0.7", unique, "SO-1", "/data/prod", "fe80", "::1"):
        assert secret not in words
    assert mask.key(unique) in words, "the same id in a record has the same pseudonym"
    assert mask.host("10.0.0.7:10911") in words.split()  # type: ignore[comparison-overlap]
    assert Masking(keys=True).words("10.0.0.7 Orders#12345").startswith("10.0.0.7 Orders#key-")
    plain = "stored 2026-11-21 20:26:29.123 at 1,310,900, version 5.3.3, see #1456 (6 of 7): units 5 to 9"
    assert mask.words(plain) == plain


def test_all_evidence_of_findings_is_masked() -> None:
    finding = {
        "type": "finding",
        "id": "X",
        "file": "/data/prod/a/store/index/2026",
        "message": "10.0.0.7 wrote Orders#K1",
        "evidence": {"uniqueKey": "uvw", "entry": 7, "units": [{"bornHost": "10.0.0.7:1", "text": "tea"}]},
    }
    record = Masking(True, True, True).record(finding)
    text = json.dumps(record)
    for secret in ("10.0.0.7", "K1", "uvw", "tea", "prod"):
        assert secret not in text
    assert record["file"] == "…/store/index/2026"
    assert record["evidence"]["entry"] == 7
    assert Masking(bodies=True).record(finding)["file"] == finding["file"]


def test_the_mask_is_given_by_words() -> None:
    assert Masking.of("bodies, hosts").parts == ("bodies", "hosts")
    assert Masking.of("").any is False
    with pytest.raises(UsageError, match="found 'host'"):
        Masking.of("keys,host")


PROPERTIES = {
    "KEYS": "A7 B8",
    "PGROUP": "billing",
    "REAL_TOPIC": "%RETRY%billing",
    "TAGS": "paid",
    "DELAY": "3",
    "INNER_MULTI_DISPATCH": "%LMQ%u1,u2,%RETRY%billing",
    "colour": "blue",
    "note": "A7 of billing, at 10.1.2.3:10911",
}


def test_every_word_hides_exactly_its_values() -> None:
    """The test goes through all mask words, so it detects a new word that hides nothing, or whose secret another
    word leaves.
    """
    secrets = {
        "bodies": ["c2VjcmV0"],
        "keys": ["A7", "B8"],
        "hosts": ["10.1.2.3"],
        "groups": ["billing"],
        "lmq": ["u1", "u2"],
        "properties": ["blue"],
    }
    assert tuple(secrets) == PARTS
    record = RECORD | {"topic": "%DLQ%billing", "properties": PROPERTIES}
    for word, hidden in secrets.items():
        text = json.dumps(Masking.of(word).record(record))
        assert [secret for secret in hidden if secret in text] == []
        other_secrets = {
            name: [value for value in values if value in text] for name, values in secrets.items() if name != word
        }
        assert other_secrets == {name: values for name, values in secrets.items() if name != word}, word
    text = json.dumps(Masking.of(",".join(PARTS)).record(record))
    assert [secret for hidden in secrets.values() for secret in hidden if secret in text] == []
    assert "paid" in text


def test_scripts_that_call_keeping_still_work_with_a_warning():
    """The method is now called except_for. Its older name raised AttributeError."""
    with pytest.warns(DeprecationWarning, match="except_for"):
        mask = Masking.of("properties").keeping(["note"])
    assert mask.kept == {"note"}


def test_users_properties_may_stay_by_name() -> None:
    mask = Masking.of("properties,keys").except_for(["note"])
    property_values = mask.property_values(PROPERTIES)
    assert property_values["colour"] == mask.pseudonym("value", "blue")
    assert property_values["note"] == f"{mask.key('A7')} of billing, at 10.1.2.3:10911"
    assert property_values["DELAY"] == "3"
    with pytest.raises(UsageError, match="expected 'properties' among what is masked"):
        Masking.of("keys").except_for(["note"])


def test_groups_and_light_queues_are_masked_consistently() -> None:
    mask = Masking.of("groups,lmq")
    property_values = mask.property_values(PROPERTIES)
    group, light = mask.group("billing"), mask.pseudonym("lmq", "u1")
    assert property_values["PGROUP"] == group
    assert property_values["REAL_TOPIC"] == mask.topic("%RETRY%billing") == f"%RETRY%{group}"
    assert property_values["INNER_MULTI_DISPATCH"].split(",")[0] == mask.topic("%LMQ%u1") == f"%LMQ%{light}"
    assert mask.topic("%RETRY%billing+Orders") == f"%RETRY%{group}+Orders"
    assert mask.topic("Orders") == "Orders"
    assert mask.words("of %RETRY%billing, %LMQ%u1: none") == f"of %RETRY%{group}, %LMQ%{light}: none"
    finding = {
        "type": "finding",
        "message": "billing is ahead",
        "nextStep": "reset billing",
        "evidence": {"group": "billing"},
    }
    assert "billing" not in json.dumps(mask.record(finding))


def test_the_incident_of_a_check_names_no_path() -> None:
    """A masked check ended with commands for the first steps that contained the whole path of the store."""
    incident = {
        "whatHappened": "The file /srv/rocketmq/store/commitlog/00000000000000000000 was cut.",
        "lostAlready": {"messages": 3, "queues": [{"topic": "%RETRY%payers", "queueId": 0, "messages": 3}]},
        "firstSteps": [{"text": "Take a snapshot.", "command": "storescope snapshot /srv/rocketmq/store COPY"}],
    }
    masking = Masking(hosts=True, groups=True)
    record = masking.record({"type": "summary", "error": 1, "incident": incident})
    assert "/srv/rocketmq" not in str(record)
    assert "payers" not in str(record)
    assert record["incident"]["lostAlready"]["messages"] == 3
    assert Masking().record({"incident": incident}) == {"incident": incident}
