"""The same signed requests to RocketMQ's own broker, which has the accounts of a ``plain_acl.yml``, and to ours: both
refuse the same, in the same words. A broker of 5.x takes the file over when it starts (``migrateAuthFromV1Enabled``).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import real_cluster

from engine.broker.access import Access
from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.message_store import MessageStore
from engine.remoting.connection import bind, connect
from engine.remoting.frame import Command
from engine.remoting.signing import sign

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
FILE = """\
accounts:
- accessKey: someuser
  secretKey: 12345678
  defaultTopicPerm: DENY
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
KEYS = {"someuser": "12345678", "adminuser": "87654321"}
_AUTH = "org.apache.rocketmq.auth"
SETTINGS = {
    "4.9": {"aclEnable": "true"},
    "5.3": {
        "authenticationEnabled": "true", "authorizationEnabled": "true", "migrateAuthFromV1Enabled": "true",
        "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
        "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
        "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
        "innerClientAuthenticationCredentials": json.dumps({"accessKey": "adminuser", "secretKey": "87654321"}),
    },
}  # fmt: skip
RELEASES = {"4.9": "4.9.7", "5.3": "5.3.3"}
PULL = {"queueId": "0", "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "4", "commitOffset": "0", "subscription": "*",
        "suspendTimeoutMillis": "0", "subVersion": "0"}  # fmt: skip
SEND = {"c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000", "h": "0", "i": "", "j": "0", "k": "false",
        "m": "false"}  # fmt: skip
TOPIC = {"defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
         "topicFilterType": "SINGLE_TAG"}  # fmt: skip
HANDLE = {"queueId": "0", "offset": "0", "extraInfo": "0 1 2 0 0 broker-a 0 0"}


def beat(group: str, *topics: str) -> bytes:
    rows = [{"topic": one, "subString": "*", "subVersion": 1} for one in topics]
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "unitMode": False, "subscriptionDataSet": rows,
    }  # fmt: skip
    return json.dumps({"clientID": "me", "consumerDataSet": [consumer], "producerDataSet": []}).encode()


def requests(like: str) -> list[tuple[str | None, Command]]:
    """Who asks what."""
    found: list[tuple[str | None, Command]] = [
        (None, Command(26)),
        ("nobody", Command(26)),
        ("wrong", Command(26)),
        *(("adminuser", Command(17, {**TOPIC, "topic": name})) for name in ("topicA", "topicB", "topicC")),
        ("someuser", Command(17, {**TOPIC, "topic": "topicB"})),
        ("someuser", Command(26)),
        *(("someuser", Command(310, {**SEND, "a": "p", "b": f"topic{one}"}, b"x")) for one in "ABC"),
        *(("someuser", Command(11, {**PULL, "topic": f"topic{one}", "consumerGroup": "g"})) for one in "ABC"),
        ("someuser", Command(11, {**PULL, "topic": "topicB", "consumerGroup": "closed"})),
        ("someuser", Command(34, body=beat("g", "topicB", "%RETRY%g"))),
        ("someuser", Command(34, body=beat("g", "topicA"))),
        ("someuser", Command(34, body=beat("closed"))),
        ("someuser", Command(35, {"clientID": "me", "consumerGroup": "closed"})),
        ("someuser", Command(36, {"offset": "0", "group": "closed", "delayLevel": "0"})),
        ("someuser", Command(14, {"topic": "topicA", "consumerGroup": "g", "queueId": "0"})),
        ("someuser", Command(15, {"topic": "topicA", "consumerGroup": "g", "queueId": "0", "commitOffset": "0"})),
        ("someuser", Command(30, {"topic": "topicB", "queueId": "0"})),
        ("someuser", Command(12, {"topic": "topicA", "key": "k", "maxNum": "1", "beginTimestamp": "0",
                                  "endTimestamp": "1"})),
        ("someuser", Command(215, {"topic": "topicB"})),
    ]  # fmt: skip
    if like == "5.3":
        found += [
            ("someuser", Command(200051, {**HANDLE, "topic": "topicA", "consumerGroup": "g"})),
            ("someuser", Command(200051, {**HANDLE, "topic": "%RETRY%closed", "consumerGroup": "g"})),
            ("someuser", Command(200052, {"topic": "topicC", "consumerGroup": "g", "queueId": "0", "maxMsgNums": "1"})),
            ("someuser", Command(204, {"producerGroup": "p"})),
            ("someuser", Command(208, {"consumerGroup": "g"})),
            ("someuser", Command(351, {"topic": "topicB"})),
            ("someuser", Command(352, {"group": "g"})),
        ]
    return found


