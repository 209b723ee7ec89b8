"""Partly wrong requests, the same for every broker, and the parts of an answer that must be equal.

Each known request is sent correctly, and once more for each possible error: a field that is absent, empty, no number,
too large or below zero, unknown topics and groups, a wrong body. The order is fixed, so that a change by one request is
there for the next in both brokers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from engine.releases import Release
from engine.remoting.codes import BROKER, HeaderField, Request, unknown_requests
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command

SILENT = (None, None, ())
"""What is told of a request that nobody answers."""
TIMEOUT_S = 8.0
NOT_ASKED = frozenset({50, 51, 52, 53, 54, *range(3001, 3011), 28, 26, 306, 316, 329, 354, 907, 2001, 2002, 2003, 2004})
"""Accounts and thresholds, which ``test_access_side_by_side`` asks; what cleans; what has no field."""
TOPICS = (
    "Nowhere",
    "bad!name",
    "TBW102",
    "SCHEDULE_TOPIC_XXXX",
    "%RETRY%readers",
    "%RETRY%nobody",
    "%DLQ%readers",
    "%RETRY%",
    "T" * 128,
    "T" * 300,
    "Shut",
    "WriteOnly",
    "ReadOnly",
    "broker-a",
    " ",
    "数量",
)
GROUPS = ("Nobody", "bad!group", "CID_RMQ_SYS_TRANS", "G" * 130, "G" * 300, "shut", " ", "数量")
NUMBERS = (
    "x",
    "-1",
    "-5",
    "99",
    "1.5",
    " 1",
    "+1",
    "1_0",
    "0x10",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "१",
)
TRUTHS = ("x", "TRUE", "1", "true", "false")
BODIES = (b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b'"text"', b"5", b"[{}]", b'{"a":')
OF_FIELD = {
    "sysFlag": ("x", "0", "8", "9223372036854775808", "1.5"),  # bits of others hold the answer back
    "pollTime": ("x", "-1", "9", "1.5"),
    "bornTime": ("x", "-1", "99"),
    "suspendTimeoutMillis": ("x", "-1"),
    "invisibleTime": ("x", "-1", "0", "9223372036854775807"),
    "delayLevel": ("x", "-1", "1", "99"),
    "attributes": (
        "+",
        "-",
        "x",
        "+a=b",
        "+message.type=FIFO",
        "+message.type=odd",
        "-message.type",
        "+cleanup.policy=odd",
        "+queue.type=BatchCQ",
        "+reserve.time=x",
        "+message.type=FIFO,+message.type=DELAY",
        "+a",
        "=",
        ",",
    ),
    "topicFilterType": ("MULTI_TAG", "odd", "single_tag"),
    "perm": ("x", "-1", "0", "1", "6", "7", "8", "99"),
    "readQueueNums": ("x", "-1", "0", "99"),
    "writeQueueNums": ("x", "-1", "0", "99"),
    "boundaryType": ("upper", "UPPER", "odd"),
    "expressionType": ("SQL92", "odd", "tag"),
    "expType": ("SQL92", "odd", "tag"),
    "exp": ("a >", "*", "a || b", "a = 1"),
    "subscription": ("*", "a ||", "||", " ", " * ", "||||", "a > 1"),
    "properties": (
        "odd",
        "a\x01",
        "\x01b\x02",
        "a\x01b\x02a\x01c\x02",
        "DELAY\x01x\x02",
        "DELAY\x0199\x02",
        "TRAN_MSG\x01true\x02",
        "TIMER_DELAY_SEC\x01x\x02",
        "TIMER_DELIVER_MS\x01-5\x02",
        "WAIT\x01x\x02",
        "KEYS\x01" + "k" * 40000 + "\x02",
        "\x02\x02",
        "TIMER_DELAY_SEC\x01999999999\x02",
    ),
    "extraInfo": ("odd", "0 1 2", "0 1 2 3 4 5 6 7", "a b c d e f g h", "0 1795424194035 10000 1 0 broker-a 0 0 77"),
    "commitOrRollback": ("x", "5", "8", "12"),  # 0 is never answered
    "clientId": ("nobody",),
    "clientID": ("nobody", " "),
    "order": TRUTHS,
    "key": ("none", "k1", " ", "a b", "数量"),
    "statsName": ("TOPIC_PUT_NUMS", "odd"),
    "recallHandle": ("odd", "djEgYSBiIGMgZA==", "===", "dj"),
}
"""What stands in fields instead of what all of their kind have."""
SEND = {
    "producerGroup": "senders",
    "topic": "Orders",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "1",
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "0",
    "properties": "KEYS\x01k1\x02",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}
LETTERS = dict(zip("abcdefghijkm", SEND, strict=True))
SHORT = {letter: SEND[name] for letter, name in LETTERS.items()}
BATCH = {**SHORT, "m": "true"}
OF_LETTER = {letter: OF_FIELD[name] for letter, name in LETTERS.items() if name in OF_FIELD}
WHERE = {"consumerGroup": "readers", "topic": "Orders", "queueId": "1"}
PULL = {
    **WHERE,
    "queueOffset": "0",
    "maxMsgNums": "2",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "0",
    "expressionType": "TAG",
}
POP = {
    **WHERE,
    "topic": "Popped",
    "maxMsgNums": "1",
    "invisibleTime": "600000",
    "pollTime": "0",
    "bornTime": "0",
    "initMode": "0",
}
HANDLE = {**WHERE, "offset": "0", "extraInfo": "0 1795424194035 10000 1 0 broker-a 1 0"}
NEW = {
    "topic": "Made",
    "defaultTopic": "TBW102",
    "readQueueNums": "2",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
}
ONE_OF_A_BATCH = bytes.fromhex(
    "00000034000000000000000000000000000000024231001c4b455953016b31025741495401747275650254414753015461674102"
)
"""See docs/protocol/check-vectors.md#send-request."""
QUEUES = {
    "clientId": "me",
    "consumerGroup": "readers",
    "mqSet": [{"brokerName": "broker-a", "queueId": 0, "topic": "Orders"}],
}
BEAT = {"clientID": "me", "producerDataSet": [{"groupName": "senders"}], "consumerDataSet": []}
ASSIGNED = {
    "clientId": "me",
    "consumerGroup": "readers",
    "messageModel": "CLUSTERING",
    "strategyName": "AVG",
    "topic": "Orders",
}
MODE = {"consumerGroup": "readers", "mode": "PULL", "popShareQueueNum": 0, "topic": "Orders"}
ACKS = {
    "acks": [
        {
            "b": "AQ==",
            "c": "readers",
            "it": 8000,
            "pt": 1795424194767,
            "q": 0,
            "r": "0",
            "rq": 7,
            "so": 0,
            "t": "Orders",
        }
    ],
    "brokerName": "broker-a",
}
GROUP = {
    "groupName": "made",
    "consumeEnable": True,
    "consumeBroadcastEnable": True,
    "retryQueueNums": 1,
    "retryMaxTimes": 16,
}
CHECKED = {
    "clientId": "me",
    "group": "readers",
    "namespace": None,
    "subscriptionData": {"topic": "Orders", "subString": "a = 1", "expressionType": "SQL92", "subVersion": 1},
}
ROW = {"topicName": "Made2", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": 0}
USUAL: dict[int, tuple[dict[str, str], object]] = {
    10: (SEND, b"body"),
    310: (SHORT, b"body"),
    320: (BATCH, ONE_OF_A_BATCH),
    324: (SEND, b"body"),
    325: (SHORT, b"body"),
    370: ({"producerGroup": "senders", "topic": "Orders", "recallHandle": "odd"}, b""),
    36: (
        {
            "offset": "0",
            "group": "readers",
            "delayLevel": "0",
            "originMsgId": "A",
            "originTopic": "Orders",
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        },
        b"",
    ),
    11: (PULL, b""),
    361: (PULL, b""),
    14: (WHERE, b""),
    15: ({**WHERE, "commitOffset": "1"}, b""),
    30: ({"topic": "Orders", "queueId": "1"}, b""),
    31: ({"topic": "Orders", "queueId": "1"}, b""),
    32: ({"topic": "Orders", "queueId": "1"}, b""),
    29: ({"topic": "Orders", "queueId": "1", "timestamp": "1700000000000"}, b""),
    33: ({"offset": "0"}, b""),
    12: ({"topic": "Orders", "key": "k1", "maxNum": "4", "beginTimestamp": "0", "endTimestamp": "9999999999999"}, b""),
    34: ({}, BEAT),
    35: ({"clientID": "me", "producerGroup": "senders", "consumerGroup": "readers"}, b""),
    46: ({}, CHECKED),
    38: ({"consumerGroup": "readers"}, b""),
    41: ({}, QUEUES),
    42: ({}, QUEUES),
    37: (
        {
            "producerGroup": "senders",
            "tranStateTableOffset": "0",
            "commitLogOffset": "0",
            "commitOrRollback": "8",
            "fromTransactionCheck": "false",
            "msgId": "A",
            "transactionId": "A",
            "topic": "Orders",
        },
        b"",
    ),
    17: (NEW, b""),
    18: ({}, {"topicConfigList": [ROW]}),
    21: ({}, b""),
    351: ({"topic": "Orders"}, b""),
    200: ({}, GROUP),
    225: ({}, {"groupConfigList": [GROUP]}),
    201: ({}, b""),
    352: ({"group": "readers"}, b""),
    43: ({}, b""),
    45: ({}, b""),
    25: ({}, b""),
    202: ({"topic": "Orders"}, b""),
    208: ({"consumerGroup": "readers", "topic": "Orders"}, b""),
    203: ({"consumerGroup": "readers"}, b""),
    204: ({"producerGroup": "senders"}, b""),
    300: ({"topic": "Orders"}, b""),
    60: ({}, b""),
    61: ({}, b""),
    402: ({}, b""),
    343: ({"group": "readers"}, b""),
    345: ({"group": "readers", "topic": "Orders"}, b""),
    305: ({}, b""),
    321: ({"topic": "Orders", "queueId": "1", "index": "0", "count": "2", "consumerGroup": "readers"}, b""),
    222: ({"topic": "Orders", "group": "readers", "timestamp": "1700000000000", "isForce": "true"}, b""),
    223: ({"topic": "Orders", "group": "readers", "clientAddr": "nobody"}, b""),
    307: ({"consumerGroup": "readers", "clientId": "nobody", "jstackEnable": "false"}, b""),
    309: (
        {
            "consumerGroup": "readers",
            "clientId": "nobody",
            "msgId": "7F00000100002A9F0000000000000000",
            "brokerName": "broker-a",
        },
        b"",
    ),
    314: ({"srcGroup": "readers", "destGroup": "made", "topic": "Orders", "offline": "true"}, b""),
    315: ({"statsName": "odd", "statsKey": "Orders"}, b""),
    317: ({"isOrder": "false"}, b""),
    328: ({}, b""),
    400: ({}, ASSIGNED),
    401: ({}, MODE),
    200050: (POP, b""),
    200051: (HANDLE, b""),
    200052: ({**WHERE, "maxMsgNums": "1"}, b""),
    200053: ({**HANDLE, "invisibleTime": "1000"}, b""),
    200054: ({**WHERE, "pollTime": "0", "bornTime": "0"}, b""),
    200055: (WHERE, b""),
    200056: ({}, b""),
    200070: (
        {
            "clientId": "one",
            "consumerGroup": "readers",
            "topic": "Orders",
            "maxMsgNum": "1",
            "invisibleTime": "1000",
            "pollTime": "0",
        },
        b"",
    ),
    200071: (
        {},
        {
            "subscriptionSet": [
                {
                    "action": "PARTIAL_ADD",
                    "clientId": "one",
                    "group": "readers",
                    "topic": "Orders",
                    "liteTopicSet": ["a"],
                }
            ]
        },
    ),
    200074: ({}, b""),
    200075: ({"topic": "Orders"}, b""),
    200076: ({"parentTopic": "Orders", "liteTopic": "a"}, b""),
    200077: ({"parentTopic": "Orders", "group": "readers", "clientId": "one", "maxCount": "1"}, b""),
    200078: ({"group": "readers", "liteTopic": "a"}, b""),
    200079: ({"group": "readers", "clientId": "one"}, b""),
    200151: ({}, ACKS),
    207: ({"groupName": "made", "cleanOffset": "true"}, b""),
    215: ({"topic": "Made"}, b""),
    5002: ({}, {"topicList": ["Made"]}),
    5003: ({}, {"groupNameList": ["made"], "cleanOffset": True}),
}
"""Each request as it should be, in the order in which they are asked: fields, and what the body is."""
OTHER_CODES = (0, -5, 39, 40, 4711, 105, 70000)


class MalformedRequest(NamedTuple):
    """A request and the name of its error."""

    name: str
    code: int
    fields: dict[str, str]
    body: bytes


def malformed_requests(release: Release) -> Iterator[MalformedRequest]:
    """Yield all requests for a broker of a release (as the table of releases names it)."""
    unknown = unknown_requests(release)
    rows = {request.code: request for request in BROKER}
    assert set(USUAL) | NOT_ASKED >= set(rows), sorted(set(rows) - set(USUAL) - NOT_ASKED)
    for code in (*OTHER_CODES, *sorted(unknown)):
        yield MalformedRequest(f"{code}", code, {}, b"")
    for code, (fields, body) in USUAL.items():
        if code not in unknown:
            yield from _of(rows[code], fields, body)


def _of(request: Request, usual: dict[str, str], usual_body: object) -> Iterator[MalformedRequest]:
    code, body = request.code, usual_body if isinstance(usual_body, bytes) else json.dumps(usual_body).encode()
    yield MalformedRequest(f"{code}", code, usual, body)
    yield MalformedRequest(f"{code} without anything", code, {}, b"")
    yield MalformedRequest(f"{code} with more", code, {**usual, "odd": "1", "": "2"}, body)
    for field in request.fields:
        if field.sent_as in usual:
            remainder = {name: text for name, text in usual.items() if name != field.sent_as}
            yield MalformedRequest(f"{code} without {field.sent_as}", code, remainder, body)
        for value in ("", *_values(code, field)):
            yield MalformedRequest(
                f"{code} {field.sent_as}={_shorten(value)}", code, {**usual, field.sent_as: value}, body
            )
    for other_body in BODIES:
        if other_body != body:
            yield MalformedRequest(f"{code} body {other_body!r}", code, usual, other_body)
    if isinstance(usual_body, dict):
        yield from _of_body(code, usual_body)


def _of_body(code: int, usual_body: dict[str, object]) -> Iterator[MalformedRequest]:
    """Yield the body without each of its members, and with other values in them."""
    for name, value in usual_body.items():
        yield MalformedRequest(
            f"{code} body without {name}",
            code,
            {},
            json.dumps({k: v for k, v in usual_body.items() if k != name}).encode(),
        )
        for other_value in (None, "", "odd", -1, [], {}, [None], [{}], True):
            if other_value != value:
                yield MalformedRequest(
                    f"{code} body {name}={json.dumps(other_value)}",
                    code,
                    {},
                    json.dumps({**usual_body, name: other_value}).encode(),
                )


def _shorten(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:10]}… of {len(value)}"


