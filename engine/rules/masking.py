"""Masks data that leaves the user's site: bodies, keys, hosts, groups, light queues and properties of records and
sentences. Equal values stay equal.

The window's exports and reports, the command line and the pipeline share these rules. A pseudonym depends on a salt
that is drawn again for each export and stored nowhere, so values cannot be guessed and two exports cannot be compared.
Within one export the same value has the same pseudonym everywhere. A :class:`Masking` is a plain value that carries its
salt: several processes that write one export mask alike. Pure.

A property that RocketMQ does not define is a user's: ``properties`` hides the values of these, except those to keep. A
user's property that stays is searched for text hidden elsewhere in its message (its keys, its group) and for hosts,
ids, retry topics and light queues. Names of properties, tags and topics stay.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from engine.codec import properties as props
from engine.codec.unit_fields import masked_as
from engine.errors import UsageError
from engine.older_names import renamed_attribute
from engine.sentences import sentence
from engine.system_names import DLQ_PREFIX, LMQ_PREFIX, RETRY_PREFIX

# Properties of messages that RocketMQ's clients and brokers set themselves, and what each reveals
# (docs/formats/commit-log.md#properties).

OF_KEYS: Final = (props.KEYS, "__SHARDINGKEY", "CORRELATION_ID")
OF_IDS: Final = (
    props.UNIQUE_KEY,
    props.TRANSACTION_ID,
    props.ORIGIN_MESSAGE_ID,
    props.TIMER_DEL_UNIQUE_KEY,
    "EXTEND_UNIQ_INFO",
    "DLQ_ORIGIN_MESSAGE_ID",
)
"""Ids identify a message and begin with an address: masked with keys and with hosts."""
OF_HOSTS: Final = (
    "BORN_HOST",
    "CLIENT_HOST",
    "REPLY_TO_CLIENT",
    "MSG_REGION",
    "INSTANCE_ID",
    "CLUSTER",
    "DUP_INFO",
    "POP_CK",
)
OF_GROUPS: Final = (props.PRODUCER_GROUP,)
OF_LIGHT_QUEUES: Final = (props.INNER_MULTI_DISPATCH,)
OF_TOPICS: Final = (props.REAL_TOPIC, props.RETRY_TOPIC, "DLQ_ORIGIN_TOPIC")
OF_ROCKETMQ: Final = frozenset(
    {
        *OF_KEYS,
        *OF_IDS,
        *OF_HOSTS,
        *OF_GROUPS,
        *OF_LIGHT_QUEUES,
        *OF_TOPICS,
        props.TAGS,
        props.WAIT,
        props.DELAY,
        props.REAL_QUEUE_ID,
        props.TRANSACTION_PREPARED,
        props.TRANSACTION_CHECK_TIMES,
        props.TRANSACTION_OFFSET,
        props.CHECK_IMMUNITY_SECONDS,
        props.INNER_NUM,
        props.INNER_BASE,
        props.INNER_MULTI_QUEUE_OFFSET,
        props.TIMER_DELAY_SEC,
        props.TIMER_DELAY_MS,
        props.TIMER_DELIVER_MS,
        props.TIMER_OUT_MS,
        props.TIMER_ENQUEUE_MS,
        props.TIMER_DEQUEUE_MS,
        props.TIMER_ROLL_TIMES,
        props.FIRST_POP_TIME,
        props.CRC32,
        "MIN_OFFSET",
        "MAX_OFFSET",
        "TRANSFER_FLAG",
        "CORRECTION_FLAG",
        "MQ2_FLAG",
        "RECONSUME_TIME",
        "TRACE_ON",
        "MAX_RECONSUME_TIMES",
        "CONSUME_START_TIME",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "TTL",
        "ARRIVE_TIME",
        "PUSH_REPLY_TIME",
        "MSG_TYPE",
        "POP_CK_OFFSET",
        "FORWARD_QUEUE_ID",
        "REDIRECT",
        "TIMER_DELAY_LEVEL",
        "BORN_TIMESTAMP",
    }
)
"""All other properties are a user's own."""


