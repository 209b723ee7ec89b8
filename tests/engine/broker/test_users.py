"""Users and policies of 5.x: which entry decides, as a broker of 5.3.3 decided it, and what outlives the broker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from brokers import Asking, asking_broker, run

from engine.broker.access import Access
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
from engine.remoting.frame import Command
from engine.remoting.signing import sign

GET = ("Get",)


def acl(text: str) -> PlainAcl:
    return acl_of(parse(text))


def lines(*arguments: str) -> dict[str, tuple[Entry, ...]]:
    """Entries of the custom policy: ``+`` allows, ``-`` denies."""
    return {CUSTOM: tuple(Entry(item[1:], GET, "Allow" if item[0] == "+" else "Deny") for item in arguments)}


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
    assert [(item.resource, item.decision) for item in after[CUSTOM]] == [
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

    second_users = Users(path)
    second_users.take_over(acl(FILE))
    assert [item.name for item in second_users.all()] == ["added", "someuser"]
    assert second_users.find("someuser") == User("someuser", "other-secret", status="disable")
    assert second_users.policies("someuser") == users.policies("someuser") != {}
    assert second_users.policies("added") == {CUSTOM: (Entry("Topic:a", GET, sources=("10.0.0.1",)),)}
    assert second_users.find("adminuser") is None
    second_users.delete("added")
    assert set(json.loads(path.read_text())["users"]) == {"someuser", "adminuser"}


@pytest.mark.parametrize(
    "text", ["what", "[]", '{"users":[]}', '{"users":{"a":{"password":"x"}}}', '{"users":{"a":7}}']
)
def test_what_a_broker_did_not_write_is_refused_with_the_file_s_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "u.json").write_text(text)
    with pytest.raises(UsageError, match=r"u\.json: expected users"):
        Users(tmp_path / "u.json")


ACCOUNTS = """\
accounts:
- accessKey: adminuser
  secretKey: 87654321
  admin: true
- accessKey: someuser
  secretKey: 12345678
