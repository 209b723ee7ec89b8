"""The one table of requests: number, RocketMQ's name, header fields with their types, and the section that tells of it.

From it come the checks of what a request must bring, the words of answers and of the log. Java: ``RequestCode``,
``ResponseCode``, and a header class for each request.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from engine.remoting.frame import Command


class Answer(IntEnum):
    """Codes of answers (protocol 1.6)."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    QUERY_NOT_FOUND = 22


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A field of a request's header: ``kind`` is what its text must parse as (``str``, ``int`` or ``bool``)."""

    name: str
    kind: str
    mandatory: bool


@dataclass(frozen=True, slots=True)
class Request:
    """A request that a server knows."""

    code: int
    name: str
    section: str
    fields: tuple[HeaderField, ...]

    def read(self, command: Command) -> dict[str, str | int | bool | None]:
        """The header fields with their types, None for what is absent. Raises :class:`WrongRequest`.

        Text that is no number counts as absent, as with Java's decoders, and whatever is true is "true" in any case.
        """
        found: dict[str, str | int | bool | None] = {}
        for one in self.fields:
            text = command.fields.get(one.name)
            value = None if text is None else _parsed(text, one.kind)
            if value is None and one.mandatory:
                raise WrongRequest(f"the request {self.name} needs the field {one.name}")
            found[one.name] = value
        return found


class WrongRequest(Exception):
    """A request lacks what it must bring, or brings what cannot be read; the sentence is its answer."""


def _parsed(text: str, kind: str) -> str | int | bool | None:
    if kind == "str":
        return text
    if kind == "bool":
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        return None


def _row(code: int, name: str, section: str, fields: str = "") -> Request:
    """``fields``: names with ``:int`` or ``:bool`` behind what is no text, and ``?`` behind what may be absent."""
    read = []
    for word in fields.split():
        bare = word.removesuffix("?")
        field, _, kind = bare.partition(":")
        read.append(HeaderField(field, kind or "str", not word.endswith("?")))
    return Request(code, name, section, tuple(read))


_BROKER = "brokerName brokerAddr clusterName"

NAME_SERVER = (
    _row(100, "PUT_KV_CONFIG", "2.1", "namespace key value"),
    _row(101, "GET_KV_CONFIG", "2.1", "namespace key"),
    _row(102, "DELETE_KV_CONFIG", "2.1", "namespace key"),
    _row(
        103, "REGISTER_BROKER", "2.2",
        f"{_BROKER} haServerAddr brokerId:int heartbeatTimeoutMillis:int? enableActingMaster:bool? compressed:bool? "
        "bodyCrc32:int?",
    ),
    _row(104, "UNREGISTER_BROKER", "2.1", f"{_BROKER} brokerId:int"),
    _row(105, "GET_ROUTEINFO_BY_TOPIC", "2.3", "topic acceptStandardJsonOnly:bool?"),
    _row(106, "GET_BROKER_CLUSTER_INFO", "2.4"),
    _row(205, "WIPE_WRITE_PERM_OF_BROKER", "2.1", "brokerName"),
    _row(206, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", "2.1"),
    _row(216, "DELETE_TOPIC_IN_NAMESRV", "2.1", "topic clusterName?"),
    _row(217, "REGISTER_TOPIC_IN_NAMESRV", "2.1", "topic"),
    _row(219, "GET_KVLIST_BY_NAMESPACE", "2.1", "namespace"),
    _row(224, "GET_TOPICS_BY_CLUSTER", "2.1", "cluster"),
    _row(304, "GET_SYSTEM_TOPIC_LIST_FROM_NS", "2.1"),
    _row(311, "GET_UNIT_TOPIC_LIST", "2.1"),
    _row(312, "GET_HAS_UNIT_SUB_TOPIC_LIST", "2.1"),
    _row(313, "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", "2.1"),
    _row(318, "UPDATE_NAMESRV_CONFIG", "2.1"),
    _row(319, "GET_NAMESRV_CONFIG", "2.1"),
    _row(322, "QUERY_DATA_VERSION", "2.1", f"{_BROKER} brokerId:int"),
    _row(327, "ADD_WRITE_PERM_OF_BROKER", "2.1", "brokerName"),
    _row(901, "GET_BROKER_MEMBER_GROUP", "2.1", "clusterName brokerName"),
    _row(
        904, "BROKER_HEARTBEAT", "2.1",
        f"{_BROKER} brokerId:int? epoch:int? maxOffset:int? confirmOffset:int? heartbeatTimeoutMills:int? "
        "electionPriority:int?",
    ),
)  # fmt: skip
"""What a name server answers."""


def by_code(requests: tuple[Request, ...]) -> dict[int, Request]:
    """The table by number."""
    return {one.code: one for one in requests}
