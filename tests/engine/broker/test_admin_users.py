"""3001 to 3010: users and policies while the broker runs, in the words of 5.3.3."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from brokers import Asking, asking, run

from engine.broker.access import Access
from engine.remoting.frame import Command
from engine.remoting.signing import sign

FILE = """\
accounts:
- accessKey: adminuser
  secretKey: 87654321
  admin: true
- accessKey: someuser
  secretKey: 12345678
"""
KEYS = {"adminuser": "87654321", "someuser": "12345678", "u1": "secret-1"}
ENTRY = {"resource": "Topic:t", "actions": ["Get"], "decision": "Allow"}


class Signing:
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
async def guarded(folder: Path) -> AsyncIterator[Signing]:
    (folder / "plain_acl.yml").write_text(FILE)
    async with asking(folder / "store") as client:
        client.server.broker.access = Access(folder / "plain_acl.yml", "5.3", "DefaultCluster")
        yield Signing(client)


def acl(*entries: object, subject: str = "User:u1", kind: str = "Custom") -> dict[str, Any]:
    return {"subject": subject, "policies": [{"policyType": kind, "entries": list(entries)}]}


def test_a_user_from_his_first_request_to_his_last(tmp_path: Path) -> None:
    async def what() -> None:
        async with guarded(tmp_path) as it:
            await it.told(3001, {"password": "secret-1"}, username="u1")
            expected = {"password": "secret-1", "userStatus": "enable", "userType": "Normal", "username": "u1"}
            assert await it.told(3004, username="u1") == expected
            assert await it.told(3004, username="none") is None
            assert [one["username"] for one in await it.told(3005)] == ["adminuser", "someuser", "u1"]
            assert await it.told(3005, filter="u1") == [expected]
            assert await it.told(3005, filter="zz") is None
            where = "has no permission to access Topic:t from 127.0.0.1, no matched policies."
            assert await it.refused(31, user="u1", topic="t", queueId="0") == (16, f"User:u1 {where}")
            await it.told(3006, acl(ENTRY), subject="User:u1")
            await it.told(31, user="u1", topic="t", queueId="0")
            await it.told(3002, {"userStatus": "disable"}, username="u1")
            assert await it.refused(26, user="u1") == (16, "User:u1 is disabled.")
            await it.told(3003, username="u1")
            await it.told(3003, username="u1")
            assert await it.refused(26, user="u1") == (16, "User:u1 is not found.")
            assert await it.refused(3009, subject="User:u1") == (16, "The subject is not exist.")

    run(what)


def test_what_is_no_user_is_refused(tmp_path: Path) -> None:
    async def what() -> None:
        async with guarded(tmp_path) as it:
            assert await it.refused(3001, {"password": "x"}) == (29, "The username is blank")
            assert await it.refused(3001, {"password": " "}, username="u1") == (16, "password can not be blank")
            assert await it.refused(3001, {"password": "x"}, username="someuser") == (16, "The user is existed")
            assert (await it.refused(3001, username="u1"))[0] == 1
            assert await it.refused(3002, {}, username="none") == (16, "The user is not exist")
            assert await it.refused(3003) == (16, "username can not be blank")
            assert await it.refused(3004) == (29, "The username is blank")

    run(what)


def test_only_a_super_user_touches_super_users(tmp_path: Path) -> None:
    async def what() -> None:
        async with guarded(tmp_path) as it:
            nobody = "User:someuser has no permission to access Cluster:DefaultCluster from 127.0.0.1, "
            for code in (*range(3001, 3011), 204):
                assert await it.refused(code, user="someuser") == (16, f"{nobody}no matched policies.")
            rights = acl({**ENTRY, "resource": "Cluster:*", "actions": ["All"]}, subject="User:someuser")
            await it.told(3006, rights)
            await it.told(3001, {"password": "secret-1"}, "someuser", username="u1")
            words = "The super user can only be {} by super user"
            made = {"password": "secret-1", "userType": "Super"}
            assert await it.refused(3001, made, "someuser", username="u2") == (1, words.format("create"))
            assert await it.refused(3002, made, "someuser", username="u1") == (1, words.format("update"))
            assert await it.refused(3002, {}, "someuser", username="adminuser") == (16, words.format("update"))
            assert await it.refused(3003, None, "someuser", username="adminuser") == (16, words.format("update"))
            await it.told(3002, made, username="u1")
            await it.told(3003, user="u1", username="adminuser")

    run(what)


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
    async def what() -> None:
        async with guarded(tmp_path) as it:
            assert await it.refused(3006, acl(*entries, subject="User:someuser")) == (16, words)
            assert await it.told(3009, subject="User:someuser") is None

    run(what)


def test_policies_are_merged_shown_and_deleted(tmp_path: Path) -> None:
    async def what() -> None:
        async with guarded(tmp_path) as it:
            who = "User:someuser"
            await it.told(3006, acl(ENTRY, {**ENTRY, "resource": "Group:g"}, subject=who), subject="ignored")
            await it.told(3007, acl({**ENTRY, "actions": ["Sub"], "sourceIps": ["10.0.0.1"]}, subject=who, kind="X"))
            await it.told(3007, acl(ENTRY, subject=who, kind="default"))
            first = {**ENTRY, "actions": ["Sub"], "sourceIps": ["10.0.0.1"]}
            custom = {"entries": [first, {**ENTRY, "resource": "Group:g"}], "policyType": "Custom"}
            default = {"entries": [ENTRY], "policyType": "Default"}
            shown = {"policies": [custom, default], "subject": who}
            assert await it.told(3009, subject=who) == shown
            assert await it.told(3010) == await it.told(3010, subjectFilter="some") == [shown]
            found = await it.told(3010, resourceFilter="Group")
            assert found == [{"policies": [{**custom, "entries": [custom["entries"][1]]}], "subject": who}]
            assert await it.told(3010, subjectFilter="zz") is None
            await it.told(3008, subject=who, resource="Topic:t")
            await it.told(3008, subject=who, resource="Topic:none")
            left = await it.told(3009, subject=who)
            assert left["policies"] == [{**custom, "entries": custom["entries"][1:]}, default]
            await it.told(3008, subject=who, policyType="Default")
            assert await it.told(3009, subject=who) is None
            assert await it.refused(3008, subject=who) == (16, "The acl is not exist.")
            assert await it.refused(3008, subject="User:none") == (16, "The subject is not exist.")
            assert await it.refused(3008) == (16, "The subject is null.")
            assert await it.refused(3009) == (1, "The subject is null.")
            assert await it.refused(3006, acl(ENTRY)) == (16, "The subject of User:u1 is not exist.")
            assert await it.refused(3006) == (1, "The body of acl is null")

    run(what)


def test_without_accounts_there_are_no_users(tmp_path: Path) -> None:
    async def what() -> None:
        async with asking(tmp_path) as client:
            for code in (3005, 3010):
                answer = await client.ask(code)
                assert (answer.code, answer.remark) == (1, "An system error occurred, please try again later.")

    run(what)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    async def what() -> None:
        async with guarded(tmp_path) as it:
            (tmp_path / "plain_acl.users.json").mkdir()
            (tmp_path / "plain_acl.users.json" / "in the way").touch()
            for code in (3001, 3003):
                user = "u1" if code == 3001 else "someuser"
                assert "the users cannot be written" in (await it.refused(code, {"password": "x"}, username=user))[1]
            assert await it.told(3004, username="u1") is None

    run(what)
