"""The one table of requests: number, RocketMQ's name, header fields with their types, and the page that describes it.

It is the source of the checks of a request's mandatory fields, and of the names in answers and in the log. Java:
``RequestCode``, ``ResponseCode``, and a header class for each request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache

from engine.releases import Release, of
from engine.remoting.frame import Command


class Answer(IntEnum):
    """Codes of answers (docs/protocol/frames.md#response-codes)."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    TRANSACTION_FAILED = 4
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    VERSION_NOT_SUPPORTED = 15
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    TOPIC_EXIST_ALREADY = 18
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    FILTER_DATA_NOT_EXIST = 27
    FILTER_DATA_NOT_LATEST = 28
    INVALID_PARAMETER = 29
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    NO_MESSAGE = 208
    POLLING_FULL = 209
    POLLING_TIMEOUT = 210
    ILLEGAL_OPERATION = 604


_FAQ = {
    4: "http://rocketmq.apache.org/docs/faq/",
    5: "https://rocketmq.apache.org/docs/bestPractice/06FAQ",
}


def see(like: Release) -> str:
    """Return the link to further reading that RocketMQ's brokers add to some refusals."""
    return f"\nSee {_FAQ[of(like).major]} for further details."


def invalid(like: Release) -> Answer:
    """The code of what is wrong with a request: a release before 5.x has none of its own."""
    return Answer.SYSTEM_ERROR if of(like).major < 5 else Answer.INVALID_PARAMETER


NOT_SET = "not set any response code"
"""The remark of answers for which RocketMQ sets none."""


class Refused(Exception):
    """A request is refused: the answer has this code, this remark and these header fields."""

    def __init__(self, code: int, remark: str, fields: dict[str, str] | None = None) -> None:
        super().__init__(remark)
        self.code = code
        self.fields = fields or {}


class WrongRequest(Refused):
    """A request lacks a mandatory field, or has one that cannot be read; the sentence is its answer."""

    def __init__(self, remark: str) -> None:
        super().__init__(Answer.SYSTEM_ERROR, remark)


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A field of a request's header. ``kind`` is what its text must parse as: ``str``, ``bool``, ``int`` (32 bits) or
    ``long`` (64 bits). It is sent under its name, or under a letter.
    """

    name: str
    kind: str
    mandatory: bool
    sent_as: str


@dataclass(frozen=True)
class Request:
    """A request that a server knows."""

    code: int
    name: str
    page: str
    """Page of the documentation that describes the request."""
    fields: tuple[HeaderField, ...]
    is_strict: bool = False
    """Text that is no number is an error, as where Java decodes without reflection (``FastCodesHeader``)."""

    def read(self, command: Command) -> dict[str, str | int | bool | None]:
        """Return the header fields with their types, None for what is absent. Raises :class:`WrongRequest`.

        Text that is no number counts as absent, as with most of Java's decoders, and whatever is true is "true" in any
        case.
        """
        values: dict[str, str | int | bool | None] = {}
        fields = command.fields
        for sent_as, name, parsed, mandatory in self._plan:
            text = fields.get(sent_as)
            value = text if parsed is None or text is None else parsed(text)
            if value is None and (mandatory or (self.is_strict and text is not None)):
                raise WrongRequest(f"the request {self.name} needs the field {sent_as}")
            values[name] = value
        return values

    @cached_property
    def _plan(self) -> list[tuple[str, str, Callable[[str], int | bool | None] | None, bool]]:
        return [(field.sent_as, field.name, _PARSED[field.kind], field.mandatory) for field in self.fields]


_SIGNED = re.compile(r"[+-]\d+")


def _number(bits: int) -> Callable[[str], int | None]:
    """Parse as Java's ``Integer.parseInt`` and ``Long.parseLong`` do: digits of any script and a sign, in ``bits``."""
    end = 1 << (bits - 1)

    @lru_cache(maxsize=1024)  # a client sends the same few all the time
    def read(text: str) -> int | None:
        try:
            value = int(text) if text.isdecimal() or _SIGNED.fullmatch(text) else end
        except ValueError:  # more digits than Python reads
            return None
        return value if -end <= value < end else None

    return read


def _truth(text: str) -> bool:
    return text.lower() == "true"


_PARSED: dict[str, Callable[[str], int | bool | None] | None] = {
    "str": None,
    "int": _number(32),
    "long": _number(64),
    "bool": _truth,
}


def _row(code: int, name: str, page: str, fields: str = "", letters: str = "", *, is_strict: bool = False) -> Request:
    """``fields``: names with ``:int``, ``:long``, ``:bool`` behind what is no text, ``?`` behind what may be absent.
    With ``letters`` each is sent under the letter in its place.
    """
    read = []
    for number, word in enumerate(fields.split()):
        bare = word.removesuffix("?")
        field, _, kind = bare.partition(":")
        sent_as = letters[number] if letters else field
        read.append(HeaderField(field, kind or "str", not word.endswith("?"), sent_as))
    return Request(code, name, page, tuple(read), is_strict)


_BROKER = "brokerName brokerAddr clusterName"

NAME_SERVER = (
    _row(100, "PUT_KV_CONFIG", "docs/protocol/name-server.md#requests", "namespace key value"),
    _row(101, "GET_KV_CONFIG", "docs/protocol/name-server.md#requests", "namespace key"),
    _row(102, "DELETE_KV_CONFIG", "docs/protocol/name-server.md#requests", "namespace key"),
    _row(
        103,
        "REGISTER_BROKER",
        "docs/protocol/name-server.md#registration",
        f"{_BROKER} haServerAddr brokerId:long heartbeatTimeoutMillis:long? enableActingMaster:bool? compressed:bool? "
        "bodyCrc32:int?",
    ),
    _row(104, "UNREGISTER_BROKER", "docs/protocol/name-server.md#requests", f"{_BROKER} brokerId:long"),
    _row(105, "GET_ROUTEINFO_BY_TOPIC", "docs/protocol/name-server.md#route", "topic acceptStandardJsonOnly:bool?"),
    _row(106, "GET_BROKER_CLUSTER_INFO", "docs/protocol/name-server.md#cluster"),
    _row(205, "WIPE_WRITE_PERM_OF_BROKER", "docs/protocol/name-server.md#requests", "brokerName"),
    _row(206, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", "docs/protocol/name-server.md#requests"),
    _row(216, "DELETE_TOPIC_IN_NAMESRV", "docs/protocol/name-server.md#requests", "topic clusterName?"),
    _row(217, "REGISTER_TOPIC_IN_NAMESRV", "docs/protocol/name-server.md#requests", "topic"),
    _row(219, "GET_KVLIST_BY_NAMESPACE", "docs/protocol/name-server.md#requests", "namespace"),
    _row(224, "GET_TOPICS_BY_CLUSTER", "docs/protocol/name-server.md#requests", "cluster"),
    _row(304, "GET_SYSTEM_TOPIC_LIST_FROM_NS", "docs/protocol/name-server.md#requests"),
    _row(311, "GET_UNIT_TOPIC_LIST", "docs/protocol/name-server.md#requests"),
    _row(312, "GET_HAS_UNIT_SUB_TOPIC_LIST", "docs/protocol/name-server.md#requests"),
    _row(313, "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", "docs/protocol/name-server.md#requests"),
    _row(318, "UPDATE_NAMESRV_CONFIG", "docs/protocol/name-server.md#requests"),
    _row(319, "GET_NAMESRV_CONFIG", "docs/protocol/name-server.md#requests"),
    _row(322, "QUERY_DATA_VERSION", "docs/protocol/name-server.md#requests", f"{_BROKER} brokerId:long"),
    _row(327, "ADD_WRITE_PERM_OF_BROKER", "docs/protocol/name-server.md#requests", "brokerName"),
    _row(901, "GET_BROKER_MEMBER_GROUP", "docs/protocol/name-server.md#requests", "clusterName brokerName"),
    _row(
        904,
        "BROKER_HEARTBEAT",
        "docs/protocol/name-server.md#requests",
        f"{_BROKER} brokerId:long? epoch:int? maxOffset:long? confirmOffset:long? heartbeatTimeoutMills:long? "
        "electionPriority:int?",
    ),
)
"""What a name server answers."""


_LONG_SEND = (
    "producerGroup? topic defaultTopic? defaultTopicQueueNums:int? queueId:int sysFlag:int bornTimestamp:long flag:int "
    "properties? reconsumeTimes:int? unitMode:bool? maxReconsumeTimes:int? batch:bool?"
)
_LETTERS = "abcdefghijklm"
SHORT_NAMES = {
    letter: word.removesuffix("?").partition(":")[0] for letter, word in zip(_LETTERS, _LONG_SEND.split(), strict=True)
}
"""The letters of SEND_MESSAGE_V2's header, and the fields that they stand for (docs/protocol/broker.md#send)."""
_PULL = (
    "consumerGroup topic queueId:int queueOffset:long maxMsgNums:int sysFlag:int commitOffset:long? "
    "suspendTimeoutMillis:long? subscription? subVersion:long? expressionType? maxMsgBytes:int?"
)

_PASSED_ON = (
    _row(
        307,
        "GET_CONSUMER_RUNNING_INFO",
        "docs/protocol/broker.md#calls-to-consumers",
        "consumerGroup clientId? jstackEnable:bool?",
    ),
    _row(
        309,
        "CONSUME_MESSAGE_DIRECTLY",
        "docs/protocol/broker.md#calls-to-consumers",
        "consumerGroup clientId? msgId? brokerName?",
    ),
)
"""What a broker is asked for a client, and asks of that client."""

_LOOK = "consumerGroup topic queueId:int?"
_POPPED = "consumerGroup topic queueId:int offset:long extraInfo"
POP_FAMILY = (
    _row(400, "QUERY_ASSIGNMENT", "docs/protocol/pop.md#assignment"),
    _row(401, "SET_MESSAGE_REQUEST_MODE", "docs/protocol/pop.md#assignment"),
    _row(
        200050,
        "POP_MESSAGE",
        "docs/protocol/pop.md#pop-message",
        f"{_LOOK} maxMsgNums:int? invisibleTime:long? pollTime:long? bornTime:long? initMode:int? expType? exp? "
        "order:bool? attemptId?",
    ),
    _row(200051, "ACK_MESSAGE", "docs/protocol/pop.md#ack", _POPPED),
    _row(200052, "PEEK_MESSAGE", "docs/protocol/pop.md#notification", f"{_LOOK} maxMsgNums:int?"),
    _row(200053, "CHANGE_MESSAGE_INVISIBLETIME", "docs/protocol/pop.md#change", f"{_POPPED} invisibleTime:long"),
    _row(
        200054,
        "NOTIFICATION",
        "docs/protocol/pop.md#notification",
        f"{_LOOK} pollTime:long? bornTime:long? order:bool? attemptId?",
    ),
    _row(200055, "POLLING_INFO", "docs/protocol/pop.md#notification", _LOOK),
    _row(200056, "POP_ROLLBACK", "docs/protocol/pop.md#rocksdb"),
    _row(200151, "BATCH_ACK_MESSAGE", "docs/protocol/pop.md#ack"),
)
"""Requests of pop consumption. Numbers that may be absent are 0 then."""

SINCE_5 = (
    *POP_FAMILY,
    _row(60, "GET_TIMER_CHECK_POINT", "docs/protocol/behaviour.md#offsets"),
    _row(61, "GET_TIMER_METRICS", "docs/protocol/behaviour.md#offsets"),
    _row(402, "GET_ALL_MESSAGE_REQUEST_MODE", "docs/protocol/behaviour.md#offsets"),
    _row(18, "UPDATE_AND_CREATE_TOPIC_LIST", "docs/protocol/mqadmin.md"),
    _row(225, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", "docs/protocol/mqadmin.md"),
    _row(343, "QUERY_TOPICS_BY_CONSUMER", "docs/protocol/broker.md#admin", "group"),
    _row(345, "QUERY_SUBSCRIPTION_BY_CONSUMER", "docs/protocol/broker.md#admin", "group topic"),
    _row(351, "GET_TOPIC_CONFIG", "docs/protocol/broker.md#admin", "topic"),
    _row(352, "GET_SUBSCRIPTIONGROUP_CONFIG", "docs/protocol/broker.md#admin", "group"),
    _row(361, "LITE_PULL_MESSAGE", "docs/protocol/broker.md#pull", _PULL, is_strict=True),
    _row(370, "RECALL_MESSAGE", "docs/protocol/broker.md#send", "producerGroup? topic? recallHandle?"),
    _row(354, "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", "docs/protocol/mqadmin.md", "topic? checkStoreTime:long?"),
    _row(2001, "UPDATE_COLD_DATA_FLOW_CTR_CONFIG", "docs/protocol/mqadmin.md"),
    _row(2002, "REMOVE_COLD_DATA_FLOW_CTR_CONFIG", "docs/protocol/mqadmin.md"),
    _row(2003, "GET_COLD_DATA_FLOW_CTR_INFO", "docs/protocol/mqadmin.md"),
    _row(2004, "SET_COMMITLOG_READ_MODE", "docs/protocol/mqadmin.md"),
    _row(3001, "AUTH_CREATE_USER", "docs/protocol/access.md#users", "username?"),
    _row(3002, "AUTH_UPDATE_USER", "docs/protocol/access.md#users", "username?"),
    _row(3003, "AUTH_DELETE_USER", "docs/protocol/access.md#users", "username?"),
    _row(3004, "AUTH_GET_USER", "docs/protocol/access.md#users", "username?"),
    _row(3005, "AUTH_LIST_USER", "docs/protocol/access.md#users", "filter?"),
    _row(3006, "AUTH_CREATE_ACL", "docs/protocol/access.md#users", "subject?"),
    _row(3007, "AUTH_UPDATE_ACL", "docs/protocol/access.md#users", "subject?"),
    _row(3008, "AUTH_DELETE_ACL", "docs/protocol/access.md#users", "subject? policyType? resource?"),
    _row(3009, "AUTH_GET_ACL", "docs/protocol/access.md#users", "subject?"),
    _row(3010, "AUTH_LIST_ACL", "docs/protocol/access.md#users", "subjectFilter? resourceFilter?"),
)
"""Requests that no broker of 4.9 knows."""

UNTIL_4_9 = (
    _row(
        50,
        "UPDATE_AND_CREATE_ACL_CONFIG",
        "docs/protocol/access.md#plain-acl",
        "accessKey? secretKey? whiteRemoteAddress? defaultTopicPerm? defaultGroupPerm? topicPerms? groupPerms? "
        "admin:bool?",
    ),
    _row(51, "DELETE_ACL_CONFIG", "docs/protocol/access.md#plain-acl", "accessKey?"),
    _row(52, "GET_BROKER_CLUSTER_ACL_INFO", "docs/protocol/access.md#plain-acl"),
    _row(
        53,
        "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
        "docs/protocol/access.md#plain-acl",
        "globalWhiteAddrs? aclFileFullPath?",
    ),
    _row(54, "GET_BROKER_CLUSTER_ACL_CONFIG", "docs/protocol/access.md#plain-acl"),
)
"""Requests that no broker of 5.x knows."""

MORE_ADMIN = (
    _row(306, "CLEAN_EXPIRED_CONSUMEQUEUE", "docs/protocol/mqadmin.md"),
    _row(315, "VIEW_BROKER_STATS_DATA", "docs/protocol/mqadmin.md", "statsName? statsKey?"),
    _row(316, "CLEAN_UNUSED_TOPIC", "docs/protocol/mqadmin.md"),
    _row(317, "GET_BROKER_CONSUME_STATS", "docs/protocol/mqadmin.md", "isOrder:bool?"),
    _row(329, "DELETE_EXPIRED_COMMITLOG", "docs/protocol/mqadmin.md"),
    _row(907, "GET_BROKER_HA_STATUS", "docs/protocol/mqadmin.md"),
)
"""Requests that only administrators send."""

BROKER = (
    _row(10, "SEND_MESSAGE", "docs/protocol/broker.md#send", _LONG_SEND),
    _row(11, "PULL_MESSAGE", "docs/protocol/broker.md#pull", _PULL, is_strict=True),
    _row(
        12,
        "QUERY_MESSAGE",
        "docs/protocol/broker.md#offsets",
        "topic key maxNum:int beginTimestamp:long endTimestamp:long _UNIQUE_KEY_QUERY:bool? indexType? lastKey?",
    ),
    _row(
        14,
        "QUERY_CONSUMER_OFFSET",
        "docs/protocol/broker.md#offsets",
        "consumerGroup topic queueId:int setZeroIfNotFound:bool?",
    ),
    _row(
        15,
        "UPDATE_CONSUMER_OFFSET",
        "docs/protocol/broker.md#offsets",
        "consumerGroup? topic queueId:int? commitOffset:long?",
    ),
    _row(
        17,
        "UPDATE_AND_CREATE_TOPIC",
        "docs/protocol/broker.md#admin",
        "topic defaultTopic? readQueueNums:int writeQueueNums:int perm:int topicFilterType? topicSysFlag:int? "
        "order:bool? attributes?",
    ),
    _row(21, "GET_ALL_TOPIC_CONFIG", "docs/protocol/broker.md#admin"),
    _row(25, "UPDATE_BROKER_CONFIG", "docs/protocol/broker.md#admin"),
    _row(26, "GET_BROKER_CONFIG", "docs/protocol/broker.md#admin"),
    _row(28, "GET_BROKER_RUNTIME_INFO", "docs/protocol/broker.md#admin"),
    _row(
        29,
        "SEARCH_OFFSET_BY_TIMESTAMP",
        "docs/protocol/broker.md#offsets",
        "topic queueId:int timestamp:long boundaryType?",
    ),
    _row(30, "GET_MAX_OFFSET", "docs/protocol/broker.md#offsets", "topic queueId:int committed:bool?"),
    _row(31, "GET_MIN_OFFSET", "docs/protocol/broker.md#offsets", "topic queueId:int"),
    _row(32, "GET_EARLIEST_MSG_STORETIME", "docs/protocol/broker.md#offsets", "topic queueId:int"),
    _row(33, "VIEW_MESSAGE_BY_ID", "docs/protocol/broker.md#offsets", "offset:long topic?"),
    _row(34, "HEART_BEAT", "docs/protocol/broker.md#clients"),
    _row(35, "UNREGISTER_CLIENT", "docs/protocol/broker.md#clients", "clientID? producerGroup? consumerGroup?"),
    _row(
        36,
        "CONSUMER_SEND_MSG_BACK",
        "docs/protocol/broker.md#send-back",
        "offset:long group delayLevel:int originMsgId? originTopic? unitMode:bool? maxReconsumeTimes:int?",
    ),
    _row(
        37,
        "END_TRANSACTION",
        "docs/protocol/broker.md#transactions",
        "producerGroup tranStateTableOffset:long commitLogOffset:long commitOrRollback:int fromTransactionCheck:bool? "
        "msgId? transactionId? topic?",
    ),
    _row(38, "GET_CONSUMER_LIST_BY_GROUP", "docs/protocol/broker.md#clients", "consumerGroup"),
    _row(41, "LOCK_BATCH_MQ", "docs/protocol/broker.md#locks"),
    _row(42, "UNLOCK_BATCH_MQ", "docs/protocol/broker.md#locks"),
    _row(43, "GET_ALL_CONSUMER_OFFSET", "docs/protocol/broker.md#admin"),
    _row(45, "GET_ALL_DELAY_OFFSET", "docs/protocol/broker.md#admin"),
    _row(46, "CHECK_CLIENT_CONFIG", "docs/protocol/broker.md#clients"),
    _row(200, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "docs/protocol/broker.md#admin"),
    _row(201, "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", "docs/protocol/broker.md#admin"),
    _row(202, "GET_TOPIC_STATS_INFO", "docs/protocol/broker.md#admin", "topic"),
    _row(203, "GET_CONSUMER_CONNECTION_LIST", "docs/protocol/broker.md#admin", "consumerGroup"),
    _row(204, "GET_PRODUCER_CONNECTION_LIST", "docs/protocol/broker.md#admin", "producerGroup"),
    _row(207, "DELETE_SUBSCRIPTIONGROUP", "docs/protocol/broker.md#admin", "groupName cleanOffset:bool?"),
    _row(208, "GET_CONSUME_STATS", "docs/protocol/broker.md#admin", "consumerGroup topic?"),
    _row(215, "DELETE_TOPIC_IN_BROKER", "docs/protocol/broker.md#admin", "topic?"),
    _row(
        222,
        "INVOKE_BROKER_TO_RESET_OFFSET",
        "docs/protocol/broker.md#admin",
        "topic group? timestamp:long? isForce:bool? offset:long? queueId:int?",
    ),
    _row(
        223,
        "INVOKE_BROKER_TO_GET_CONSUMER_STATUS",
        "docs/protocol/broker.md#calls-to-consumers",
        "topic group clientAddr?",
    ),
    _row(300, "QUERY_TOPIC_CONSUME_BY_WHO", "docs/protocol/broker.md#admin", "topic"),
    _row(305, "GET_SYSTEM_TOPIC_LIST_FROM_BROKER", "docs/protocol/broker.md#admin"),
    _row(310, "SEND_MESSAGE_V2", "docs/protocol/broker.md#send", _LONG_SEND, _LETTERS, is_strict=True),
    _row(320, "SEND_BATCH_MESSAGE", "docs/protocol/broker.md#send", _LONG_SEND, _LETTERS, is_strict=True),
    _row(
        321,
        "QUERY_CONSUME_QUEUE",
        "docs/protocol/broker.md#admin",
        "topic queueId:int? index:long? count:int? consumerGroup?",
    ),
    _row(324, "SEND_REPLY_MESSAGE", "docs/protocol/broker.md#send", _LONG_SEND),
    _row(325, "SEND_REPLY_MESSAGE_V2", "docs/protocol/broker.md#send", _LONG_SEND, _LETTERS, is_strict=True),
    _row(328, "GET_ALL_PRODUCER_INFO", "docs/protocol/broker.md#admin"),
    _row(314, "CLONE_GROUP_OFFSET", "docs/protocol/broker.md#admin", "srcGroup destGroup topic? offline:bool?"),
    *_PASSED_ON,
    *SINCE_5,
    *UNTIL_4_9,
    *MORE_ADMIN,
)
"""What a broker answers."""

TO_CLIENTS = (
    _row(39, "CHECK_TRANSACTION_STATE", "docs/protocol/broker.md#transactions"),
    _row(40, "NOTIFY_CONSUMER_IDS_CHANGED", "docs/protocol/broker.md#calls-to-consumers", "consumerGroup"),
    _row(
        220,
        "RESET_CONSUMER_CLIENT_OFFSET",
        "docs/protocol/broker.md#calls-to-consumers",
        "topic group timestamp:long isForce:bool",
    ),
    _row(
        221, "GET_CONSUMER_STATUS_FROM_CLIENT", "docs/protocol/broker.md#calls-to-consumers", "topic group clientAddr?"
    ),
    *_PASSED_ON,
    _row(326, "PUSH_REPLY_MESSAGE_TO_CLIENT", "docs/protocol/broker.md#send"),
)
"""What a broker asks of clients."""


def by_code(requests: tuple[Request, ...]) -> dict[int, Request]:
    """Index the requests by their codes."""
    return {request.code: request for request in requests}


_REQUEST_NAMES = {code: request.name for table in (NAME_SERVER, BROKER) for code, request in by_code(table).items()}


def request_name(code: int) -> str:
    """RocketMQ's name of a request to a server; its number where it has none."""
    return _REQUEST_NAMES.get(code, str(code))


STORE_RELEASE = "storeRelease"
"""A runtime figure of our own brokers: the release whose rules the store is written by."""
