"""The one table of requests: number, RocketMQ's name, header fields with their types, and the page that describes it.

The checks of mandatory fields and the names in responses and logs come from it. Java:
``RequestCode``, ``ResponseCode``, and a header class for each request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache

from engine.releases import NAMES, Release, rules_of
from engine.remoting.frame import Command


class RequestCode(IntEnum):
    """Codes of requests, with RocketMQ's names."""

    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    QUERY_MESSAGE = 12
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    UPDATE_AND_CREATE_TOPIC = 17
    UPDATE_AND_CREATE_TOPIC_LIST = 18
    GET_ALL_TOPIC_CONFIG = 21
    UPDATE_BROKER_CONFIG = 25
    GET_BROKER_CONFIG = 26
    GET_BROKER_RUNTIME_INFO = 28
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_EARLIEST_MSG_STORETIME = 32
    VIEW_MESSAGE_BY_ID = 33
    HEART_BEAT = 34
    UNREGISTER_CLIENT = 35
    CONSUMER_SEND_MSG_BACK = 36
    END_TRANSACTION = 37
    GET_CONSUMER_LIST_BY_GROUP = 38
    CHECK_TRANSACTION_STATE = 39
    NOTIFY_CONSUMER_IDS_CHANGED = 40
    LOCK_BATCH_MQ = 41
    UNLOCK_BATCH_MQ = 42
    GET_ALL_CONSUMER_OFFSET = 43
    GET_ALL_DELAY_OFFSET = 45
    CHECK_CLIENT_CONFIG = 46
    UPDATE_AND_CREATE_ACL_CONFIG = 50
    DELETE_ACL_CONFIG = 51
    GET_BROKER_CLUSTER_ACL_INFO = 52
    UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = 53
    GET_BROKER_CLUSTER_ACL_CONFIG = 54
    GET_TIMER_CHECK_POINT = 60
    GET_TIMER_METRICS = 61
    PUT_KV_CONFIG = 100
    GET_KV_CONFIG = 101
    DELETE_KV_CONFIG = 102
    REGISTER_BROKER = 103
    UNREGISTER_BROKER = 104
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_PRODUCER_CONNECTION_LIST = 204
    WIPE_WRITE_PERM_OF_BROKER = 205
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    DELETE_SUBSCRIPTIONGROUP = 207
    GET_CONSUME_STATS = 208
    DELETE_TOPIC_IN_BROKER = 215
    DELETE_TOPIC_IN_NAMESRV = 216
    REGISTER_TOPIC_IN_NAMESRV = 217
    GET_KVLIST_BY_NAMESPACE = 219
    RESET_CONSUMER_CLIENT_OFFSET = 220
    GET_CONSUMER_STATUS_FROM_CLIENT = 221
    INVOKE_BROKER_TO_RESET_OFFSET = 222
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223
    GET_TOPICS_BY_CLUSTER = 224
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = 225
    QUERY_TOPIC_CONSUME_BY_WHO = 300
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305
    CLEAN_EXPIRED_CONSUMEQUEUE = 306
    GET_CONSUMER_RUNNING_INFO = 307
    CONSUME_MESSAGE_DIRECTLY = 309
    SEND_MESSAGE_V2 = 310
    GET_UNIT_TOPIC_LIST = 311
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313
    CLONE_GROUP_OFFSET = 314
    VIEW_BROKER_STATS_DATA = 315
    CLEAN_UNUSED_TOPIC = 316
    GET_BROKER_CONSUME_STATS = 317
    UPDATE_NAMESRV_CONFIG = 318
    GET_NAMESRV_CONFIG = 319
    SEND_BATCH_MESSAGE = 320
    QUERY_CONSUME_QUEUE = 321
    QUERY_DATA_VERSION = 322
    SEND_REPLY_MESSAGE = 324
    SEND_REPLY_MESSAGE_V2 = 325
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326
    ADD_WRITE_PERM_OF_BROKER = 327
    GET_ALL_PRODUCER_INFO = 328
    DELETE_EXPIRED_COMMITLOG = 329
    QUERY_TOPICS_BY_CONSUMER = 343
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345
    GET_TOPIC_CONFIG = 351
    GET_SUBSCRIPTIONGROUP_CONFIG = 352
    CHECK_ROCKSDB_CQ_WRITE_PROGRESS = 354
    LITE_PULL_MESSAGE = 361
    RECALL_MESSAGE = 370
    QUERY_ASSIGNMENT = 400
    SET_MESSAGE_REQUEST_MODE = 401
    GET_ALL_MESSAGE_REQUEST_MODE = 402
    UPDATE_AND_CREATE_STATIC_TOPIC = 513
    GET_BROKER_MEMBER_GROUP = 901
    BROKER_HEARTBEAT = 904
    GET_BROKER_HA_STATUS = 907
    GET_BROKER_EPOCH_CACHE = 1007
    UPDATE_COLD_DATA_FLOW_CTR_CONFIG = 2001
    REMOVE_COLD_DATA_FLOW_CTR_CONFIG = 2002
    GET_COLD_DATA_FLOW_CTR_INFO = 2003
    SET_COMMITLOG_READ_MODE = 2004
    AUTH_CREATE_USER = 3001
    AUTH_UPDATE_USER = 3002
    AUTH_DELETE_USER = 3003
    AUTH_GET_USER = 3004
    AUTH_LIST_USER = 3005
    AUTH_CREATE_ACL = 3006
    AUTH_UPDATE_ACL = 3007
    AUTH_DELETE_ACL = 3008
    AUTH_GET_ACL = 3009
    AUTH_LIST_ACL = 3010
    DELETE_TOPIC_IN_BROKER_LIST = 5002
    DELETE_SUBSCRIPTIONGROUP_LIST = 5003
    POP_MESSAGE = 200050
    ACK_MESSAGE = 200051
    PEEK_MESSAGE = 200052
    CHANGE_MESSAGE_INVISIBLETIME = 200053
    NOTIFICATION = 200054
    POLLING_INFO = 200055
    POP_ROLLBACK = 200056
    POP_LITE_MESSAGE = 200070
    LITE_SUBSCRIPTION_CTL = 200071
    NOTIFY_UNSUBSCRIBE_LITE = 200073
    GET_BROKER_LITE_INFO = 200074
    GET_PARENT_TOPIC_INFO = 200075
    GET_LITE_TOPIC_INFO = 200076
    GET_LITE_CLIENT_INFO = 200077
    GET_LITE_GROUP_INFO = 200078
    TRIGGER_LITE_DISPATCH = 200079
    BATCH_ACK_MESSAGE = 200151