def _values(code: int, field: HeaderField) -> tuple[str, ...]:
    name = LETTERS.get(field.sent_as, field.sent_as)
    special = (OF_LETTER if code in (310, 320, 325) else OF_FIELD).get(field.sent_as)
    if special is not None:
        return special
    if field.kind == "int":
        return NUMBERS
    if field.kind == "bool":
        return TRUTHS
    if name in ("topic", "defaultTopic", "originTopic"):
        return TOPICS
    if name.lower().endswith("group") or name in ("groupName", "group"):
        return GROUPS
    return ("odd", " ")


async def prepare(connection: Connection) -> None:
    """Make the topics, groups and messages that the requests name."""
    topics = {"Orders": "6", "Popped": "6", "Shut": "0", "WriteOnly": "2", "ReadOnly": "4"}
    for name, perm in topics.items():
        fields = {**NEW, "topic": name, "readQueueNums": "4", "writeQueueNums": "4", "perm": perm}
        assert (await connection.ask(Command(17, fields), TIMEOUT_S)).code == 0
    for name, enabled in (("readers", True), ("shut", False)):
        row = json.dumps({**GROUP, "groupName": name, "consumeEnable": enabled}).encode()
        assert (await connection.ask(Command(200, {}, row), TIMEOUT_S)).code == 0
    for number in range(820):  # more to pop than there are pops
        fields = {**SEND, "queueId": str(number % 4), "topic": "Orders" if number < 20 else "Popped"}
        assert (await connection.ask(Command(10, fields, b"%d" % number), TIMEOUT_S)).code == 0


