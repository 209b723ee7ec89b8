"""Users and policies of 5.x: which entry decides, as a broker of 5.3.3 decided it, and what outlives the broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.broker.plain_acl import PlainAcl, acl_of, parse
from engine.broker.users import (
    CUSTOM,
    DEFAULT,
    SUPER,
    Entry,
    User,
    Users,
    deny_reason,
    is_source,
    merge_policies,
    remove_entry,
    resource_of,
    user_of_account,
    with_changes,
)
from engine.errors import UsageError

GET = ("Get",)


def acl(text: str) -> PlainAcl:
    return acl_of(parse(text))


def lines(*told: str) -> dict[str, tuple[Entry, ...]]:
    """Entries of the custom policy: ``+`` allows, ``-`` denies."""
    return {CUSTOM: tuple(Entry(one[1:], GET, "Allow" if one[0] == "+" else "Deny") for one in told)}


@pytest.mark.parametrize(
    ("told", "may"),
    [
        (("+Topic:abc*", "-Topic:abcdef"), False),
        (("-Topic:abcdef", "+Topic:abc*"), True),
        (("-Topic:abc*", "+Topic:abcdef"), True),
        (("+Topic:abcdef", "-Topic:abc*"), False),
        (("-*", "+Topic:abcdef"), True),
        (("+*", "-Topic:abcdef"), False),
        (("-*", "+Topic:a*"), True),
        (("-Topic:a*", "+*"), False),
        (("-Topic:*", "+*"), False),
        (("+Topic:*", "-*"), True),
        (("+*", "-Topic:*"), False),
        (("+Topic:*", "-Topic:abc*"), False),
        (("-Topic:*", "+Topic:abc*"), True),
        (("+Topic:abc*", "-Topic:*"), True),
        (("-Topic:abc*", "+Topic:*"), True),
        (("+Topic:a*", "-Topic:abc*"), True),
        (("-Topic:a*", "+Topic:abc*"), False),
        (("-Topic:abc*", "+Topic:a*"), True),
        (("+Topic:abc*", "-Topic:a*"), False),
        (("+Topic:abcdef", "-Topic:abc*", "+Topic:a*"), True),
        (("-Topic:abcdef", "+Topic:abc*", "-Topic:a*"), False),
        (("+Topic:abc*", "-Topic:abcdef", "+Topic:a*"), True),
        (("+Topic:abc*", "+Topic:a*", "-Topic:abcdef"), False),
        (("-Topic:*", "+Topic:abcdef", "-Topic:a*", "+Topic:abcd*"), False),
        (("+Topic:*", "-Topic:abcdef", "+Topic:a*", "-Topic:abcd*"), True),
        (("-*", "+Topic:*", "-Topic:abcdef", "+Topic:a*"), True),
    ],
)
def test_of_entries_that_contradict_each_other_one_decides(told: tuple[str, ...], may: bool) -> None:
    """Each list was given to RocketMQ 5.3.3, which answered so."""
    assert (deny_reason(lines(*told), "Topic", "abcdef", GET, "127.0.0.1") == "") == may


def test_default_entries_count_where_no_other_speaks() -> None:
    both = {CUSTOM: (Entry("Topic:a", GET, "Deny"),), DEFAULT: (Entry("Topic:*", GET),)}
    assert deny_reason(both, "Topic", "b", GET, "127.0.0.1") == ""
    assert deny_reason(both, "Topic", "a", GET, "127.0.0.1") == "the decision is deny."
    assert deny_reason(both, "Topic", "b", ("Pub",), "127.0.0.1") == "no matched policies."
    assert deny_reason({}, "Topic", "b", GET, "127.0.0.1") == "no matched policies."


@pytest.mark.parametrize(
    ("sources", "may"),
    [
        ((), True),
        (("10.0.0.1",), False),
        (("10.0.0.1", "127.0.0.1"), True),
        (("127.0.0.0/8",), True),
        (("::/0",), False),
    ],
)
def test_an_entry_may_be_of_some_addresses_only(sources: tuple[str, ...], may: bool) -> None:
    policies = {CUSTOM: (Entry("Topic:a", ("All",), sources=sources),)}
    assert (deny_reason(policies, "Topic", "a", GET, "127.0.0.1") == "") == may
    assert (deny_reason(policies, "Topic", "a", GET, "unknown") == "") == (not sources)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Topic:a", "Topic:a"),
        ("topic:a*", "Topic:a*"),
        ("*", "*"),
        ("Any:*", "*"),
        ("GROUP:*", "Group:*"),
        ("Topic:a*b", "Topic:a*b"),
        ("topicB", ""),
        ("Planet:x", ""),
        ("", ""),
        (None, ""),
        ("Topic:", "Topic:"),
    ],
)
def test_resources_as_they_are_kept(text: object, kept: str) -> None:
    assert resource_of(text) == kept


def test_addresses_and_networks() -> None:
    assert is_source("10.0.0.1")
    assert is_source("192.168.0.0/16")
    assert not is_source("127.0.*.*")
    assert not is_source("nonsense")
    assert not is_source(7)


def test_an_entry_of_the_same_resource_takes_its_place() -> None:
    before = merge_policies({}, lines("+Topic:a", "+Topic:b"))
    after = merge_policies(before, lines("-Topic:a", "+Topic:c"))
    assert [(one.resource, one.decision) for one in after[CUSTOM]] == [
        ("Topic:a", "Deny"),
        ("Topic:b", "Allow"),
        ("Topic:c", "Allow"),
    ]
    assert [one.resource for one in remove_entry(after, CUSTOM, "Topic:b")[CUSTOM]] == ["Topic:a", "Topic:c"]
    assert remove_entry(lines("+Topic:a"), CUSTOM, "Topic:a") == {}


FILE = """\
accounts:
- accessKey: someuser
  secretKey: 12345678
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
  groupPerms:
  - closed=DENY