PARTS = ("bodies", "keys", "hosts", "groups", "lmq", "properties")
"""Parts that can be masked, in the words of ``--mask``."""
HIDDEN = "(masked)"

_BODIES = (*masked_as("bodies"), "bodyText", "decoded", "decodeError")
_BODY_FIELDS = ("body.", "body[")
_IDS = (*masked_as("ids"), "msgId")
_HOST_FIELDS = masked_as("hosts")
_HASHES = ("keyHash", "slot")
"""Fields of index entries: a guessed key could be confirmed by its hash."""
_GROUP_FIELDS = ("consumerGroup", "producerGroup")
_RETRY = (RETRY_PREFIX, DLQ_PREFIX)

_SIX = r"[0-9A-Fa-f]{1,4}"
_ADDRESS = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.]*\w)"
    r"|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\](?::\d+)?"
    rf"|(?<![\w:])(?:{_SIX}:){{7}}{_SIX}(?![\w:])"
    rf"|(?<![\w:])(?:{_SIX}(?::{_SIX}){{0,6}})?::(?:{_SIX}(?::{_SIX}){{0,6}})?(?![\w:])"
)
_ID = re.compile(r"\b(?:[0-9A-F]{56}|[0-9A-F]{32})\b")
_KEY = re.compile(r"(?<=[\w%-])#[^\s,;]+")
"""Matches a key behind its topic."""
_NAMED = re.compile(r"%(?:RETRY|DLQ|LMQ)%[^\s,;:'\"]+")
"""Matches a topic that names a group or a light queue."""
_PATH = re.compile(r"(?<![\w.…/])/(?:[^\s/:,;']+/)+")