"""
KEYS = {"adminuser": "87654321", "someuser": "12345678", "u1": "secret-1"}
ENTRY = {"resource": "Topic:t", "actions": ["Get"], "decision": "Allow"}


class SigningClient:
    """Asks as one of :data:`KEYS`."""

    def __init__(self, client: Asking) -> None:
        self._client = client

    async def ask(self, code: int, body: object = None, user: str = "adminuser", **fields: str) -> Command:
        command = Command(code, fields, b"" if body is None else json.dumps(body).encode())
        sign(command, user, KEYS[user])
        return await self._client.ask(code, bytes(command.body), **command.fields)

    async def told(self, code: int, body: object = None, user: str = "adminuser", **fields: str) -> Any:
        """The body of an answer without an error."""
        answer = await self.ask(code, body, user, **fields)
        assert answer.code == 0, answer.remark
        return json.loads(bytes(answer.body)) if answer.body else None

    async def refused(self, code: int, body: object = None, user: str = "adminuser", **fields: str) -> tuple[int, str]:
        answer = await self.ask(code, body, user, **fields)
        return answer.code, answer.remark or ""


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[SigningClient]:
    (folder / "plain_acl.yml").write_text(ACCOUNTS)
    async with asking_broker(folder / "store") as client:
        client.server.broker.access = Access(folder / "plain_acl.yml", "5.3", "DefaultCluster")
        yield SigningClient(client)


def acl_body(*entries: object, subject: str = "User:u1", kind: str = "Custom") -> dict[str, Any]:
    return {"subject": subject, "policies": [{"policyType": kind, "entries": list(entries)}]}


def test_a_user_from_his_first_request_to_his_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as it:
            await it.told(3001, {"password": "secret-1"}, username="u1")
            expected = {"password": "secret-1", "userStatus": "enable", "userType": "Normal", "username": "u1"}
            assert await it.told(3004, username="u1") == expected
            assert await it.told(3004, username="none") is None
            assert [record["username"] for record in await it.told(3005)] == ["adminuser", "someuser", "u1"]
            assert await it.told(3005, filter="u1") == [expected]
            assert await it.told(3005, filter="zz") is None
            where = "has no permission to access Topic:t from 127.0.0.1, no matched policies."
            assert await it.refused(31, user="u1", topic="t", queueId="0") == (16, f"User:u1 {where}")
            await it.told(3006, acl_body(ENTRY), subject="User:u1")
            await it.told(31, user="u1", topic="t", queueId="0")
            await it.told(3002, {"userStatus": "disable"}, username="u1")
            assert await it.refused(26, user="u1") == (16, "User:u1 is disabled.")
            await it.told(3003, username="u1")
            await it.told(3003, username="u1")
            assert await it.refused(26, user="u1") == (16, "User:u1 is not found.")
            assert await it.refused(3009, subject="User:u1") == (16, "The subject is not exist.")

    run(scenario)


def test_what_is_no_user_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as it:
            assert await it.refused(3001, {"password": "x"}) == (29, "The username is blank")
            assert await it.refused(3001, {"password": " "}, username="u1") == (16, "password can not be blank")
            assert await it.refused(3001, {"password": "x"}, username="someuser") == (16, "The user is existed")
            assert (await it.refused(3001, username="u1"))[0] == 1
            assert await it.refused(3002, {}, username="none") == (16, "The user is not exist")
            assert await it.refused(3003) == (16, "username can not be blank")
            assert await it.refused(3004) == (29, "The username is blank")

    run(scenario)


def test_only_a_super_user_touches_super_users(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as it:
            nobody = "User:someuser has no permission to access Cluster:DefaultCluster from 127.0.0.1, "
            for code in (*range(3001, 3011), 204):
                assert await it.refused(code, user="someuser") == (16, f"{nobody}no matched policies.")
            rights = acl_body({**ENTRY, "resource": "Cluster:*", "actions": ["All"]}, subject="User:someuser")
            await it.told(3006, rights)
            await it.told(3001, {"password": "secret-1"}, "someuser", username="u1")
            words = "The super user can only be {} by super user"
            sample = {"password": "secret-1", "userType": "Super"}
            assert await it.refused(3001, sample, "someuser", username="u2") == (1, words.format("create"))
            assert await it.refused(3002, sample, "someuser", username="u1") == (1, words.format("update"))
            assert await it.refused(3002, {}, "someuser", username="adminuser") == (16, words.format("update"))
            assert await it.refused(3003, None, "someuser", username="adminuser") == (16, words.format("update"))
            await it.told(3002, sample, username="u1")
            await it.told(3003, user="u1", username="adminuser")

    run(scenario)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "The policies is empty."),
        ([{**ENTRY, "resource": "t"}], "The resource is null."),
        ([{**ENTRY, "actions": ["Fly"]}], "The actions is empty."),
        ([{**ENTRY, "actions": ["any"]}], "The actions can not be Any."),
        ([{**ENTRY, "sourceIps": ["127.0.*.*"]}], "The source ip is invalid."),
        ([{**ENTRY, "decision": "Maybe"}], "The decision is null or illegal."),
    ],
)
def test_what_is_no_policy_is_refused(entries: Sequence[object], words: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as it:
            assert await it.refused(3006, acl_body(*entries, subject="User:someuser")) == (16, words)
            assert await it.told(3009, subject="User:someuser") is None

    run(scenario)


def test_policies_are_merged_shown_and_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as it:
            text = "User:someuser"
            await it.told(3006, acl_body(ENTRY, {**ENTRY, "resource": "Group:g"}, subject=text), subject="ignored")
            await it.told(
                3007, acl_body({**ENTRY, "actions": ["Sub"], "sourceIps": ["10.0.0.1"]}, subject=text, kind="X")
            )
            await it.told(3007, acl_body(ENTRY, subject=text, kind="default"))
            first = {**ENTRY, "actions": ["Sub"], "sourceIps": ["10.0.0.1"]}
            custom = {"entries": [first, {**ENTRY, "resource": "Group:g"}], "policyType": "Custom"}
            default = {"entries": [ENTRY], "policyType": "Default"}
            shown = {"policies": [custom, default], "subject": text}
            assert await it.told(3009, subject=text) == shown
            assert await it.told(3010) == await it.told(3010, subjectFilter="some") == [shown]
            results = await it.told(3010, resourceFilter="Group")
            assert results == [{"policies": [{**custom, "entries": [custom["entries"][1]]}], "subject": text}]
            assert await it.told(3010, subjectFilter="zz") is None
            await it.told(3008, subject=text, resource="Topic:t")
            await it.told(3008, subject=text, resource="Topic:none")
            remaining = await it.told(3009, subject=text)
            assert remaining["policies"] == [{**custom, "entries": custom["entries"][1:]}, default]
            await it.told(3008, subject=text, policyType="Default")
            assert await it.told(3009, subject=text) is None
            assert await it.refused(3008, subject=text) == (16, "The acl is not exist.")
            assert await it.refused(3008, subject="User:none") == (16, "The subject is not exist.")
            assert await it.refused(3008) == (16, "The subject is null.")
            assert await it.refused(3009) == (1, "The subject is null.")
            assert await it.refused(3006, acl_body(ENTRY)) == (16, "The subject of User:u1 is not exist.")
            assert await it.refused(3006) == (1, "The body of acl is null")

    run(scenario)


def test_without_accounts_there_are_no_users(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for code in (3005, 3010):
                answer = await client.ask(code)
                assert (answer.code, answer.remark) == (1, "An system error occurred, please try again later.")

    run(scenario)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as it:
            (tmp_path / "plain_acl.users.json").mkdir()
            (tmp_path / "plain_acl.users.json" / "in the way").touch()
            for code in (3001, 3003):
                user = "u1" if code == 3001 else "someuser"
                assert "the users cannot be written" in (await it.refused(code, {"password": "x"}, username=user))[1]
            assert await it.told(3004, username="u1") is None

    run(scenario)
