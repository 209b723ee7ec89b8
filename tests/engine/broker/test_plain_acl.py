"""``plain_acl.yml``: the documented form, the form that brokers write, and files that are refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from brokers import BrokerClient, run_scenario

from engine.broker.access import Access
from engine.broker.plain_acl import acl_of, address_test, read_acl, rendered
from engine.broker.server import ListeningBroker
from engine.errors import CannotRead, UsageError
from engine.files.yaml_file import parse
from engine.message_store import MessageStore
from engine.remoting.connection import bind
from engine.remoting.frame import Command
from engine.remoting.signing import sign

DOCUMENTED = """\
# comments stand in it
globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB   # both
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB

  - accessKey: rocketmq2
    secretKey: '12345678'
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
"""
WRITTEN = """\
globalWhiteRemoteAddresses: []
accounts:
- accessKey: RocketMQ
  secretKey: "12345678"
  admin: false
  topicPerms: [topicA=DENY, topicB=PUB|SUB]
dataVersion:
- {counter: 1, timestamp: 2}
"""


def test_the_documented_file() -> None:
    acl = acl_of(parse(DOCUMENTED))
    account, admin_account = acl.accounts.values()
    assert (account.access_key, account.secret_key, account.admin) == ("RocketMQ", "12345678", False)
    assert (account.default_topic, account.default_group) == ("DENY", "SUB")
    assert account.topics == (("topicA", "DENY"), ("topicB", "PUB|SUB"))
    assert account.groups == (("groupA", "DENY"), ("groupB", "PUB|SUB"))
    assert not account.is_white("192.168.1.9")
    assert (admin_account.admin, admin_account.is_white("192.168.1.9"), admin_account.default_topic) == (
        True,
        True,
        None,
    )
    assert [acl.is_white(text) for text in ("10.10.103.7", "10.10.104.7")] == [True, False]
    assert acl.white_listed


def test_a_file_as_a_broker_writes_it() -> None:
    """Lists may stand on one line. The version fields are skipped in each form."""
    acl = acl_of(parse(WRITTEN.replace("- {counter: 1, timestamp: 2}", "- counter: 1\n  timestamp: 2")))
    (account,) = acl.accounts.values()
    assert account.topics == (("topicA", "DENY"), ("topicB", "PUB|SUB"))
    assert not acl.white_listed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected accounts"),
        ("accounts: none", "expected a list"),
        ("accounts:\n- one", "account 1: expected accessKey"),
        ("accounts:\n- accessKey: short\n  secretKey: 12345678", "longer than 6 characters"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey: 12345678\n  admin: perhaps", "expected true or false"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey: 12345678\n  topicPerms:\n  - topicA", "expected NAME=PUB"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey:\n    - 1", "secretKey: expected one value"),
        ("accounts:\n- {accessKey: RocketMQ}", "line 2: expected a plain value or a list"),
        ("accounts:\n- accessKey: 'RocketMQ", "line 2: a quote is not closed"),
        ("accounts:\n\t- accessKey: RocketMQ", "line 2: expected spaces for indentation"),
        ("accounts:\n  - accessKey: RocketMQ\n      secretKey: 1", "line 3: is indented more"),
        ("  accounts:\nother: 1", "line 2: is indented less"),
        ("what is this", "line 1: expected NAME: VALUE"),
        ("globalWhiteRemoteAddresses:\n- 10.0.0.x", "expected an address"),
    ],
)
def test_an_invalid_file_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("{", r"\{")):
        acl_of(parse(text))


def test_a_repeated_key_is_refused() -> None:
    row = "- accessKey: RocketMQ\n  secretKey: 12345678\n"
    with pytest.raises(UsageError, match="appears twice"):
        acl_of(parse(f"accounts:\n{row}{row}"))


@pytest.mark.parametrize(
    ("pattern", "matching", "foreign"),
    [
        ("", [], ["127.0.0.1"]),
        ("*", ["127.0.0.1", "::1"], []),
        ("*.*.*.*", ["127.0.0.1"], []),
        ("127.0.0.1", ["127.0.0.1"], ["127.0.0.2"]),
        ("10.0.0.{1,2}", ["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]),
        ("10.0.0.1,10.0.0.9", ["10.0.0.9"], ["10.0.0.3"]),
        ("192.168.0-5.*", ["192.168.3.77"], ["192.168.6.1", "192.169.1.1", "not an address"]),
        ("fe80:0-f:*", ["fe80:9::1"], ["fe80:10::1", "10.0.0.1"]),
        ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::2", "?"]),
    ],
)
def test_patterns_of_addresses(pattern: str, matching: list[str], foreign: list[str]) -> None:
    matches = address_test(pattern)
    assert all(matches(address) for address in matching)
    assert not any(matches(address) for address in foreign)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="No such file"):
        read_acl(tmp_path / "plain_acl.yml")
    (tmp_path / "plain_acl.yml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError):
        read_acl(tmp_path / "plain_acl.yml")


FILE = """\
# this line is lost
accounts:
- accessKey: adminuser
  secretKey: 87654321
  admin: true