class ResponseCode(IntEnum):
    """Codes of answers, with RocketMQ's names (docs/protocol/frames.md#response-codes).

    RocketMQ uses 209 and 210 twice: for pop consumption and for accounts of 4.9.
    """

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
    NO_BUYER_ID = 204
    NOT_IN_CURRENT_UNIT = 205
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    NO_MESSAGE = 208
    POLLING_FULL = 209
    POLLING_TIMEOUT = 210
    UPDATE_AND_CREATE_ACL_CONFIG_FAILED = 209
    DELETE_ACL_CONFIG_FAILED = 210
    UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED = 211
    FLOW_CONTROL = 215
    NOT_LEADER_FOR_QUEUE = 501
    ILLEGAL_OPERATION = 604
    GO_AWAY = 1500


def see(release: Release) -> str:
    """Return the link to further reading that RocketMQ's brokers add to some refusals."""
    return f"\nSee {rules_of(release).faq} for further details."


def invalid(release: Release) -> ResponseCode:
    """Return the response code for an invalid request. Releases before 5.x have no code of their own for it."""
    return ResponseCode.SYSTEM_ERROR if rules_of(release).major < 5 else ResponseCode.INVALID_PARAMETER


NOT_SET = "not set any response code"
"""Remark of responses for which RocketMQ sets none."""


class Refused(Exception):
    """The request is refused with a response of this code, remark and header fields."""

    def __init__(self, code: int, remark: str, fields: dict[str, str] | None = None) -> None:
        super().__init__(remark)
        self.code = code
        self.fields = fields or {}


