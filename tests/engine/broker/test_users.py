"""Users and policies of 5.x: which policy entry decides (measured at a broker of 5.3.3), and what survives a
restart.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine.broker.access import Access
from engine.broker.plain_acl import PlainAcl, acl_of
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
from engine.files.yaml_file import parse
from engine.remoting.frame import Command
from engine.remoting.signing import sign

GET = ("Get",)


def acl(text: str) -> PlainAcl:
    return acl_of(parse(text))


def lines(*arguments: str) -> dict[str, tuple[Entry, ...]]:
    """Return entries of the custom policy: ``+`` allows, ``-`` denies."""
    return {CUSTOM: tuple(Entry(item[1:], GET, "Allow" if item[0] == "+" else "Deny") for item in arguments)}


@pytest.mark.parametrize(
    ("entries", "is_allowed"),
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
def test_the_deciding_entry_among_contradicting_ones(entries: tuple[str, ...], is_allowed: bool) -> None:
    """RocketMQ 5.3.3 gave these answers for each list."""
    assert (deny_reason(lines(*entries), "Topic", "abcdef", GET, "127.0.0.1") == "") == is_allowed


def test_default_entries_apply_where_no_custom_entry_matches() -> None:
    policies = {CUSTOM: (Entry("Topic:a", GET, "Deny"),), DEFAULT: (Entry("Topic:*", GET),)}
    assert deny_reason(policies, "Topic", "b", GET, "127.0.0.1") == ""
    assert deny_reason(policies, "Topic", "a", GET, "127.0.0.1") == "the decision is deny."
    assert deny_reason(policies, "Topic", "b", ("Pub",), "127.0.0.1") == "no matched policies."
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
def test_an_entry_may_be_limited_to_addresses(sources: tuple[str, ...], may: bool) -> None:
    policies = {CUSTOM: (Entry("Topic:a", ("All",), sources=sources),)}
    assert (deny_reason(policies, "Topic", "a", GET, "127.0.0.1") == "") == may
    assert (deny_reason(policies, "Topic", "a", GET, "unknown") == "") == (not sources)


@pytest.mark.parametrize(
    ("text", "stored_text"),
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
def test_resources_are_stored_in_normal_form(text: object, stored_text: str) -> None:
    assert resource_of(text) == stored_text


def test_addresses_and_networks() -> None:
    assert is_source("10.0.0.1")
    assert is_source("192.168.0.0/16")
    assert not is_source("127.0.*.*")
    assert not is_source("nonsense")
    assert not is_source(7)


def test_an_entry_replaces_one_of_the_same_resource() -> None:
    first_policies = merge_policies({}, lines("+Topic:a", "+Topic:b"))
    merged_policies = merge_policies(first_policies, lines("-Topic:a", "+Topic:c"))
    assert [(entry.resource, entry.decision) for entry in merged_policies[CUSTOM]] == [
        ("Topic:a", "Deny"),
        ("Topic:b", "Allow"),
        ("Topic:c", "Allow"),
    ]
    assert [entry.resource for entry in remove_entry(merged_policies, CUSTOM, "Topic:b")[CUSTOM]] == [
        "Topic:a",
        "Topic:c",
    ]
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


def test_accounts_of_a_file_become_users() -> None:
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


def test_requested_changes_survive_a_restart_and_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plain_acl.users.json"
    users = Users(path)
    users.take_over(acl(FILE))
    assert not path.exists()
    users.put(User("added", "secret-1"), {CUSTOM: (Entry("Topic:a", GET, sources=("10.0.0.1",)),)})
    user = users.find("someuser")
    assert user is not None
    users.put(with_changes(user, "other-secret", "", "disable"))
    users.delete("adminuser")
    users.delete("nobody")
    assert path.stat().st_mode & 0o777 == 0o600

    second_users = Users(path)
    second_users.take_over(acl(FILE))
    assert [listed_user.name for listed_user in second_users.all()] == ["added", "someuser"]
    assert second_users.find("someuser") == User("someuser", "other-secret", status="disable")
    assert second_users.policies("someuser") == users.policies("someuser") != {}
    assert second_users.policies("added") == {CUSTOM: (Entry("Topic:a", GET, sources=("10.0.0.1",)),)}
    assert second_users.find("adminuser") is None
    second_users.delete("added")
    assert set(json.loads(path.read_text())["users"]) == {"someuser", "adminuser"}


@pytest.mark.parametrize(
    "text", ["what", "[]", '{"users":[]}', '{"users":{"a":{"password":"x"}}}', '{"users":{"a":7}}']
)
def test_an_invalid_user_file_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
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
    """A client that signs its requests with a user of :data:`KEYS`."""

    def __init__(self, client: BrokerClient) -> None:
        self._client = client

    async def ask(self, code: int, body: object = None, user: str = "adminuser", **fields: str) -> Command:
        command = Command(code, fields, b"" if body is None else json.dumps(body).encode())
        sign(command, user, KEYS[user])
        return await self._client.ask(code, bytes(command.body), **command.fields)

    async def ask_ok(self, code: int, body: object = None, user: str = "adminuser", **fields: str) -> Any:
        """Return the body of a successful answer."""
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


def test_a_user_is_created_changed_and_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as signer:
            await signer.ask_ok(3001, {"password": "secret-1"}, username="u1")
            expected = {"password": "secret-1", "userStatus": "enable", "userType": "Normal", "username": "u1"}
            assert await signer.ask_ok(3004, username="u1") == expected
            assert await signer.ask_ok(3004, username="none") is None
            assert [record["username"] for record in await signer.ask_ok(3005)] == ["adminuser", "someuser", "u1"]
            assert await signer.ask_ok(3005, filter="u1") == [expected]
            assert await signer.ask_ok(3005, filter="zz") is None
            reason = "has no permission to access Topic:t from 127.0.0.1, no matched policies."
            assert await signer.refused(31, user="u1", topic="t", queueId="0") == (16, f"User:u1 {reason}")
            await signer.ask_ok(3006, acl_body(ENTRY), subject="User:u1")
            await signer.ask_ok(31, user="u1", topic="t", queueId="0")
            await signer.ask_ok(3002, {"userStatus": "disable"}, username="u1")
            assert await signer.refused(26, user="u1") == (16, "User:u1 is disabled.")
            await signer.ask_ok(3003, username="u1")
            await signer.ask_ok(3003, username="u1")
            assert await signer.refused(26, user="u1") == (16, "User:u1 is not found.")
            assert await signer.refused(3009, subject="User:u1") == (16, "The subject is not exist.")

    run_scenario(scenario)


def test_invalid_users_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as signer:
            assert await signer.refused(3001, {"password": "x"}) == (29, "The username is blank")
            assert await signer.refused(3001, {"password": " "}, username="u1") == (16, "password can not be blank")
            assert await signer.refused(3001, {"password": "x"}, username="someuser") == (16, "The user is existed")
            assert (await signer.refused(3001, username="u1"))[0] == 1
            assert await signer.refused(3002, {}, username="none") == (16, "The user is not exist")
            assert await signer.refused(3003) == (16, "username can not be blank")
            assert await signer.refused(3004) == (29, "The username is blank")

    run_scenario(scenario)


def test_only_a_super_user_changes_super_users(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as signer:
            no_permission = "User:someuser has no permission to access Cluster:DefaultCluster from 127.0.0.1, "
            for code in (*range(3001, 3011), 204):
                assert await signer.refused(code, user="someuser") == (16, f"{no_permission}no matched policies.")
            policy_body = acl_body({**ENTRY, "resource": "Cluster:*", "actions": ["All"]}, subject="User:someuser")
            await signer.ask_ok(3006, policy_body)
            await signer.ask_ok(3001, {"password": "secret-1"}, "someuser", username="u1")
            words = "The super user can only be {} by super user"
            super_user = {"password": "secret-1", "userType": "Super"}
            assert await signer.refused(3001, super_user, "someuser", username="u2") == (1, words.format("create"))
            assert await signer.refused(3002, super_user, "someuser", username="u1") == (1, words.format("update"))
            assert await signer.refused(3002, {}, "someuser", username="adminuser") == (16, words.format("update"))
            assert await signer.refused(3003, None, "someuser", username="adminuser") == (16, words.format("update"))
            await signer.ask_ok(3002, super_user, username="u1")
            await signer.ask_ok(3003, user="u1", username="adminuser")

    run_scenario(scenario)


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
def test_invalid_policies_are_refused(entries: Sequence[object], words: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as signer:
            assert await signer.refused(3006, acl_body(*entries, subject="User:someuser")) == (16, words)
            assert await signer.ask_ok(3009, subject="User:someuser") is None

    run_scenario(scenario)


def test_policies_are_merged_shown_and_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as signer:
            subject = "User:someuser"
            await signer.ask_ok(
                3006, acl_body(ENTRY, {**ENTRY, "resource": "Group:g"}, subject=subject), subject="ignored"
            )
            await signer.ask_ok(
                3007, acl_body({**ENTRY, "actions": ["Sub"], "sourceIps": ["10.0.0.1"]}, subject=subject, kind="X")
            )
            await signer.ask_ok(3007, acl_body(ENTRY, subject=subject, kind="default"))
            merged_entry = {**ENTRY, "actions": ["Sub"], "sourceIps": ["10.0.0.1"]}
            custom = {"entries": [merged_entry, {**ENTRY, "resource": "Group:g"}], "policyType": "Custom"}
            default = {"entries": [ENTRY], "policyType": "Default"}
            shown = {"policies": [custom, default], "subject": subject}
            assert await signer.ask_ok(3009, subject=subject) == shown
            assert await signer.ask_ok(3010) == await signer.ask_ok(3010, subjectFilter="some") == [shown]
            matching = await signer.ask_ok(3010, resourceFilter="Group")
            assert matching == [{"policies": [{**custom, "entries": [custom["entries"][1]]}], "subject": subject}]
            assert await signer.ask_ok(3010, subjectFilter="zz") is None
            await signer.ask_ok(3008, subject=subject, resource="Topic:t")
            await signer.ask_ok(3008, subject=subject, resource="Topic:none")
            remaining = await signer.ask_ok(3009, subject=subject)
            assert remaining["policies"] == [{**custom, "entries": custom["entries"][1:]}, default]
            await signer.ask_ok(3008, subject=subject, policyType="Default")
            assert await signer.ask_ok(3009, subject=subject) is None
            assert await signer.refused(3008, subject=subject) == (16, "The acl is not exist.")
            assert await signer.refused(3008, subject="User:none") == (16, "The subject is not exist.")
            assert await signer.refused(3008) == (16, "The subject is null.")
            assert await signer.refused(3009) == (1, "The subject is null.")
            assert await signer.refused(3006, acl_body(ENTRY)) == (16, "The subject of User:u1 is not exist.")
            assert await signer.refused(3006) == (1, "The body of acl is null")

    run_scenario(scenario)


def test_without_accounts_there_are_no_users(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for code in (3005, 3010):
                answer = await client.ask(code)
                assert (answer.code, answer.remark) == (1, "An system error occurred, please try again later.")

    run_scenario(scenario)


def test_a_failed_write_of_users_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as signer:
            (tmp_path / "plain_acl.users.json").mkdir()
            (tmp_path / "plain_acl.users.json" / "in the way").touch()
            for code in (3001, 3003):
                user = "u1" if code == 3001 else "someuser"
                assert (
                    "the users cannot be written" in (await signer.refused(code, {"password": "x"}, username=user))[1]
                )
            assert await signer.ask_ok(3004, username="u1") is None

    run_scenario(scenario)
