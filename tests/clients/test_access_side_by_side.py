"""Signed requests to RocketMQ's own broker with the accounts of a ``plain_acl.yml``, and to ours: both refuse the same
requests in the same words. A broker of 5.x imports the file when it starts (``migrateAuthFromV1Enabled``).
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import real_cluster

from engine.broker.access import Access
from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.message_store import MessageStore
from engine.remoting.codes import RequestCode
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
RELEASES = {"4.9": "4.9.7", "5.3": "5.3.3"}
PULL = {
    "queueId": "0",
    "queueOffset": "0",
    "maxMsgNums": "1",
    "sysFlag": "4",
    "commitOffset": "0",
    "subscription": "*",
    "suspendTimeoutMillis": "0",
    "subVersion": "0",
}
SEND = {
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "",
    "j": "0",
    "k": "false",
    "m": "false",
}
TOPIC = {
    "defaultTopic": "TBW102",
    "readQueueNums": "1",
    "writeQueueNums": "1",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
}
HANDLE = {"queueId": "0", "offset": "0", "extraInfo": "0 1 2 0 0 broker-a 0 0"}


def beat(group: str, *topics: str) -> bytes:
    rows = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in topics]
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "unitMode": False,
        "subscriptionDataSet": rows,
    }
    return json.dumps({"clientID": "me", "consumerDataSet": [consumer], "producerDataSet": []}).encode()


def requests(release: str) -> list[tuple[str | None, Command]]:
    """Return pairs of a user and a request."""
    requests_: list[tuple[str | None, Command]] = [
        (None, Command(26)),
        ("nobody", Command(26)),
        ("wrong", Command(26)),
        *(("adminuser", Command(17, {**TOPIC, "topic": name})) for name in ("topicA", "topicB", "topicC")),
        ("someuser", Command(17, {**TOPIC, "topic": "topicB"})),
        ("someuser", Command(26)),
        *(("someuser", Command(310, {**SEND, "a": "p", "b": f"topic{suffix}"}, b"x")) for suffix in "ABC"),
        *(("someuser", Command(11, {**PULL, "topic": f"topic{suffix}", "consumerGroup": "g"})) for suffix in "ABC"),
        ("someuser", Command(11, {**PULL, "topic": "topicB", "consumerGroup": "closed"})),
        ("someuser", Command(34, body=beat("g", "topicB", "%RETRY%g"))),
        ("someuser", Command(34, body=beat("g", "topicA"))),
        ("someuser", Command(34, body=beat("closed"))),
        ("someuser", Command(35, {"clientID": "me", "consumerGroup": "closed"})),
        ("someuser", Command(36, {"offset": "0", "group": "closed", "delayLevel": "0"})),
        ("someuser", Command(14, {"topic": "topicA", "consumerGroup": "g", "queueId": "0"})),
        ("someuser", Command(15, {"topic": "topicA", "consumerGroup": "g", "queueId": "0", "commitOffset": "0"})),
        ("someuser", Command(30, {"topic": "topicB", "queueId": "0"})),
        (
            "someuser",
            Command(12, {"topic": "topicA", "key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": "1"}),
        ),
        ("someuser", Command(215, {"topic": "topicB"})),
    ]
    if release == "5.3":
        requests_ += [
            ("someuser", Command(200051, {**HANDLE, "topic": "topicA", "consumerGroup": "g"})),
            ("someuser", Command(200051, {**HANDLE, "topic": "%RETRY%closed", "consumerGroup": "g"})),
            ("someuser", Command(200052, {"topic": "topicC", "consumerGroup": "g", "queueId": "0", "maxMsgNums": "1"})),
            ("someuser", Command(204, {"producerGroup": "p"})),
            ("someuser", Command(208, {"consumerGroup": "g"})),
            ("someuser", Command(351, {"topic": "topicB"})),
            ("someuser", Command(352, {"group": "g"})),
        ]
    return requests_


async def broker_lines(address: str, release: str) -> list[tuple[object, ...]]:
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    lines = []
    for user, command in requests(release):
        if user is not None:
            sign(command, "someuser" if user == "wrong" else user, KEYS.get(user, "?"))
        answer = await connection.ask(command, 60)
        # what both allow is answered in many ways, which other tests compare
        words = answer.remark if "Acl" in (answer.remark or "") or answer.code == 16 else ""
        lines.append((user, command.code, command.fields.get("topic"), answer.code in {1, 16}, words))
    connection.close()
    return lines


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("release", RELEASES)
def test_both_refuse_the_same(release: str, tmp_path: Path) -> None:
    folder = tmp_path / "real"
    (folder / "home" / "conf").mkdir(parents=True)
    (folder / "home" / "conf" / "plain_acl.yml").write_text(FILE)
    options = [
        word for key, value in real_cluster.ACCOUNT_SETTINGS[release].items() for word in ("--set", f"{key}={value}")
    ]
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(folder, *ports, *options, release=RELEASES[release]) as output:
        theirs = asyncio.run(broker_lines(output["broker"], release))

    async def ours() -> list[tuple[object, ...]]:
        access = Access(folder / "home" / "conf" / "plain_acl.yml", release, "PeerCluster")  # type: ignore[arg-type]
        config = BrokerConfig(cluster="PeerCluster")
        with MessageStore(tmp_path / "ours", release=release) as store, bind("127.0.0.1", 0) as position:  # type: ignore[arg-type]
            async with ListeningBroker(store, config, listening_socket=position, access=access) as server:
                return await broker_lines(server.address, release)

    for their, our in zip(theirs, asyncio.run(ours()), strict=True):
        assert our == their


COMMANDS = """\
sendMessage -t topicB -p hello
consumeMessage -t topicB -b broker-a -i 0 -o 0 -c 1
topicStatus -t topicA
updateTopic -b BROKER -t topicD -r 1 -w 1
"""


def mqadmin_outputs(user: str, namesrv: str, broker: str, folder: Path) -> list[str]:
    """Return the output of each mqadmin command, signed as ``user``."""
    tools = folder / "tools.yml"
    tools.write_text(f"accessKey: {user}\nsecretKey: {KEYS[user]}\n")
    out = subprocess.run(
        ["bash", str(real_cluster.JAVA / "mqadmin"), "5.3.3", namesrv, str(tools)],
        input=COMMANDS.replace("BROKER", broker),
        capture_output=True,
        text=True,
        timeout=200,
        env=real_cluster.environment(),
        check=True,
    ).stdout
    return out.split("### ")[1:]


def test_clients_of_rocketmq_sign_what_they_ask(tmp_path: Path) -> None:
    """RocketMQ's own producer, consumer and administrators' tools sign their requests."""
    (tmp_path / "plain_acl.yml").write_text(FILE)
    words = ["serve", tmp_path / "store", "--port", "0", "--namesrv-port", "0", "--json", "--acl"]
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words, tmp_path / "plain_acl.yml"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        position = json.loads(process.stdout.readline())
        asyncio.run(declared(position["broker"]))
        sent, not_asked, refused, no_admin = mqadmin_outputs(
            "someuser", position["namesrv"], position["broker"], tmp_path
        )
        assert "SEND_OK" in sent
        assert "has no permission to access Topic:topicB" in not_asked  # offsets are asked for first: Get
        assert "has no permission to access Topic:topicA" in refused
        assert "has no permission to access Topic:topicD" in no_admin
        _, read, _, sample = mqadmin_outputs("adminuser", position["namesrv"], position["broker"], tmp_path)
        assert "hello" in read
        assert f"create topic to {position['broker']} success" in sample
    finally:
        process.kill()
        process.communicate()


async def declared(address: str) -> None:
    """Declare both topics as an administrator."""
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    for name in ("topicA", "topicB"):
        command = Command(17, {**TOPIC, "topic": name})
        sign(command, "adminuser", KEYS["adminuser"])
        assert (await connection.ask(command, 60)).code == 0
    connection.close()


# What administrators ask

ADMIN, USER = "adminuser", "someuser"
CHANGES = {"password": "87654321"}, {"userStatus": "disable"}, {"userType": "Super"}, {"userType": "Normal"}, {}
_EXCEPTION = re.compile(r"[\w.]+\.(\w+Exception): (.*), [\w.$]+\([\w.]+:\d+\)", re.DOTALL)
_OF_JAVA = {"NullPointerException", "JSONException"}
_TIME = re.compile(r"\b1[67]\d{11}\b")
Asked = tuple[str | None, int, dict[str, str], bytes]


def entry(resource: object, actions: object, decision: object = "ALLOW", **options: object) -> dict[str, object]:
    return {"resource": resource, "actions": actions, "decision": decision, **options}


def acl(subject: str, *entries: dict[str, object], **options: object) -> bytes:
    return json.dumps({"subject": subject, "policies": [{"entries": list(entries), **options}]}).encode()


def of(code: int, *rows: dict[str, str], user: str | None = ADMIN, body: bytes = b"") -> Iterator[Asked]:
    for fields in rows:
        yield user, code, fields, body


def user(code: int, name: str | None, /, **options: str) -> Iterator[Asked]:
    yield from of(code, {} if name is None else {"username": name}, body=json.dumps(options).encode())


def of_users() -> Iterator[Asked]:
    """Requests 3001 to 3005."""
    names = [{"username": item} for item in (USER, ADMIN, "nobody", "", "  ")]
    yield from of(3005, {}, *({"filter": text} for text in ("some", "zzz", "")))
    yield from of(3004, {}, *names)
    yield from of(3004, names[0], user=USER)
    yield from of(3005, {}, user=USER)
    yield from of(3001, {"username": "x"}, user=USER, body=b'{"password":"12345678"}')
    for _ in range(2):
        yield from user(3001, "ann", username="ann", password="12345678")
    yield from user(3001, "bob", username="other", password="12345678", userType="Normal", userStatus="disable")
    for output in ({}, {"password": ""}, {"password": "  "}):
        yield from user(3001, "cat", **output)
    for name in ("", None):
        yield from user(3001, name, password="12345678")
    for body in (b"", b"nonsense", b"[]"):
        yield from of(3001, {"username": "dan"}, body=body)
    for name, output in (
        ("dan", {"userType": "SUPER"}),
        ("eve", {"userType": "what"}),
        ("fay", {"userStatus": "what"}),
        ("gus", {"userType": "normal", "userStatus": "ENABLE"}),
        ("a b:c@d", {}),
    ):
        yield from user(3001, name, password="1", **output)
    yield from of(3005, {})
    for output in (
        {"password": "87654321"},
        {"userStatus": "disable"},
        {"userType": "Super"},
        {"userType": "Normal"},
        {},
    ):
        yield from user(3002, "ann", **output)
        yield from of(3004, {"username": "ann"})
    yield from of(3002, {"username": "ann"})
    for name in ("nobody", "", None):
        yield from user(3002, name, password="87654321")
    yield from of(3002, {"username": "ann"}, user=USER, body=b'{"password":"1"}')


def of_policies() -> Iterator[Asked]:
    """Requests 3006 to 3010."""
    ann, bob = {"subject": "User:ann"}, {"subject": "User:bob"}
    yield from of(3010, {})
    subjects = ("User:someuser", "User:ann", "User:nobody", "someuser", "Group:x", "")
    yield from of(3009, {}, *({"subject": subject} for subject in subjects))
    for fields, body in (
        (ann, acl("User:ann", entry("Topic:T1", ["Pub", "Sub"]))),
        (ann, acl("User:ann", entry("Topic:T1", ["Pub", "Sub"]))),
        ({}, acl("User:bob", entry("Topic:T*", ["pub"], "deny", sourceIps=["192.168.0.1", "10.0.0.0/8"]))),
        (bob, acl("User:ann", entry("Group:G1", ["Sub"]))),
        (ann, acl("User:ann", entry("*", ["All"]), policyType="Default")),
        (ann, acl("User:ann", entry("Any:*", ["All"]), policyType="DEFAULT")),
        (ann, acl("User:ann", entry("Cluster:*", ["Get", "List"]), policyType="what")),
        (ann, acl("User:ann", entry("Namespace:n", ["Get"]))),
    ):
        yield from of(3006, fields, body=body)
        yield from of(3009, ann, bob)
    plain = entry("Topic:x", ["Pub"])
    wrong = [
        b"",
        b"{}",
        b"nonsense",
        json.dumps(ann).encode(),
        json.dumps({**ann, "policies": []}).encode(),
        json.dumps({"policies": [{"entries": [plain]}]}).encode(),
        *(acl(text, plain) for text in ("ann", "User:", "User:nobody", "Role:ann", "")),
        acl("User:ann"),
        *(json.dumps({**ann, "policies": [one]}).encode() for one in ({}, {"policyType": "Custom"})),
    ]
    rows = [entry(one, ["Pub"]) for one in ("", "x", "What:x", "Topic:", None)]
    rows += [entry("Topic:x", one) for one in ([], None, ["Fly"], ["Any"], ["Pub", "Fly"])]
    rows += [entry("Topic:x", ["Pub"], one) for one in ("maybe", None, "")]
    places = (["what"], ["1.2.3"], ["1.2.3.*"], ["1.2.3.4-9"], ["::1"], ["1.2.3.4/40"], [], [""])
    rows += [entry("Topic:x", ["Pub"], sourceIps=place) for place in places]
    for body in (*wrong, *(acl("User:ann", row) for row in rows), acl("User:someuser", entry("Topic:topicB", ["Pub"]))):
        yield from of(3006, ann, body=body)
    yield from of(3009, ann)
    for name, item in (
        ("User:ann", entry("Topic:T1", ["Sub"], "Deny")),
        ("User:ann", entry("Topic:T2", ["Sub"])),
        ("User:nobody", plain),
    ):
        yield from of(3007, {"subject": name}, body=acl(name, item))
    for body in wrong[:6]:
        yield from of(3007, ann, body=body)
    yield from of(
        3010,
        *({"subjectFilter": one} for one in ("User:ann", "ann", "zz")),
        *({"resourceFilter": one} for one in ("T1", "Topic:T", "zz")),
        {"subjectFilter": "ann", "resourceFilter": "T2"},
        {"subjectFilter": "", "resourceFilter": ""},
    )
    yield from of(3010, {}, user=USER)
    for fields in (
        {"resource": "Topic:zz"},
        {"resource": "Topic:T2"},
        {"policyType": "Custom", "resource": "Topic:T1"},
        {"policyType": "Default", "resource": "*"},
        {"resource": "What:zz"},
        {"resource": "zz"},
        {"policyType": "Default"},
        {},
    ):
        yield from of(3008, ann | fields)
        yield from of(3009, ann)
    yield from of(3008, {}, bob, *({"subject": one} for one in ("User:nobody", "ann", "")))
    yield from of(3008, {"subject": "User:someuser"}, user=USER)
    yield from of(3008, {"subject": "User:someuser"})
    yield from of(3003, {"username": "ann"}, user=USER)
    yield from of(3003, {}, *({"username": one} for one in ("ann", "ann", "nobody", "", USER)))
    yield from of(3010, {})
    yield from of(3005, {})


def of_the_store() -> Iterator[Asked]:
    """Requests 354, 2001 to 2004 and 200056."""
    yield from of(354, {}, {"topic": "topicB", "checkStoreTime": "0"}, {"topic": "nowhere"}, {"checkStoreTime": "x"})
    lines = (b"g1=5000\ng2=abc\n# no\ng3 = 7\n", b"", b"g1=0\ng4=-5\ng5=99999999999\ng6=1.5\ng7\n")
    for body in lines:
        yield from of(2001, {}, body=body)
        yield from of(2003, {})
    for body in (b"g1", b"none", b""):
        yield from of(2002, {}, body=body)
    yield from of(2003, {})
    modes = ("0", "1", "7", "x", "", "99999999999", " 1", "+1", "-0")
    yield from of(2004, {}, {"OTHER": "1"}, *({"READ_AHEAD_MODE": mode} for mode in modes))
    yield from of(200056, {})
    for code in (354, 2001, 2002, 2003, 2004, 200056, 3001, 3003, 3005, 3006, 3010):
        yield from of(code, {}, user=None)


def of_accounts() -> Iterator[Asked]:
    """Requests 50 to 54."""
    key, secret = "accessKey", "secretKey"
    complete = {
        key: "newuser1",
        secret: "abcdefgh",
        "whiteRemoteAddress": "",
        "defaultTopicPerm": "DENY",
        "defaultGroupPerm": "SUB",
        "topicPerms": "topicA=DENY,topicB=PUB|SUB",
        "groupPerms": "g1=SUB",
        "admin": "false",
    }
    white = {"admin": "true", "whiteRemoteAddress": "10.10.*.*"}
    yield from (*of(52, {}), *of(54, {}), *of(52, {}, user=USER))
    for fields in (
        complete,
        complete | {secret: "12345678901"},
        {key: "newuser1", secret: "zyxwvuts"},
        {key: "newuser2", secret: "zyxwvuts"},
        {key: "newuser3", secret: "zyxwvuts", **white},
    ):
        yield from (*of(50, fields), *of(54, {}), *of(52, {}))
    wrong_values = {
        key: ("short", "", "with: colon #x"),
        secret: ("short", ""),
        "defaultTopicPerm": ("WHAT",),
        "topicPerms": ("topicA", "topicA=WHAT", "=PUB", "a=PUB=SUB", ",", "a=PUB,,b=SUB", " a = PUB "),
        "groupPerms": ("g", "g=what"),
        "defaultGroupPerm": ("what",),
        "admin": ("what",),
        "whiteRemoteAddress": ("what", "1.2.3.400", "1.2.3.{4,5}", "*"),
    }
    yield from of(50, *(complete | {name: value} for name, values in wrong_values.items() for value in values))
    absent = (key, secret, "admin", "topicPerms")
    yield from of(50, *({name: item for name, item in complete.items() if name != removed} for removed in absent))
    yield from of(54, {})
    yield from of(51, {}, *({key: value} for value in ("newuser2", "newuser2", "nobody", "")))
    yield from of(54, {})
    for text in ("10.10.103.*,192.168.0.1", ""):
        yield from (*of(53, {"globalWhiteAddrs": text}), *of(54, {}))
    yield from of(53, {}, {"globalWhiteAddrs": "10.10.104.1", "aclFileFullPath": "/no/such/file.yml"})
    yield from of(52, {})
    for code in (50, 51, 52, 53, 54):
        yield from of(code, {}, user=None)
    for code in (354, 2001, 2003, 2004, 3001, 200056):
        yield from of(code, {})


async def answers(address: str, release: str, home: Path) -> list[tuple[Asked, Any]]:
    """Return each request with its answer, without the parts that must differ."""
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    lines = []
    request = of_accounts() if release == "4.9" else (*of_users(), *of_policies(), *of_the_store())
    for client, code, fields, body in request:
        command = Command(code, dict(fields), body)
        if client is not None:
            sign(command, client, KEYS[client])
        answer = await connection.ask(command, 60)
        extra = {name: text.replace(str(home), "HOME") for name, text in answer.fields.items()}
        content = json.loads(bytes(answer.body) or b"null")
        if code == RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS and answer.code == 0:
            content = "checked"  # a real broker writes the result into its log, ours answers with it
        extra.pop("version", None)  # of 52: RocketMQ tells the number of its start until it has read the file again
        row = [answer.code, answer.remark, extra, content]
        text = _TIME.sub("TIME", json.dumps(row, sort_keys=True).replace(address, "BROKER"))
        lines.append(((client, code, fields, body), re.sub(r"127\.0\.0\.1:\d+", "PEER", text)))
    connection.close()
    return lines


def is_same(their: str, our: str) -> bool:
    if their == our:
        return True
    (code, remark, *record), (our_code, our_remark, *our_rest) = json.loads(their), json.loads(our)
    match = _EXCEPTION.fullmatch(remark or "")
    if match is None or [code, *record] != [our_code, *our_rest]:
        return False
    return match[1] in _OF_JAVA or match[2] == our_remark


@pytest.mark.clients_full
@pytest.mark.parametrize("release", RELEASES)
def test_both_answer_administrators_the_same(release: str, tmp_path: Path) -> None:
    """Requests that administer accounts, users, policies and thresholds: code, remark, header fields and body.

    If RocketMQ answers with a Java exception, we use its message; only the code is compared if the message is about
    RocketMQ's own code (``NullPointerException``, ``JSONException``). Two cases are left out because we differ on
    purpose: accounts of 4.9 changed by a user without administrator rights (in RocketMQ every user with a signature can
    make himself one), and a secret with quotes of both kinds, which our file of accounts cannot hold.
    """
    folder = tmp_path / "real"
    for home in (folder / "home", tmp_path / "ours"):
        (home / "conf").mkdir(parents=True)
        (home / "conf" / "plain_acl.yml").write_text(FILE)
    options = [
        word for key, value in real_cluster.ACCOUNT_SETTINGS[release].items() for word in ("--set", f"{key}={value}")
    ]
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(folder, *ports, *options, release=RELEASES[release]) as output:
        theirs = asyncio.run(answers(output["broker"], release, folder / "home"))

    async def ours() -> list[tuple[Asked, Any]]:
        access = Access(tmp_path / "ours" / "conf" / "plain_acl.yml", release, "PeerCluster")  # type: ignore[arg-type]
        config = BrokerConfig(cluster="PeerCluster")
        with MessageStore(tmp_path / "store", release=release) as store, bind("127.0.0.1", 0) as position:  # type: ignore[arg-type]
            async with ListeningBroker(store, config, listening_socket=position, access=access) as server:
                return await answers(server.address, release, tmp_path / "ours")

    for (request, their), (_, our) in zip(theirs, asyncio.run(ours()), strict=True):
        assert is_same(their, our), (request, their, our)