- accessKey: adminuser
  secretKey: 87654321
  admin: true
"""


def test_accounts_of_a_file_as_they_are_taken_over() -> None:
    accounts = acl(FILE).accounts
    user, policies = user_of_account(accounts["someuser"])
    assert user == User("someuser", "12345678")
    assert policies == {
        CUSTOM: (
            Entry("Topic:topicA", ("All",), "Deny"),
            Entry("Topic:topicB", ("Pub", "Sub")),
            Entry("Group:closed", ("All",), "Deny"),
        ),
        DEFAULT: (Entry("Topic:*", ("All",), "Deny"), Entry("Group:*", ("Sub",))),
    }
    assert user_of_account(accounts["adminuser"]) == (User("adminuser", "87654321", SUPER), {})


def test_what_requests_changed_outlives_the_broker_and_counts_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plain_acl.users.json"
    users = Users(path)
    users.take_over(acl(FILE))
    assert not path.exists()
    users.put(User("added", "secret-1"), {CUSTOM: (Entry("Topic:a", GET, sources=("10.0.0.1",)),)})
    before = users.find("someuser")
    assert before is not None
    users.put(with_changes(before, "other-secret", "", "disable"))
    users.delete("adminuser")
    users.delete("nobody")
    assert path.stat().st_mode & 0o777 == 0o600

    again = Users(path)
    again.take_over(acl(FILE))
    assert [one.name for one in again.all()] == ["added", "someuser"]
    assert again.find("someuser") == User("someuser", "other-secret", status="disable")
    assert again.policies("someuser") == users.policies("someuser") != {}
    assert again.policies("added") == {CUSTOM: (Entry("Topic:a", GET, sources=("10.0.0.1",)),)}
    assert again.find("adminuser") is None
    again.delete("added")
    assert set(json.loads(path.read_text())["users"]) == {"someuser", "adminuser"}


@pytest.mark.parametrize(
    "text", ["what", "[]", '{"users":[]}', '{"users":{"a":{"password":"x"}}}', '{"users":{"a":7}}']
)
def test_what_a_broker_did_not_write_is_refused_with_the_file_s_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "u.json").write_text(text)
    with pytest.raises(UsageError, match=r"u\.json: expected users"):
        Users(tmp_path / "u.json")