Answered = tuple[int | None, str | None, tuple[str, ...]]


async def answers(address: str, release: str) -> dict[str, Answered]:
    """Return a broker's answer to each: code, first line of the remark, names of header fields."""
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    results: dict[str, Answered] = {}
    try:
        await prepare(connection)
        for odd in malformed_requests(release):
            assert odd.name not in results, odd.name
            if connection.closed.is_set():
                connection = await connect(host, int(port))
            results[odd.name] = await _answer(connection, odd, address)
    finally:
        connection.close()
    return results


async def _answer(connection: Connection, odd: MalformedRequest, address: str) -> Answered:
    try:
        answer = await connection.ask(Command(odd.code, dict(odd.fields), odd.body, version=479), TIMEOUT_S)
    except TimeoutError:
        return SILENT
    except ConnectionError:
        return -1, "the connection ended", ()
    words = None if answer.remark is None else _plain(answer.remark.split("\n")[0].replace(address, "BROKER"))
    return answer.code, words, tuple(sorted(answer.fields))


def _plain(words: str) -> str:
    words = re.sub(r"/?127\.0\.0\.1:\d+", "PEER", words)
    words = re.sub(r"\b1[67]\d{11}\b", "TIME", words)
    words = re.sub(r"\b[0-9A-F]{32}\b", "ID", words)
    return re.sub(r"\d+\.\d+(?= |\])", "N", words)


_OF_JAVA = re.compile(
    r"(java|com|org)\.[\w.$]+(Exception|Error)\b.*|Cannot invoke |For input string: |Index \d+ out of "
)


def is_same(real: Answered, ours: Answered) -> bool:
    """Return True if our answer equals RocketMQ's; for an exception of Java's only code and fields count."""
    if real == ours:
        return True
    words = real[1] or ""
    return real[0] == ours[0] and real[2] == ours[2] and _OF_JAVA.match(words) is not None and bool(ours[1])