async def told(address: str, like: str) -> list[tuple[object, ...]]:
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    lines = []
    for user, command in requests(like):
        if user is not None:
            sign(command, "someuser" if user == "wrong" else user, KEYS.get(user, "?"))
        answer = await connection.ask(command, 10)
        # what both allow is answered in many ways, which other tests compare
        words = answer.remark if "Acl" in (answer.remark or "") or answer.code == 16 else ""
        lines.append((user, command.code, command.fields.get("topic"), answer.code in {1, 16}, words))
    connection.close()
    return lines


@pytest.mark.parametrize("like", RELEASES)
def test_both_refuse_the_same(like: str, tmp_path: Path) -> None:
    folder = tmp_path / "real"
    (folder / "home" / "conf").mkdir(parents=True)
    (folder / "home" / "conf" / "plain_acl.yml").write_text(FILE)
    options = [word for key, value in SETTINGS[like].items() for word in ("--set", f"{key}={value}")]
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(folder, *ports, *options, release=RELEASES[like]) as said:
        theirs = asyncio.run(told(said["broker"], like))

    async def ours() -> list[tuple[object, ...]]:
        access = Access(folder / "home" / "conf" / "plain_acl.yml", like, "PeerCluster")  # type: ignore[arg-type]
        config = BrokerConfig(cluster="PeerCluster")
        with MessageStore(tmp_path / "ours", like=like) as store, bind("127.0.0.1", 0) as at:  # type: ignore[arg-type]
            async with ListeningBroker(store, config, at=at, access=access) as server:
                return await told(server.address, like)

    for their, our in zip(theirs, asyncio.run(ours()), strict=True):
        assert our == their


COMMANDS = """\
sendMessage -t topicB -p hello
consumeMessage -t topicB -b broker-a -i 0 -o 0 -c 1
topicStatus -t topicA
updateTopic -b BROKER -t topicD -r 1 -w 1
"""


def asked(user: str, namesrv: str, broker: str, folder: Path) -> list[str]:
    """What mqadmin printed of each command, signing as ``user``."""
    tools = folder / "tools.yml"
    tools.write_text(f"accessKey: {user}\nsecretKey: {KEYS[user]}\n")
    out = subprocess.run(
        ["bash", str(real_cluster.JAVA / "mqadmin"), "5.3.3", namesrv, str(tools)],
        input=COMMANDS.replace("BROKER", broker), capture_output=True, text=True, timeout=200,
        env=real_cluster.environment(), check=True,
    ).stdout  # fmt: skip
    return out.split("### ")[1:]


def test_clients_of_rocketmq_sign_what_they_ask(tmp_path: Path) -> None:
    """A producer, a consumer and administrators of its own tools, as they sign it."""
    (tmp_path / "plain_acl.yml").write_text(FILE)
    words = ["serve", tmp_path / "store", "--port", "0", "--namesrv-port", "0", "--json", "--acl"]
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words, tmp_path / "plain_acl.yml"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        at = json.loads(process.stdout.readline())
        asyncio.run(declared(at["broker"]))
        sent, not_asked, refused, no_admin = asked("someuser", at["namesrv"], at["broker"], tmp_path)
        assert "SEND_OK" in sent
        assert "has no permission to access Topic:topicB" in not_asked  # offsets are asked for first: Get
        assert "has no permission to access Topic:topicA" in refused
        assert "has no permission to access Topic:topicD" in no_admin
        _, read, _, made = asked("adminuser", at["namesrv"], at["broker"], tmp_path)
        assert "hello" in read
        assert f"create topic to {at['broker']} success" in made
    finally:
        process.kill()
        process.communicate()


async def declared(address: str) -> None:
    """Both topics, by an administrator."""
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    for name in ("topicA", "topicB"):
        command = Command(17, {**TOPIC, "topic": name})
        sign(command, "adminuser", KEYS["adminuser"])
        assert (await connection.ask(command)).code == 0
    connection.close()