class WrongRequest(Refused):
    """A request lacks a mandatory field, or has an invalid one. The remark is the message."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


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
    """A request that a server supports."""

    code: RequestCode
    page: str
    """Page of the documentation that describes the request."""
    fields: tuple[HeaderField, ...]
    is_strict: bool = False
    """True: text that is not a number is an error, as in Java's headers without reflection (``FastCodesHeader``)."""

    def read(self, command: Command) -> dict[str, str | int | bool | None]:
        """Return the header fields with their types, None for what is absent. Raises :class:`WrongRequest`.

        Text that is not a number counts as absent, as in most of Java's decoders. Booleans are true if their text is
        "true", in upper or lower case.
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

    @property
    def name(self) -> str:
        return self.code.name

    @cached_property
    def _plan(self) -> list[tuple[str, str, Callable[[str], int | bool | None] | None, bool]]:
        return [(field.sent_as, field.name, _PARSED[field.kind], field.mandatory) for field in self.fields]


_SIGNED = re.compile(r"[+-]\d+")


def _number(bits: int) -> Callable[[str], int | None]:
    """Return a parser like Java's ``Integer.parseInt`` and ``Long.parseLong``: digits of any script and a sign."""
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


def _row(code: RequestCode, page: str, fields: str = "", letters: str = "", *, is_strict: bool = False) -> Request:
    """Return a row.

    ``fields`` are names, followed by ``:int``, ``:long`` or ``:bool`` if not text, and ``?`` if optional. With
    ``letters`` each field is sent under the letter at its position.
    """
    read = []
    for number, word in enumerate(fields.split()):
        bare = word.removesuffix("?")
        field, _, kind = bare.partition(":")
        sent_as = letters[number] if letters else field
        read.append(HeaderField(field, kind or "str", not word.endswith("?"), sent_as))
    return Request(code, page, tuple(read), is_strict)


_BROKER = "brokerName brokerAddr clusterName"

NAME_SERVER = (
    _row(RequestCode.PUT_KV_CONFIG, "docs/protocol/name-server.md#requests", "namespace key value"),
    _row(RequestCode.GET_KV_CONFIG, "docs/protocol/name-server.md#requests", "namespace key"),
    _row(RequestCode.DELETE_KV_CONFIG, "docs/protocol/name-server.md#requests", "namespace key"),
    _row(
        RequestCode.REGISTER_BROKER,
        "docs/protocol/name-server.md#registration",
        f"{_BROKER} haServerAddr brokerId:long heartbeatTimeoutMillis:long? enableActingMaster:bool? compressed:bool? "
        "bodyCrc32:int?",
    ),
    _row(RequestCode.UNREGISTER_BROKER, "docs/protocol/name-server.md#requests", f"{_BROKER} brokerId:long"),
    _row(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, "docs/protocol/name-server.md#route", "topic acceptStandardJsonOnly:bool?"
    ),
    _row(RequestCode.GET_BROKER_CLUSTER_INFO, "docs/protocol/name-server.md#cluster"),
    _row(RequestCode.WIPE_WRITE_PERM_OF_BROKER, "docs/protocol/name-server.md#requests", "brokerName"),
    _row(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.DELETE_TOPIC_IN_NAMESRV, "docs/protocol/name-server.md#requests", "topic clusterName?"),
    _row(RequestCode.REGISTER_TOPIC_IN_NAMESRV, "docs/protocol/name-server.md#requests", "topic"),
    _row(RequestCode.GET_KVLIST_BY_NAMESPACE, "docs/protocol/name-server.md#requests", "namespace"),
    _row(RequestCode.GET_TOPICS_BY_CLUSTER, "docs/protocol/name-server.md#requests", "cluster"),
    _row(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.GET_UNIT_TOPIC_LIST, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.UPDATE_NAMESRV_CONFIG, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.GET_NAMESRV_CONFIG, "docs/protocol/name-server.md#requests"),
    _row(RequestCode.QUERY_DATA_VERSION, "docs/protocol/name-server.md#requests", f"{_BROKER} brokerId:long"),
    _row(RequestCode.ADD_WRITE_PERM_OF_BROKER, "docs/protocol/name-server.md#requests", "brokerName"),
    _row(RequestCode.GET_BROKER_MEMBER_GROUP, "docs/protocol/name-server.md#requests", "clusterName brokerName"),
    _row(
        RequestCode.BROKER_HEARTBEAT,
        "docs/protocol/name-server.md#requests",
        f"{_BROKER} brokerId:long? epoch:int? maxOffset:long? confirmOffset:long? heartbeatTimeoutMills:long? "
        "electionPriority:int?",
    ),
)
"""Requests that a name server answers."""


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
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        "docs/protocol/broker.md#calls-to-consumers",
        "consumerGroup clientId? jstackEnable:bool?",
    ),
    _row(
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        "docs/protocol/broker.md#calls-to-consumers",
        "consumerGroup clientId? msgId? brokerName?",
    ),
)
"""Requests that a broker passes on to a client."""

