"""Messages of producers and consumers: before sending, as they are sent, and as they are received.

See docs/protocol/broker.md#send and docs/protocol/clients.md#messages.

Pure but for the clock in unique ids. Java: ``Message``, ``MessageBatch``, ``MessageExt``, ``Validators``,
``MessageDecoder``, ``DefaultMQProducerImpl.sendKernelImpl``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from engine.client.errors import WrongMessage
from engine.client.routes import MessageQueue
from engine.codec import batch
from engine.codec import message as codec
from engine.codec import properties as props
from engine.codec.compression import unpack
from engine.codec.encode import HEAD_FORMATS, HEAD_SIZE
from engine.codec.message import Unit
from engine.codec.unit_flavours import BY_VERSION, MAX_PROPERTIES_BYTES
from engine.files.layout import MAX_TOPIC_BYTES
from engine.remoting.unique_ids import unique_id
from engine.sentences import sentence
from engine.system_names import NOT_SENT_TO, RETRY_PREFIX

MAX_BODY = 4 << 20
"""Bytes of a body before compression (``maxMessageSize``)."""
MIN_OFFSET, MAX_OFFSET = "MIN_OFFSET", "MAX_OFFSET"
MESSAGE_TYPE, REPLY = "MSG_TYPE", "reply"
CORRELATION_ID, REPLY_TO_CLIENT, TTL, CLUSTER = "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "CLUSTER"
RECONSUME_TIME, MAX_RECONSUME_TIMES = "RECONSUME_TIME", "MAX_RECONSUME_TIMES"
COMPRESSIONS = {"lz4": 0x100, "zstd": 0x200, "zlib": 0x300}
"""Kinds of compression and their bits in sysFlag (docs/formats/commit-log.md#sysflag)."""
_HEAD = HEAD_FORMATS[0]
_MAGIC = BY_VERSION[1].magic
_BATCH = codec.INNER_BATCH | codec.NEED_UNWRAP
_UNUSUAL = codec.COMPRESSED | codec.BORN_HOST_V6 | codec.STORE_HOST_V6 | _BATCH
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
_LZ4_HEAD = bytes.fromhex("04224d18607073")
"""A frame's head as lz4-java writes it: independent blocks of 4 MiB; the Python library writes 64 KiB for a short
body.
"""
_KEYS, _TAGS = props.KEYS + props.NAME_END, props.TAGS + props.NAME_END
_WAITS, _WAITS_NOT = (
    f"{props.WAIT}{props.NAME_END}{word}{props.PAIR_END}{props.UNIQUE_KEY}{props.NAME_END}"
    for word in ("true", "false")
)
_RESERVED_PROPERTIES = frozenset({props.KEYS, props.TAGS, props.WAIT, props.DELAY, props.UNIQUE_KEY})


@dataclass(slots=True)
class Message:
    """A message to be sent. ``keys`` are words, ``properties`` the sender's own ones.

    ``delay_level`` 1 to 18 delays by RocketMQ's levels (1 s to 2 h); brokers of 5.x also take ``delay_ms``, or a time
    ``deliver_at`` (ms since the epoch). ``waits`` is WAIT: the broker's answer waits for flush and replicas.
    """

    topic: str
    body: bytes
    tags: str = ""
    keys: str | Sequence[str] = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    delay_level: int = 0
    delay_ms: int = 0
    deliver_at: int = 0
    flag: int = 0
    waits: bool = True
    msg_id: str = ""
    """``UNIQ_KEY``; set when it is sent. A try that is repeated keeps it."""

    @property
    def key_text(self) -> str:
        """Return the keys with blanks between."""
        return self.keys if isinstance(self.keys, str) else " ".join(self.keys)

    def all_properties(self) -> dict[str, str]:
        """Return the properties as they are sent, without the unique id. Raises :class:`WrongMessage`."""
        properties = dict(self.properties)
        if keys := self.key_text:
            properties[props.KEYS] = keys
        if self.tags:
            properties[props.TAGS] = self.tags
        if self.delay_level:
            properties[props.DELAY] = str(self.delay_level)
        if self.delay_ms:
            properties[props.TIMER_DELAY_MS] = str(self.delay_ms)
        if self.deliver_at:
            properties[props.TIMER_DELIVER_MS] = str(self.deliver_at)
        properties.setdefault(props.WAIT, "true" if self.waits else "false")
        return properties


@lru_cache(1024)
def check_topic(topic: str) -> None:
    """Check a topic's name. Raises :class:`WrongMessage` if no broker accepts it."""
    if not topic.strip():
        raise WrongMessage(sentence("The specified topic is blank"))
    if len(topic) > MAX_TOPIC_BYTES:
        raise WrongMessage(
            sentence("The specified topic is longer than topic max length {limit}", limit=MAX_TOPIC_BYTES)
        )
    if not _NAME.match(topic):
        raise WrongMessage(
            sentence(
                "The specified topic[{topic}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
                topic=topic,
            )
        )


def check_group(group: str) -> None:
    """Check a group's name. Raises :class:`WrongMessage` if no group can have it."""
    if not group.strip():
        raise WrongMessage(sentence("the specified group is blank"))
    if len(group) > 255 or not _NAME.match(group):
        raise WrongMessage(
            sentence("the specified group[{group}] is longer than 255 or contains illegal characters", group=group)
        )


def check(message: Message, max_body: int = MAX_BODY) -> None:
    """Check a message. Raises :class:`WrongMessage` if a producer must not send it."""
    check_topic(message.topic)
    if message.topic in NOT_SENT_TO:
        raise WrongMessage(sentence("Sending message to topic[{topic}] is forbidden.", topic=message.topic))
    _check_all_but_topic(message, max_body)


def _check_all_but_topic(message: Message, max_body: int) -> None:
    if not message.body:
        raise WrongMessage("the message body length is zero")
    if len(message.body) > max_body:
        raise WrongMessage(f"the message body size over max value, MAX: {max_body}, found {len(message.body)}")
    for name, value in message.properties.items():
        if name in _RESERVED_PROPERTIES:
            raise WrongMessage(f"{name} is no property of one's own: Message has a field for it")
        if not name or not value:
            raise WrongMessage("The name or value of property can not be null or blank string!")


def property_text(properties: Mapping[str, str]) -> str:
    """Return properties as they travel. Raises :class:`WrongMessage` if a reader would not get the same ones."""
    text = "".join([f"{name}{props.NAME_END}{value}{props.PAIR_END}" for name, value in properties.items()])
    if text.count(props.NAME_END) != len(properties) or text.count(props.PAIR_END) != len(properties):
        raise WrongMessage("a property holds the character 0x01 or 0x02, with which names and values end")
    if len(text) > MAX_PROPERTIES_BYTES:
        raise WrongMessage(f"properties of {len(text):,} characters, at most {MAX_PROPERTIES_BYTES:,} can be stored")
    return text


def sent_properties(message: Message) -> str:
    """Return all properties of a message that has its unique id, as they travel. Raises as :func:`property_text`."""
    keys, tags = message.key_text, message.tags
    if message.properties or message.delay_level or message.delay_ms or message.deliver_at:
        return property_text({**message.all_properties(), props.UNIQUE_KEY: message.msg_id})
    text = f"{_KEYS}{keys}\x02" if keys else ""
    if tags:
        text += f"{_TAGS}{tags}\x02"
    if text.count("\x01") != (ends := bool(keys) + bool(tags)) or text.count("\x02") != ends or len(text) > 32_000:
        return property_text({**message.all_properties(), props.UNIQUE_KEY: message.msg_id})
    return f"{text}{_WAITS if message.waits else _WAITS_NOT}{message.msg_id}\x02"


def compressed(body: bytes, kind: str, level: int = 5) -> tuple[bytes, int]:
    """Return a compressed body, as Java's clients make it, and the bits of sysFlag that tell how.

    ``kind``: zlib, lz4 or zstd. Raises :class:`WrongMessage` for an unknown kind, and ``ImportError`` where its package
    is not installed.

    Raises :class:`WrongMessage` for an unknown kind, and ``ImportError`` where its package is not installed.
    """
    if kind == "zlib":
        return zlib.compress(body, level), codec.COMPRESSED | COMPRESSIONS[kind]
    if kind == "lz4":
        import lz4.frame

        frame = lz4.frame.compress(body, block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=False, store_size=False)
        packed = _LZ4_HEAD + frame[len(_LZ4_HEAD) :]
        return packed, codec.COMPRESSED | COMPRESSIONS[kind]
    if kind == "zstd":
        import zstandard

        stream = zstandard.ZstdCompressor(level=level, write_content_size=False).compressobj()
        packed = stream.compress(body) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()
        return packed, codec.COMPRESSED | COMPRESSIONS[kind]
    raise WrongMessage(f"compression {kind!r} is unknown; known are {', '.join(sorted(COMPRESSIONS))}")


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded send: the body of the request, its property text, its sysFlag, the number of messages."""

    body: bytes
    properties: str
    sys_flag: int
    count: int


def encode_batch(messages: Sequence[Message], now: int, max_body: int = MAX_BODY, *, with_id: bool = True) -> Encoded:
    """Encode a batch as SEND_BATCH_MESSAGE takes it; each message gets its unique id.

    ``with_id``: the batch gets one, too, as in clients of 5.x. Raises :class:`WrongMessage` where the messages are no
    batch.
    """
    if not messages:
        raise WrongMessage("a batch without messages")
    first_message = messages[0]
    check_topic(first_message.topic)
    if first_message.topic in NOT_SENT_TO:
        raise WrongMessage(f"Sending message to topic[{first_message.topic}] is forbidden.")
    if first_message.topic.startswith(RETRY_PREFIX):
        raise WrongMessage("Retry Group is not supported for batching")
    topic, waits = first_message.topic, first_message.waits
    pieces: list[bytes] = []
    for message in messages:
        if message.topic != topic:
            raise WrongMessage("The topic of the messages in one batch should be the same")
        if message.waits != waits:
            raise WrongMessage("The waitStoreMsgOK of the messages in one batch should the same")
        if message.delay_level or message.delay_ms or message.deliver_at:
            raise WrongMessage("TimeDelayLevel is not supported for batching")
        _check_all_but_topic(message, max_body)
        if not message.msg_id:
            message.msg_id = unique_id(now)
        pieces += batch.encode_member_pieces(message.flag, message.body, sent_properties(message).encode())
    body = b"".join(pieces)
    if len(body) > max_body:
        raise WrongMessage(f"the message body size over max value, MAX: {max_body}, found {len(body)}")
    shared = {props.WAIT: "true" if first_message.waits else "false"}
    if with_id:
        shared[props.UNIQUE_KEY] = unique_id(now)
    return Encoded(body, property_text(shared), 0, len(messages))


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of a send.

    ``status`` is SEND_OK, FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE; in each case the message is
    stored. For a batch, ``msg_id`` and ``offset_msg_id`` hold all ids, joined by commas.
    """

    status: str
    queue: MessageQueue
    queue_offset: int
    msg_id: str
    offset_msg_id: str
    transaction_id: str = ""
    recall_handle: str = ""

    @property
    def is_ok(self) -> bool:
        """True for SEND_OK: stored, and flushed and copied as far as the broker waits for that."""
        return self.status == "SEND_OK"


class ReceivedMessage:
    """A message that a consumer got. Times are ms since the epoch, ``body`` is unpacked.

    ``queue`` is where it was read; ``topic`` is the sender's topic, even if the message was read from a retry topic.
    ``queue_id`` is the queue id in its unit, which differs from ``queue`` only if a pop read several queues. Properties
    are parsed on first access: most listeners read only the body.
    """

    __slots__ = (
        "_born_host",
        "_later",
        "_properties",
        "_properties_raw",
        "_store_host",
        "body",
        "body_crc",
        "born_timestamp",
        "flag",
        "physical_offset",
        "prepared_transaction_offset",
        "queue",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_size",
        "store_timestamp",
        "sys_flag",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        body: bytes,
        queue: MessageQueue,
        properties: dict[str, str] | bytes,
        *,
        queue_id: int = -1,
        queue_offset: int = -1,
        physical_offset: int = -1,
        reconsume_times: int = 0,
        born_timestamp: int = 0,
        store_timestamp: int = 0,
        born_host: str | bytes = "",
        store_host: str | bytes = "",
        sys_flag: int = 0,
        flag: int = 0,
        body_crc: int = 0,
        store_size: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> None:
        self.topic = topic
        self.body = body
        self.queue = queue
        self._properties: dict[str, str] | None = properties if isinstance(properties, dict) else None
        self._properties_raw = properties if isinstance(properties, bytes) else b""
        self._later: dict[str, str] | None = None
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.physical_offset = physical_offset
        self.reconsume_times = reconsume_times
        self.born_timestamp = born_timestamp
        self.store_timestamp = store_timestamp
        self._born_host = born_host
        self._store_host = store_host
        self.sys_flag = sys_flag
        self.flag = flag
        self.body_crc = body_crc
        self.store_size = store_size
        self.prepared_transaction_offset = prepared_transaction_offset

    def __repr__(self) -> str:
        return f"ReceivedMessage({self.topic!r}, {self.queue}, {self.queue_offset}, {len(self.body)} bytes)"

    @property
    def properties(self) -> dict[str, str]:
        """All properties, decoded at the first access."""
        properties = self._properties
        if properties is None:
            properties = self._properties = props.decode(self._properties_raw)
            if self._later:
                properties.update(self._later)
        return properties

    def note(self, extra_properties: dict[str, str]) -> None:
        """Add properties of the consumer."""
        if self._properties is not None:
            self._properties.update(extra_properties)
        elif self._later is None:
            self._later = extra_properties
        else:
            self._later = {**self._later, **extra_properties}

    @property
    def born_host(self) -> str:
        """``ip:port`` of the sender."""
        raw = self._born_host
        return raw if isinstance(raw, str) else codec.host_text(raw)

    @property
    def store_host(self) -> str:
        """``ip:port`` of the broker that stored the message."""
        raw = self._store_host
        return raw if isinstance(raw, str) else codec.host_text(raw)

    @property
    def offset_msg_id(self) -> str:
        """The id of its place: the store's host and the offset in its log; empty for a reply."""
        raw = self._store_host
        return "" if isinstance(raw, str) else codec.offset_message_id(raw, self.physical_offset)

    @property
    def msg_id(self) -> str:
        """``UNIQ_KEY``, or the offset message id if the sender set none."""
        return self.properties.get(props.UNIQUE_KEY) or self.offset_msg_id

    @property
    def tags(self) -> str:
        """The tags; empty if there are none."""
        return self.properties.get(props.TAGS, "")

    @property
    def keys(self) -> str:
        """The keys with blanks between."""
        return self.properties.get(props.KEYS, "")

    @property
    def transaction_id(self) -> str:
        """``UNIQ_KEY``, which names a transaction; empty if there is none."""
        return self.properties.get(props.UNIQUE_KEY, "")


def read_messages(body: bytes | memoryview, queue: MessageQueue) -> list[ReceivedMessage]:
    """Return the messages in the body of a pull's answer; members of an inner batch are messages of their own.

    Raises :class:`engine.errors.CorruptUnit` where the bytes are invalids.
    """
    messages: list[ReceivedMessage] = []
    position, end = 0, len(body)
    while position < end:
        message = _decode_usual_form(body, position, end, queue)
        if message is not None:
            messages.append(message)
            position += message.store_size
            continue
        unit = codec.decode(body, position, crc=False)
        position += unit.size
        if unit.sys_flag & _BATCH == _BATCH:
            messages += _members(unit, queue)
        else:
            messages.append(received(unit, queue))
    return messages


def _decode_usual_form(
    body: bytes | memoryview, position: int, end: int, queue: MessageQueue
) -> ReceivedMessage | None:
    """Decode a unit of the usual form (version 1, IPv4 hosts, not packed); None if it has another form.

    Every length is checked against the bytes that are there.
    """
    start = position + HEAD_SIZE
    if start > end:
        return None
    (
        size,
        magic,
        crc,
        queue_id,
        flag,
        queue_offset,
        physical,
        sys_flag,
        born,
        born_host,
        stored,
        store_host,
        times,
        prepared,
        length,
    ) = _HEAD.unpack_from(body, position)
    if (
        magic != _MAGIC
        or sys_flag & _UNUSUAL
        or length < 0
        or position + size > end
        or start + length + 3 > position + size
    ):
        return None
    body_end = start + length
    texts = body_end + 3 + body[body_end]
    if texts > position + size or texts + int.from_bytes(body[texts - 2 : texts], "big") != position + size:
        return None
    return ReceivedMessage(
        str(body[body_end + 1 : texts - 2], "utf-8", "replace"),
        bytes(body[start:body_end]),
        queue,
        bytes(body[texts : position + size]),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=physical,
        reconsume_times=times,
        born_timestamp=born,
        store_timestamp=stored,
        born_host=born_host,
        store_host=store_host,
        sys_flag=sys_flag,
        flag=flag,
        body_crc=crc,
        store_size=size,
        prepared_transaction_offset=prepared,
    )


def received(unit: Unit, queue: MessageQueue) -> ReceivedMessage:
    """Return a stored unit as a consumer gets it."""
    body, sys_flag = unit.body, unit.sys_flag
    if sys_flag & codec.COMPRESSED:
        body = unpack(body, sys_flag).data
        sys_flag &= ~codec.COMPRESSED
    return ReceivedMessage(
        unit.topic,
        body,
        queue,
        unit.properties,
        queue_id=unit.queue_id,
        queue_offset=unit.queue_offset,
        physical_offset=unit.physical_offset,
        reconsume_times=unit.reconsume_times,
        born_timestamp=unit.born_timestamp,
        store_timestamp=unit.store_timestamp,
        born_host=unit.born_host_raw,
        store_host=unit.store_host_raw,
        sys_flag=sys_flag,
        flag=unit.flag,
        body_crc=unit.body_crc,
        store_size=unit.size,
        prepared_transaction_offset=unit.prepared_transaction_offset,
    )


def _members(unit: Unit, queue: MessageQueue) -> list[ReceivedMessage]:
    outer, messages = received(unit, queue), []
    for member in batch.walk(outer.body):
        if isinstance(member, batch.MemberDamage):
            break
        properties = member.properties
        if CLUSTER in outer.properties:
            properties[CLUSTER] = outer.properties[CLUSTER]
        messages.append(
            ReceivedMessage(
                outer.topic,
                member.body,
                queue,
                properties,
                queue_id=outer.queue_id,
                queue_offset=outer.queue_offset + member.index,
                physical_offset=outer.physical_offset,
                reconsume_times=outer.reconsume_times,
                born_timestamp=outer.born_timestamp,
                store_timestamp=outer.store_timestamp,
                born_host=unit.born_host_raw,
                store_host=unit.store_host_raw,
                sys_flag=outer.sys_flag,
                flag=member.flag,
                store_size=member.size,
                prepared_transaction_offset=outer.prepared_transaction_offset,
            )
        )
    return messages


def reply_to(request: ReceivedMessage, body: bytes) -> Message:
    """Return the message that answers ``request`` (Java: ``MessageUtil.createReplyMessage``).

    Raises :class:`WrongMessage` if nobody waits for a reply.
    """
    cluster = request.properties.get(CLUSTER)
    if cluster is None:
        raise WrongMessage(f"create reply message fail, requestMessage error, property[{CLUSTER}] is null.")
    passed = {
        name: request.properties[name] for name in (CORRELATION_ID, REPLY_TO_CLIENT, TTL) if name in request.properties
    }
    return Message(f"{cluster}_REPLY_TOPIC", body, properties={MESSAGE_TYPE: REPLY, **passed})


QueueSelector = Callable[[Sequence[MessageQueue], Message], MessageQueue]
"""Chooses the queue of a message among those of its topic."""
