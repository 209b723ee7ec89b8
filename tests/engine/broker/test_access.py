"""Permission checks: which requests pass, and the messages with which both releases refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import BrokerClient, asking_broker, run_scenario

from engine.broker.access import Access
from engine.remoting.codes import Refused
from engine.remoting.frame import Command
from engine.remoting.signing import sign

FILE = """\
globalWhiteRemoteAddresses:
- 10.0.0.1
accounts:
- accessKey: someuser
  secretKey: 12345678
  whiteRemoteAddress: 10.0.0.2
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
  - topicC=PUB
  groupPerms:
  - closed=DENY
- accessKey: adminuser
  secretKey: 87654321
  admin: true
"""
PEER_ADDRESS = "127.0.0.1:4711"
KEYS = {"someuser": "12345678", "adminuser": "87654321"}


def access(folder: Path, release: str, text: str = FILE) -> Access:
    path = folder / "plain_acl.yml"
    path.write_text(text)
    return Access(path, release, "MyCluster")  # type: ignore[arg-type]


def signed(code: int, user: str | None = "someuser", body: bytes = b"", **fields: str) -> Command:
    command = Command(code, fields, body)
    if user is not None:
        sign(command, user, KEYS.get(user, "?"))
    return command


def refusal(permissions: Access, command: Command, peer: str = PEER_ADDRESS) -> str:
    """Return the refusal's code and message, or an empty text if the request passes."""
    try:
        permissions.check(command, peer)
    except Refused as error:
        return f"{error.code} {error}"
    return ""


PLACES = {"No accessKey": "validate 663", "No acl": "validate 667", "Check": "validate 683", "Need": "checkPerm 580"}


def in_4_9(words: str, line: int = 610) -> str:
    place = next((place for begin, place in PLACES.items() if words.startswith(begin)), f"checkPerm {line}")
    method, number = place.split()
    return (
        f"1 org.apache.rocketmq.acl.common.AclException: {words}, "
        f"org.apache.rocketmq.acl.plain.PlainPermissionManager.{method}(PlainPermissionManager.java:{number})"
    )


BEAT = {"consumerDataSet": [{"groupName": "g", "subscriptionDataSet": [{"topic": "topicB"}, {"topic": "%RETRY%g"}]}]}
CLOSED = {"consumerDataSet": [{"groupName": "closed", "subscriptionDataSet": []}]}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (signed(11, None, topic="topicB"), "No accessKey is configured"),
        (signed(11, "nobody", topic="topicB"), "No acl config for nobody"),
        (signed(11, topic="topicB", consumerGroup="g"), ""),
        (signed(11, topic="topicA", consumerGroup="g"), "No default permission for topic:topicA"),
        (signed(11, topic="topicC", consumerGroup="g"), "No default permission for topic:topicC"),
        (signed(11, topic="topicB", consumerGroup="closed"), "No default permission for group:closed"),
        (signed(10, topic="topicC"), ""),
        (signed(310, b="topicD"), "No default permission for topic:topicD"),
        (signed(310, b="RMQ_SYS_TRACE_TOPIC"), ""),
        (signed(320, b="topicD"), ""),
        (signed(310, a="closed", b="%RETRY%closed"), "No default permission for group:closed"),
        (signed(34, body=json.dumps(BEAT).encode()), ""),
        (signed(34, body=json.dumps(CLOSED).encode()), "No default permission for group:closed"),
        (signed(35, clientID="me"), ""),
        (signed(17, topic="topicB"), "Need admin permission for request code=17, but accessKey=someuser is not"),
        (signed(26), ""),
        (signed(17, "adminuser", topic="topicA"), ""),
    ],
)
def test_refusals_of_4_9(command: Command, words: str, tmp_path: Path) -> None:
    assert refusal(access(tmp_path, "4.9"), command) == (
        in_4_9(words, 605 if words.endswith("topicD") else 610) if words else ""
    )


def test_a_wrong_signature(tmp_path: Path) -> None:
    command = signed(11, topic="topicB", consumerGroup="g")
    command.fields["Signature"] = "0jiwhsaYp5ObE5GObbZH1I8/FT4="
    assert refusal(access(tmp_path, "4.9"), command) == in_4_9("Check signature failed for accessKey=someuser")
    assert refusal(access(tmp_path, "5.3"), command) == "16 check signature failed."