_QUEUE_OF_GROUP = "consumerGroup topic queueId:int?"
_POPPED = "consumerGroup topic queueId:int offset:long extraInfo"
POP_FAMILY = (
    _row(RequestCode.QUERY_ASSIGNMENT, "docs/protocol/pop.md#assignment"),
    _row(RequestCode.SET_MESSAGE_REQUEST_MODE, "docs/protocol/pop.md#assignment"),
    _row(
        RequestCode.POP_MESSAGE,
        "docs/protocol/pop.md#pop-message",
        f"{_QUEUE_OF_GROUP} maxMsgNums:int? invisibleTime:long? pollTime:long? bornTime:long? initMode:int? "
        "expType? exp? order:bool? attemptId?",
    ),
    _row(RequestCode.ACK_MESSAGE, "docs/protocol/pop.md#ack", f"{_POPPED} liteTopic?"),
    _row(RequestCode.PEEK_MESSAGE, "docs/protocol/pop.md#notification", f"{_QUEUE_OF_GROUP} maxMsgNums:int?"),
    _row(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        "docs/protocol/pop.md#change",
        f"{_POPPED} invisibleTime:long liteTopic? suspend:bool?",
    ),
    _row(
        RequestCode.NOTIFICATION,
        "docs/protocol/pop.md#notification",
        f"{_QUEUE_OF_GROUP} pollTime:long? bornTime:long? order:bool? attemptId? isLiteConsumer:bool? clientId?",
    ),
    _row(RequestCode.POLLING_INFO, "docs/protocol/pop.md#notification", _QUEUE_OF_GROUP),
    _row(RequestCode.POP_ROLLBACK, "docs/protocol/pop.md#rocksdb"),
    _row(RequestCode.BATCH_ACK_MESSAGE, "docs/protocol/pop.md#ack"),
)
"""Requests of pop consumption. Absent optional numbers are 0."""

SINCE_5 = (
    *POP_FAMILY,
    _row(RequestCode.GET_TIMER_CHECK_POINT, "docs/protocol/behaviour.md#offsets"),
    _row(RequestCode.GET_TIMER_METRICS, "docs/protocol/behaviour.md#offsets"),
    _row(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, "docs/protocol/behaviour.md#offsets"),
    _row(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, "docs/protocol/mqadmin.md"),
    _row(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, "docs/protocol/mqadmin.md"),
    _row(RequestCode.QUERY_TOPICS_BY_CONSUMER, "docs/protocol/broker.md#admin", "group"),
    _row(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, "docs/protocol/broker.md#admin", "group topic"),
    _row(RequestCode.GET_TOPIC_CONFIG, "docs/protocol/broker.md#admin", "topic lo:bool?"),
    _row(
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
        "docs/protocol/static-topics.md#requests",
        "topic defaultTopic readQueueNums:int writeQueueNums:int perm:int topicFilterType topicSysFlag:int? "
        "order:bool attributes? force:bool?",
    ),
    _row(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, "docs/protocol/broker.md#admin", "group"),
    _row(RequestCode.LITE_PULL_MESSAGE, "docs/protocol/broker.md#pull", _PULL, is_strict=True),
    _row(RequestCode.RECALL_MESSAGE, "docs/protocol/broker.md#send", "producerGroup? topic? recallHandle?"),
    _row(RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, "docs/protocol/mqadmin.md", "topic? checkStoreTime:long?"),
    _row(RequestCode.GET_BROKER_EPOCH_CACHE, "docs/protocol/mqadmin.md"),
    _row(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, "docs/protocol/mqadmin.md"),
    _row(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, "docs/protocol/mqadmin.md"),
    _row(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, "docs/protocol/mqadmin.md"),
    _row(RequestCode.SET_COMMITLOG_READ_MODE, "docs/protocol/mqadmin.md"),
    _row(RequestCode.AUTH_CREATE_USER, "docs/protocol/access.md#users", "username?"),
    _row(RequestCode.AUTH_UPDATE_USER, "docs/protocol/access.md#users", "username?"),
    _row(RequestCode.AUTH_DELETE_USER, "docs/protocol/access.md#users", "username?"),
    _row(RequestCode.AUTH_GET_USER, "docs/protocol/access.md#users", "username?"),
    _row(RequestCode.AUTH_LIST_USER, "docs/protocol/access.md#users", "filter?"),
    _row(RequestCode.AUTH_CREATE_ACL, "docs/protocol/access.md#users", "subject?"),
    _row(RequestCode.AUTH_UPDATE_ACL, "docs/protocol/access.md#users", "subject?"),
    _row(RequestCode.AUTH_DELETE_ACL, "docs/protocol/access.md#users", "subject? policyType? resource?"),
    _row(RequestCode.AUTH_GET_ACL, "docs/protocol/access.md#users", "subject?"),
    _row(RequestCode.AUTH_LIST_ACL, "docs/protocol/access.md#users", "subjectFilter? resourceFilter?"),
)
"""Requests that no broker of 4.9 supports."""