def parse_parts(text: str, parts: Collection[str]) -> dict[str, Any]:
    """Return True for each of the ``parts`` in ``text``, which are separated by commas. Raises UsageError for another
    word.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in parts:
            raise UsageError(
                sentence(
                    "expected {parts} (any of them, with commas) to mask, found '{word}'",
                    parts=", ".join(parts),
                    word=word,
                )
            )
    return dict.fromkeys(words, True)


@dataclass(frozen=True, slots=True)
class Masking:
    """The parts that are masked, and the salt."""

    bodies: bool = False
    keys: bool = False
    hosts: bool = False
    groups: bool = False
    lmq: bool = False
    properties: bool = False
    kept: frozenset[str] = frozenset()
    """Names of users' properties that stay visible when ``properties`` hides all others."""
    salt: bytes = field(default_factory=lambda: os.urandom(16), repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> Masking:
        """Parse words of :data:`PARTS`, separated by commas; raises UsageError for another word."""
        return cls(**parse_parts(text, PARTS))

    def except_for(self, names: Iterable[str]) -> Masking:
        """The same masking, but user properties called ``names`` stay; UsageError if properties are not masked."""
        if not self.properties:
            raise UsageError(sentence("expected 'properties' among what is masked where some are to be kept"))
        return replace(self, kept=frozenset(names))

    keeping = renamed_attribute("keeping", "except_for")

    @property
    def any(self) -> bool:
        """Return True if anything is masked."""
        return any(getattr(self, name) for name in PARTS)

    @property
    def parts(self) -> tuple[str, ...]:
        """The masked parts, in the words of :data:`PARTS`."""
        return tuple(name for name in PARTS if getattr(self, name))

    def pseudonym(self, kind: str, value: str) -> str:
        """``key-3f9a…`` for a value; the same for the same value of this export."""
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self.salt, digest_size=6)
        return f"{kind}-{digest.hexdigest()}"

    def key(self, value: str) -> str:
        """A key or an id as a pseudonym; nothing stays nothing."""
        return self.pseudonym("key", value) if value else value

    def host(self, value: str | None) -> str | None:
        """A host as a pseudonym; its port stays."""
        if not value:
            return value
        host, colon, port = value.rpartition(":")
        if not colon or not port.isdigit() or (":" in host and not host.endswith("]")):
            host, colon, port = value, "", ""  # no port behind it
        return f"{self.pseudonym('host', host.strip('[]'))}{colon}{port}"

    def group(self, value: str) -> str:
        """A consumer's or producer's group as a pseudonym."""
        return self.pseudonym("group", value) if value and self.groups else value

    def topic(self, name: str) -> str:
        """A topic, or a light queue; names of groups and light queues in it become pseudonyms."""
        head, mark, light_name = name.partition(LMQ_PREFIX)
        if mark and self.lmq:
            return f"{self.topic(head)}{mark}{self.pseudonym('lmq', light_name) if light_name else ''}"
        prefix = next((retry_prefix for retry_prefix in _RETRY if name.startswith(retry_prefix)), None)
        if prefix is None or not self.groups:
            return name
        group, plus, inner_topic = name.removeprefix(prefix).partition("+")  # retries of pop: GROUP+TOPIC
        return f"{prefix}{self.group(group)}{plus}{self.topic(inner_topic)}"

    # ---- records -----------------------------------------------------------------------------------------------------

    def value(self, name: str, value: Any) -> Any:
        """A field of a record, masked according to its name; columns of a table are masked by it too."""
        if value is None:
            return None
        if name in _BODIES or name.startswith(_BODY_FIELDS):
            return None if self.bodies else value
        if name in _HASHES:
            return None if self.keys else value
        if name in _IDS:
            return self.key(value) if self.keys or self.hosts else value
        if name in _HOST_FIELDS:
            return self.host(value) if self.hosts else value
        if name == "keys" and isinstance(value, list | tuple):
            return [self.key(key) for key in value] if self.keys else value
        if name == "key":
            return self.key(value) if self.keys else value
        if name == "properties":
            return self.property_values(value)
        if name == "topic" and isinstance(value, str):
            return self.topic(value)
        return self.group(value) if name in _GROUP_FIELDS and isinstance(value, str) else value

    def property_values(self, properties: dict[str, str]) -> dict[str, str]:
        """A masked copy of a message's properties."""
        masked = {name: self._rocketmq_property(name, value) for name, value in properties.items()}
        hidden = self._replacements(properties, masked)
        return {
            name: self._user_property(name, properties[name], hidden) if new is None else new
            for name, new in masked.items()
        }

    def _rocketmq_property(self, name: str, value: str) -> str | None:
        """The masked value of a property that RocketMQ defines; None for a user's own."""
        if name not in OF_ROCKETMQ:
            return None
        if (name in OF_KEYS and self.keys) or (name in OF_IDS and (self.keys or self.hosts)):
            return " ".join(self.key(part) for part in value.split(" "))
        if name in OF_HOSTS and self.hosts:
            return self.pseudonym("host", value)
        if name in OF_GROUPS:
            return self.group(value)
        if name in OF_LIGHT_QUEUES and (self.lmq or self.groups):
            return ",".join(self._light_queue(light_queue) for light_queue in value.split(","))
        return self.topic(value) if name in OF_TOPICS else value

    def _light_queue(self, name: str) -> str:
        if LMQ_PREFIX in name or name.startswith(_RETRY) or not self.lmq:
            return self.topic(name)
        return self.pseudonym("lmq", name) if name else name

    def _replacements(self, properties: dict[str, str], masked: dict[str, str | None]) -> dict[str, str]:
        """The hidden words of a message, whole and in parts, with their replacements."""
        replacements: dict[str, str] = {}
        for name, new in masked.items():
            value = properties[name]
            if new is None or new == value or name in OF_TOPICS:
                continue
            sign = "," if name in OF_LIGHT_QUEUES else " "
            if value.count(sign) == new.count(sign):
                replacements |= dict(zip(value.split(sign), new.split(sign), strict=True))
            else:
                replacements[value] = new
        return {value: new for value, new in replacements.items() if value and value != new}

    def _user_property(self, name: str, value: str, hidden: dict[str, str]) -> str:
        if self.properties and name not in self.kept:
            return self.pseudonym("value", value) if value else value
        for secret in sorted((hidden_word for hidden_word in hidden if hidden_word in value), key=len, reverse=True):
            value = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", hidden[secret], value)
        return self._names(value)

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of any type of the command line, masked; it is changed in a copy."""
        if not self.any:
            return record
        if record.get("type") == "finding":
            return self._finding(record)
        return {
            name: self.nested(value) if name == "incident" else self.value(name, value)
            for name, value in record.items()
        }

    def nested(self, value: Any, name: str = "") -> Any:
        """A nested value, such as the incident of a check, with each field, sentence and command masked."""
        if not self.any:
            return value
        if isinstance(value, dict):
            return {key: self.nested(inner, key) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.nested(inner, name) for inner in value]
        masked = self.value(name, value)
        return self.words(masked) if isinstance(masked, str) and masked == value and name != "topic" else masked

    def _finding(self, record: dict[str, Any]) -> dict[str, Any]:
        masked = dict(record)
        evidence = masked.get("evidence") or {}
        groups = [str(name) for name in (evidence.get("group") or "", *(evidence.get("groups") or ()))]
        for name in ("message", "nextStep", "command"):
            sentence = str(masked.get(name) or "")
            if sentence or name != "command":
                masked[name] = self._about_all(groups, sentence)
        masked["file"] = self.path(masked.get("file"))
        masked["evidence"] = self._named(groups, self.evidence("", evidence))
        return masked

    def _about_all(self, groups: list[str], text: str) -> str:
        """:meth:`about` with all of ``groups``, the longest names first."""
        for group in sorted(groups, key=len, reverse=True) or [""]:
            text = self.about(group, text)
        return text

    def _named(self, groups: list[str], value: Any) -> Any:
        """Mask evidence that names ``groups`` anywhere, also in its keys."""
        if not self.groups:
            return value
        if isinstance(value, dict):
            return {self._about_all(groups, name): self._named(groups, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._named(groups, item) for item in value]
        return self._about_all(groups, value) if isinstance(value, str) else value

    # ---- sentences ---------------------------------------------------------------------------------------------------

    def about(self, group: str, text: str) -> str:
        """:meth:`words` of a sentence that may name ``group`` without saying that it is one."""
        text = self.words(text)
        if not (group and self.groups):
            return text
        return re.sub(rf"(?<![\w%]){re.escape(group)}(?!\w)", lambda _match: self.group(group), text)

    def words(self, text: str) -> str:
        """Mask a sentence: hosts and folders (with hosts), ids (with keys or hosts), keys behind a topic, and topics
        that name a group or a light queue.
        """
        text = self._names(text)
        if self.keys:
            text = _KEY.sub(lambda match: f"#{self.key(match[0][1:])}", text)
        return _PATH.sub("…/", text) if self.hosts else text

    def _names(self, text: str) -> str:
        if self.hosts:
            text = _ADDRESS.sub(lambda match: self.host(match[0]) or "", text)
        if self.keys or self.hosts:
            text = _ID.sub(lambda match: self.key(match[0]), text)
        return _NAMED.sub(lambda match: self.topic(match[0]), text) if self.groups or self.lmq else text

    def path(self, path: str | None) -> str | None:
        """A path without the folders above the store, which name machines and people, and without names of groups and
        light queues.
        """
        if path is not None and self.hosts and path.startswith("/"):
            path = "/".join(("…", *path.split("/")[-3:]))
        return path if path is None else self._names(path)

    def evidence(self, name: str, value: Any) -> Any:
        """A value of a finding's evidence, masked according to its name, with the values inside it."""
        if isinstance(value, dict):
            return {inner: self.evidence(str(inner), item) for inner, item in value.items()}
        lower_name = name.lower()
        if self.bodies and lower_name in {"body", "text", "value"}:
            return HIDDEN
        if isinstance(value, list | tuple):
            return [self.evidence(name, item) for item in value]
        if not isinstance(value, str):
            return None if self.keys and lower_name == "keyhash" else value
        if self.keys and (lower_name.endswith(("key", "keys")) or lower_name in {"msgid", "offsetmsgid"}):
            return self.key(value)
        if self.hosts and lower_name.endswith(("host", "hosts", "address")):
            return self.host(value)
        if self.groups and lower_name.endswith(("group", "groups")):
            return self.group(value)
        if self.properties and lower_name.endswith(("property", "properties")):
            return self.pseudonym("value", value) if value else value
        return self.words(value)