- accessKey: someuser
  secretKey: 12345678
"""
KEYS = {"adminuser": "87654321", "someuser": "12345678"}
NEW = {"accessKey": "newuser", "secretKey": "abcdefgh"}


@asynccontextmanager
async def asking_broker(folder: Path) -> AsyncIterator[BrokerClient]:
    with MessageStore(folder, release="4.9") as store, bind("127.0.0.1", 0) as position:
        async with ListeningBroker(store, listening_socket=position) as server:
            client = BrokerClient(server)
            await client.open()
            yield client
            client.close()


class SigningClient:
    """A client that signs its requests to a broker of 4.9 with the accounts of :data:`FILE`."""

    def __init__(self, client: BrokerClient, path: Path) -> None:
        self.client, self.path = client, path

    async def ask(self, code: int, user: str = "adminuser", **fields: str) -> Command:
        command = Command(code, fields)
        sign(command, user, KEYS[user])
        return await self.client.ask(code, **command.fields)

    async def ask_ok(self, code: int, **fields: str) -> Command:
        answer = await self.ask(code, **fields)
        assert answer.code == 0, answer.remark
        return answer

    async def refused(self, code: int, user: str = "adminuser", **fields: str) -> tuple[int, str]:
        answer = await self.ask(code, user, **fields)
        return answer.code, answer.remark or ""

    async def shown(self) -> dict[str, Any]:
        return json.loads(bytes((await self.ask_ok(54)).body))


def guarded(tmp_path: Path, scenario) -> None:
    async def with_client() -> None:
        path = tmp_path / "plain_acl.yml"
        path.write_text(FILE)
        path.chmod(0o640)
        async with asking_broker(tmp_path / "store") as client:
            client.server.broker.access = Access(path, "4.9", "DefaultCluster")
            await scenario(SigningClient(client, path))

    run_scenario(with_client)


def test_an_account_is_made_changed_and_deleted(tmp_path: Path) -> None:
    async def scenario(signer: SigningClient) -> None:
        await signer.ask_ok(50, **NEW)
        assert (await signer.shown())["plainAccessConfigs"][2] == {**NEW, "admin": False}
        extra = {"whiteRemoteAddress": "10.0.0.*", "defaultTopicPerm": "DENY", "topicPerms": "t1=PUB,t2=SUB"}
        await signer.ask_ok(50, **NEW, **extra)
        await signer.ask_ok(50, **NEW, groupPerms="g1=SUB", admin="true")
        expected = {
            **NEW,
            **extra,
            "topicPerms": ["t1=PUB", "t2=SUB"],
            "groupPerms": ["g1=SUB"],
            "admin": True,
        }
        assert (await signer.shown())["plainAccessConfigs"][2] == expected
        account = read_acl(signer.path).accounts["newuser"]
        assert (account.topics, account.groups, account.admin) == (
            (("t1", "PUB"), ("t2", "SUB")),
            (("g1", "SUB"),),
            True,
        )
        assert signer.path.stat().st_mode & 0o777 == 0o640
        KEYS["newuser"] = "abcdefgh"
        assert (await signer.ask(26, "newuser")).code == 0
        await signer.ask_ok(51, accessKey="newuser")
        assert (await signer.ask(26, "newuser")).code == 1
        words = "The accesskey[newuser] corresponding to accessConfig has been deleted failed."
        assert await signer.refused(51, accessKey="newuser") == (210, words)

    guarded(tmp_path, scenario)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"secretKey": "abc"},
            "The accessKey=newuser and secretKey=abc cannot be null and length should longer than 6",
        ),
        ({"accessKey": ""}, "The accessKey= and secretKey=abcdefgh cannot be null and length should longer than 6"),
        ({"topicPerms": "t1"}, "Parse Resource format error for t1.\nThe expected resource format is 'Res=Perm'. For"),
        (
            {"groupPerms": "g=Y"},
            "Parse resource permission error for g=Y.\nThe expected permissions are 'SUB' or 'PUB'",
        ),
        ({"whiteRemoteAddress": "nonsense"}, "Netaddress examine Exception netaddress is nonsense"),
        ({"secretKey": "both'and\""}, "expected text that a line of YAML can hold"),
        ({"defaultTopicPerm": "a\nb"}, "expected text that a line of YAML can hold"),
    ],
)
def test_an_invalid_account_changes_nothing(fields: dict[str, str], words: str, tmp_path: Path) -> None:
    async def scenario(signer: SigningClient) -> None:
        text_before = signer.path.read_text()
        code, message = await signer.refused(50, **{**NEW, **fields})
        assert (code, message[: len(words)]) == (209, words)
        assert signer.path.read_text() == text_before

    guarded(tmp_path, scenario)


def test_addresses_that_need_no_signature(tmp_path: Path) -> None:
    async def scenario(signer: SigningClient) -> None:
        await signer.ask_ok(53, globalWhiteAddrs="10.0.0.1,10.0.1.*")
        assert (await signer.shown())["globalWhiteAddrs"] == ["10.0.0.1", "10.0.1.*"]
        words = "The globalWhiteAddresses[{}] has been updated failed."
        assert await signer.refused(53) == (211, words.format("null"))
        assert await signer.refused(53, globalWhiteAddrs="10.0.0.2", aclFileFullPath="/none") == (
            211,
            words.format("10.0.0.2"),
        )
        assert (await signer.refused(53, globalWhiteAddrs="nonsense"))[0] == 211
        assert (await signer.shown())["globalWhiteAddrs"] == ["10.0.0.1", "10.0.1.*"]
        await signer.ask_ok(53, globalWhiteAddrs="127.0.0.*")
        assert (await signer.client.ask(26)).code == 0

    guarded(tmp_path, scenario)


def test_the_file_s_version_grows_with_each_change(tmp_path: Path) -> None:
    async def scenario(signer: SigningClient) -> None:
        fields_at_start = (await signer.ask_ok(52)).fields
        version_at_start = json.loads(fields_at_start["version"])
        assert version_at_start["counter"] == 0
        assert version_at_start["timestamp"] > 0
        await signer.ask_ok(50, **NEW)
        await signer.ask_ok(51, accessKey="newuser")
        fields = (await signer.ask_ok(52)).fields
        version = json.loads(fields["version"])
        assert version["counter"] == 2
        assert version["timestamp"] > 0
        assert json.loads(fields["allAclFileVersion"]) == {str(signer.path): version}
        assert (fields["brokerName"], fields["clusterName"]) == ("broker-a", "DefaultCluster")

    guarded(tmp_path, scenario)


def test_only_an_administrator_may_change_accounts(tmp_path: Path) -> None:
    """In 4.9.7 any user who may sign could become an administrator and read every secret."""

    async def scenario(signer: SigningClient) -> None:
        for code in (50, 51, 53, 54):
            code_of_answer, words = await signer.refused(code, "someuser", **NEW, globalWhiteAddrs="*")
            assert code_of_answer == 1
            assert f"Need admin permission for request code={code}, but accessKey=someuser is not" in words
        assert (await signer.ask(52, "someuser")).code == 0

    guarded(tmp_path, scenario)


def test_a_file_damaged_or_deleted_meanwhile_is_left_alone(tmp_path: Path) -> None:
    async def scenario(signer: SigningClient) -> None:
        signer.path.write_text("what is this")
        assert (await signer.refused(50, **NEW))[0] == 209
        assert (await signer.refused(54))[0] == 1
        assert signer.path.read_text() == "what is this"
        signer.path.unlink()
        assert (await signer.refused(53, globalWhiteAddrs="10.0.0.1"))[0] == 211
        assert not signer.path.exists()

    guarded(tmp_path, scenario)


def test_without_accounts_all_requests_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for code, failed in ((50, 209), (51, 210), (52, 1), (53, 211), (54, 1)):
                answer = await client.ask(code, **NEW)
                assert (answer.code, answer.remark) == (
                    failed,
                    "no file of accounts: the broker was started without one",
                )

    run_scenario(scenario)


@pytest.mark.parametrize(
    "text", ["plain", "it's", 'say "x"', "", "*", "a: b", "# no", "true", "NULL", "-", "ключ", "a b"]
)
def test_written_text_is_read_back(text: str) -> None:
    tree = {"one": text, "empty": [], "list": [text, "b"], "rows": [{"a": text, "b": ["x", text]}, {"a": "2"}]}
    assert parse(rendered(tree)) == tree


def test_text_that_does_not_fit_on_a_line() -> None:
    with pytest.raises(UsageError, match="expected text that a line of YAML can hold"):
        rendered({"a": "both'and\""})