UNTIL_4_9 = (
    _row(
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        "docs/protocol/access.md#plain-acl",
        "accessKey? secretKey? whiteRemoteAddress? defaultTopicPerm? defaultGroupPerm? topicPerms? groupPerms? "
        "admin:bool?",
    ),
    _row(RequestCode.DELETE_ACL_CONFIG, "docs/protocol/access.md#plain-acl", "accessKey?"),
    _row(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, "docs/protocol/access.md#plain-acl"),
    _row(
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        "docs/protocol/access.md#plain-acl",
        "globalWhiteAddrs? aclFileFullPath?",
    ),
    _row(RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, "docs/protocol/access.md#plain-acl"),
)
"""Requests that no broker of 5.x supports."""

SINCE_5_5 = (
    _row(RequestCode.DELETE_TOPIC_IN_BROKER_LIST, "docs/protocol/broker.md#admin"),
    _row(RequestCode.DELETE_SUBSCRIPTIONGROUP_LIST, "docs/protocol/broker.md#admin"),
    _row(
        RequestCode.POP_LITE_MESSAGE,
        "docs/protocol/broker.md#lite",
        "clientId consumerGroup topic maxMsgNum:int invisibleTime:long pollTime:long bornTime:long? attemptId?",
    ),
    _row(RequestCode.LITE_SUBSCRIPTION_CTL, "docs/protocol/broker.md#lite"),
    _row(RequestCode.GET_BROKER_LITE_INFO, "docs/protocol/broker.md#lite"),
    _row(RequestCode.GET_PARENT_TOPIC_INFO, "docs/protocol/broker.md#lite", "topic"),
    _row(RequestCode.GET_LITE_TOPIC_INFO, "docs/protocol/broker.md#lite", "parentTopic liteTopic"),
    _row(RequestCode.GET_LITE_CLIENT_INFO, "docs/protocol/broker.md#lite", "parentTopic group clientId maxCount:int?"),
    _row(RequestCode.GET_LITE_GROUP_INFO, "docs/protocol/broker.md#lite", "group liteTopic? topK:int?"),
    _row(RequestCode.TRIGGER_LITE_DISPATCH, "docs/protocol/broker.md#lite", "group clientId?"),
)
"""Requests that no broker before 5.5 supports."""

ADMIN_ONLY = (
    _row(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, "docs/protocol/mqadmin.md"),
    _row(RequestCode.VIEW_BROKER_STATS_DATA, "docs/protocol/mqadmin.md", "statsName? statsKey?"),
    _row(RequestCode.CLEAN_UNUSED_TOPIC, "docs/protocol/mqadmin.md"),
    _row(RequestCode.GET_BROKER_CONSUME_STATS, "docs/protocol/mqadmin.md", "isOrder:bool?"),
    _row(RequestCode.DELETE_EXPIRED_COMMITLOG, "docs/protocol/mqadmin.md"),
    _row(RequestCode.GET_BROKER_HA_STATUS, "docs/protocol/mqadmin.md"),
)
"""Requests that only administrators send."""