def test_addresses_that_need_nothing(tmp_path: Path) -> None:
    """A listed address needs no credentials before 5.x. An account's own address needs its key, but no signature."""
    bare, keyed = Command(17, {"topic": "topicA"}), Command(17, {"topic": "topicA", "AccessKey": "someuser"})
    access_4_9, access_5_3 = access(tmp_path, "4.9"), access(tmp_path, "5.3")
    assert refusal(access_4_9, bare, "10.0.0.1:99") == ""
    assert refusal(access_4_9, bare, "10.0.0.2:99") == in_4_9("No accessKey is configured")
    assert refusal(access_4_9, keyed, "10.0.0.2:99") == ""
    assert refusal(access_5_3, bare, "10.0.0.1:99") == "16 username cannot be null."
    assert refusal(access_5_3, keyed, "10.0.0.2:99") == "16 check signature failed."


LOCK = {"consumerGroup": "g", "clientId": "me", "mqSet": [{"topic": "topicA", "brokerName": "b", "queueId": 0}]}


@pytest.mark.parametrize(
    ("command", "resource", "words"),
    [
        (signed(11, topic="topicB", consumerGroup="g"), "", ""),
        (signed(11, topic="%RETRY%g", consumerGroup="g"), "", ""),
        (signed(11, topic="topicA", consumerGroup="g"), "Topic:topicA", "the decision is deny."),
        (signed(11, topic="topicC", consumerGroup="g"), "Topic:topicC", "no matched policies."),
        (signed(361, topic="topicB", consumerGroup="closed"), "Group:closed", "the decision is deny."),
        (signed(320, b="topicD"), "Topic:topicD", "no matched policies."),
        (signed(10, topic="topicC"), "", ""),
        (signed(310, a="g", b="%RETRY%g"), "", ""),
        (signed(34, body=json.dumps(BEAT).encode()), "", ""),
        (signed(34, body=json.dumps(CLOSED).encode()), "Group:closed", "the decision is deny."),
        (signed(41, body=json.dumps(LOCK).encode()), "Topic:topicA", "the decision is deny."),
        (signed(12, topic="topicB", key="k"), "", ""),
        (signed(14, topic="%RETRY%g", consumerGroup="g", queueId="0"), "", ""),
        (signed(30, topic="topicB", queueId="0"), "Topic:topicB", "no matched policies."),
        (signed(17, topic="topicB"), "Topic:topicB", "no matched policies."),
        (signed(37, topic="topicB"), "", ""),
        (signed(36, group="closed"), "Group:closed", "the decision is deny."),
        (signed(38, consumerGroup="g"), "", ""),
        (signed(204, producerGroup="p"), "Cluster:MyCluster", "no matched policies."),
        (signed(200050, topic="topicB", consumerGroup="g"), "", ""),
        (signed(200051, topic="%RETRY%closed", consumerGroup="g"), "Group:closed", "the decision is deny."),
        (signed(200151), "", ""),
        (signed(4711), "", ""),
        (signed(17, "adminuser", topic="topicA"), "", ""),
    ],
)
def test_refusals_of_5(command: Command, resource: str, words: str, tmp_path: Path) -> None:
    expected = f"16 User:someuser has no permission to access {resource} from 127.0.0.1, {words}" if words else ""
    assert refusal(access(tmp_path, "5.3"), command) == expected


def test_an_unknown_user_is_refused_in_5(tmp_path: Path) -> None:
    client = access(tmp_path, "5.3")
    assert refusal(client, Command(26)) == "16 username cannot be null."
    assert refusal(client, signed(26, "nobody")) == "16 User:nobody is not found."


def test_a_file_that_changes_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file with an error is logged, and the accounts of the last valid file stay in force."""
    client = access(tmp_path, "5.3")
    command = signed(11, topic="topicA", consumerGroup="g")
    client.step()
    assert refusal(client, command) != ""
    (tmp_path / "plain_acl.yml").write_text(FILE.replace("topicA=DENY", "topicA=SUB|PUB"))
    client.step()
    assert refusal(client, command) == ""
    (tmp_path / "plain_acl.yml").write_text("what is this")
    client.step()
    assert refusal(client, command) == ""
    assert "the accounts read before stay in force" in caplog.text


def test_a_broker_asks_before_it_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path / "store") as client:
            client.server.broker.access = access(tmp_path, "5.3")
            assert (await client.ask(26)).remark == "username cannot be null."
            assert (await ask_signed(client, 26)).code == 0
            assert (await ask_signed(client, 4711)).code == 3

    async def ask_signed(client: BrokerClient, code: int) -> Command:
        fields = signed(code).fields
        return await client.ask(code, **fields)

    run_scenario(scenario)