BROKER = (
    _row(RequestCode.SEND_MESSAGE, "docs/protocol/broker.md#send", _LONG_SEND),
    _row(RequestCode.PULL_MESSAGE, "docs/protocol/broker.md#pull", _PULL, is_strict=True),
    _row(
        RequestCode.QUERY_MESSAGE,
        "docs/protocol/broker.md#offsets",
        "topic key maxNum:int beginTimestamp:long endTimestamp:long _UNIQUE_KEY_QUERY:bool? indexType? lastKey?",
    ),
    _row(
        RequestCode.QUERY_CONSUMER_OFFSET,
        "docs/protocol/broker.md#offsets",
        "consumerGroup topic queueId:int setZeroIfNotFound:bool?",
    ),
    _row(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        "docs/protocol/broker.md#offsets",
        "consumerGroup? topic queueId:int? commitOffset:long?",
    ),
    _row(
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        "docs/protocol/broker.md#admin",
        "topic defaultTopic? readQueueNums:int writeQueueNums:int perm:int topicFilterType? topicSysFlag:int? "
        "order:bool? attributes?",
    ),
    _row(
        RequestCode.GET_ALL_TOPIC_CONFIG,
        "docs/protocol/broker.md#admin",
        "topicSeq:int? maxTopicNum:int? dataVersion?",
    ),
    _row(RequestCode.UPDATE_BROKER_CONFIG, "docs/protocol/broker.md#admin"),
    _row(RequestCode.GET_BROKER_CONFIG, "docs/protocol/broker.md#admin"),
    _row(RequestCode.GET_BROKER_RUNTIME_INFO, "docs/protocol/broker.md#admin"),
    _row(
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        "docs/protocol/broker.md#offsets",
        "topic queueId:int timestamp:long boundaryType?",
    ),
    _row(RequestCode.GET_MAX_OFFSET, "docs/protocol/broker.md#offsets", "topic queueId:int committed:bool?"),
    _row(RequestCode.GET_MIN_OFFSET, "docs/protocol/broker.md#offsets", "topic queueId:int"),
    _row(RequestCode.GET_EARLIEST_MSG_STORETIME, "docs/protocol/broker.md#offsets", "topic queueId:int"),
    _row(RequestCode.VIEW_MESSAGE_BY_ID, "docs/protocol/broker.md#offsets", "offset:long topic?"),
    _row(RequestCode.HEART_BEAT, "docs/protocol/broker.md#clients"),
    _row(RequestCode.UNREGISTER_CLIENT, "docs/protocol/broker.md#clients", "clientID? producerGroup? consumerGroup?"),
    _row(
        RequestCode.CONSUMER_SEND_MSG_BACK,
        "docs/protocol/broker.md#send-back",
        "offset:long group delayLevel:int originMsgId? originTopic? unitMode:bool? maxReconsumeTimes:int?",
    ),
    _row(
        RequestCode.END_TRANSACTION,
        "docs/protocol/broker.md#transactions",
        "producerGroup tranStateTableOffset:long commitLogOffset:long commitOrRollback:int fromTransactionCheck:bool? "
        "msgId? transactionId? topic?",
    ),
    _row(RequestCode.GET_CONSUMER_LIST_BY_GROUP, "docs/protocol/broker.md#clients", "consumerGroup"),
    _row(RequestCode.LOCK_BATCH_MQ, "docs/protocol/broker.md#locks"),
    _row(RequestCode.UNLOCK_BATCH_MQ, "docs/protocol/broker.md#locks"),
    _row(RequestCode.GET_ALL_CONSUMER_OFFSET, "docs/protocol/broker.md#admin"),
    _row(RequestCode.GET_ALL_DELAY_OFFSET, "docs/protocol/broker.md#admin"),
    _row(RequestCode.CHECK_CLIENT_CONFIG, "docs/protocol/broker.md#clients"),
    _row(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, "docs/protocol/broker.md#admin"),
    _row(
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        "docs/protocol/broker.md#admin",
        "groupSeq:int? maxGroupNum:int? dataVersion?",
    ),
    _row(RequestCode.GET_TOPIC_STATS_INFO, "docs/protocol/broker.md#admin", "topic"),
    _row(RequestCode.GET_CONSUMER_CONNECTION_LIST, "docs/protocol/broker.md#admin", "consumerGroup"),
    _row(RequestCode.GET_PRODUCER_CONNECTION_LIST, "docs/protocol/broker.md#admin", "producerGroup"),
    _row(RequestCode.DELETE_SUBSCRIPTIONGROUP, "docs/protocol/broker.md#admin", "groupName cleanOffset:bool?"),
    _row(RequestCode.GET_CONSUME_STATS, "docs/protocol/broker.md#admin", "consumerGroup topic?"),
    _row(RequestCode.DELETE_TOPIC_IN_BROKER, "docs/protocol/broker.md#admin", "topic?"),
    _row(
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        "docs/protocol/broker.md#admin",
        "topic group? timestamp:long? isForce:bool? offset:long? queueId:int?",
    ),
    _row(
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        "docs/protocol/broker.md#calls-to-consumers",
        "topic group clientAddr?",
    ),
    _row(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, "docs/protocol/broker.md#admin", "topic"),
    _row(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, "docs/protocol/broker.md#admin"),
    _row(RequestCode.SEND_MESSAGE_V2, "docs/protocol/broker.md#send", _LONG_SEND, _LETTERS, is_strict=True),
    _row(RequestCode.SEND_BATCH_MESSAGE, "docs/protocol/broker.md#send", _LONG_SEND, _LETTERS, is_strict=True),
    _row(
        RequestCode.QUERY_CONSUME_QUEUE,
        "docs/protocol/broker.md#admin",
        "topic queueId:int? index:long? count:int? consumerGroup?",
    ),
    _row(RequestCode.SEND_REPLY_MESSAGE, "docs/protocol/broker.md#send", _LONG_SEND),
    _row(RequestCode.SEND_REPLY_MESSAGE_V2, "docs/protocol/broker.md#send", _LONG_SEND, _LETTERS, is_strict=True),
    _row(RequestCode.GET_ALL_PRODUCER_INFO, "docs/protocol/broker.md#admin"),
    _row(RequestCode.CLONE_GROUP_OFFSET, "docs/protocol/broker.md#admin", "srcGroup destGroup topic? offline:bool?"),
    *_PASSED_ON,
    *SINCE_5,
    *UNTIL_4_9,
    *SINCE_5_5,
    *ADMIN_ONLY,
)
"""Requests that a broker answers."""

TO_CLIENTS = (
    _row(RequestCode.CHECK_TRANSACTION_STATE, "docs/protocol/broker.md#transactions"),
    _row(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, "docs/protocol/broker.md#calls-to-consumers", "consumerGroup"),
    _row(
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        "docs/protocol/broker.md#calls-to-consumers",
        "topic group timestamp:long isForce:bool",
    ),
    _row(
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        "docs/protocol/broker.md#calls-to-consumers",
        "topic group clientAddr?",
    ),
    *_PASSED_ON,
    _row(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, "docs/protocol/broker.md#send"),
    _row(RequestCode.NOTIFY_UNSUBSCRIBE_LITE, "docs/protocol/broker.md#lite", "clientId consumerGroup liteTopic"),
)
"""Requests that a broker sends to clients."""


def unknown_requests(release: Release) -> frozenset[int]:
    """Return the codes of requests in the tables that a broker of ``release`` does not support."""
    major, since_5_5 = rules_of(release).major, NAMES.index(release) >= NAMES.index("5.5")
    unknown = (UNTIL_4_9 if major >= 5 else SINCE_5) + (() if since_5_5 else SINCE_5_5)
    return frozenset(request.code for request in unknown)


def by_code(requests: tuple[Request, ...]) -> dict[int, Request]:
    """Index the requests by their codes."""
    return {request.code: request for request in requests}


_REQUEST_NAMES = {code.value: code.name for code in RequestCode}
_RESPONSE_NAMES = {code.value: code.name for code in ResponseCode}


def request_name(code: int) -> str:
    """Return RocketMQ's name of a request, or its number if it has none."""
    return _REQUEST_NAMES.get(code, str(code))


def answer_name(code: int) -> str:
    """Return RocketMQ's name of a response code, or its number if it has none."""
    return _RESPONSE_NAMES.get(code, str(code))


STORE_RELEASE = "storeRelease"
"""Key of the runtime info of Storescope's brokers: the release whose rules the store is written by."""
