"""The fields of a message unit in one table, from which every other list of them is made
(docs/formats/commit-log.md#unit, #unit-check).

A row gives the field's place in the bytes (:func:`engine.codec.message.list_fields`), its column of a scanned block
(:data:`engine.codec.columns.COLUMN_TYPES`), its name in JSON records, filters and tables, its column on Spark and in an
export, how it is masked, the colour of its bytes in the hex view, and its description. To add a field everywhere,
add one row here; recipe: ``resources/docs/contributing/recipes.md``. Texts are English; the Chinese of ``meaning``
is in ``resources/i18n``. No numpy here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from engine.sentences import msgid

Kind = Literal["number", "time", "text", "list"]
Masked = Literal["", "bodies", "ids", "hosts", "keys", "names", "properties"]
Fill = Literal["frame", "id", "time", "host", "body", "topic"]


class InBytes(NamedTuple):
    """Position and width of a field in the smallest unit (IPv4 hosts, empty body, topic and properties).

    A ``width`` of 0 means that the unit itself gives the length; later fields move by it. ``fill`` paints the
    bytes.
    """

    position: int
    width: int
    fill: Fill


class Field(NamedTuple):
    """The description of one field of a unit.

    ``name`` is RocketMQ's: in JSON, filters, tables, Spark. ``attribute`` is Python's: of a ``Unit`` and of a
    scanned block; "" if neither has it. ``column`` is numpy's type of its column in a block, "" if it has none.
    ``kind`` is how the filter language compares it, None if filters do not know it. ``spark`` is its type in an
    export, "" if records do not have it. ``always`` is false if only some records have it. ``instead`` names the
    field with the same content in records. ``words`` are all texts it can have. ``with_tags``: a block scan fills
    it only if tags are wanted.

    Texts about it: ``in_filters`` for the grammar, ``on_spark`` as the column's comment, ``meaning`` for the
    window, with the ``page`` of the documentation.

    """

    name: str
    attribute: str = ""
    column: Literal["", "u1", "i4", "i8"] = ""
    kind: Kind | None = None
    spark: str = ""
    in_bytes: InBytes | None = None
    in_filters: str = ""
    on_spark: str = ""
    meaning: str = ""
    page: str = ""
    words: tuple[str, ...] = ()
    masked: Masked = ""
    with_tags: bool = False
    always: bool = True
    instead: str = ""


FIELDS: tuple[Field, ...] = (
    Field(
        "physicalOffset",
        "offset",
        "i8",
        "number",
        "bigint",
        InBytes(28, 8, "id"),
        in_filters=msgid("where the unit lies in the commit log, bytes"),
        on_spark="where the unit begins in the commit log, bytes",
        meaning=(
            "PHYSICALOFFSET: where the unit begins in the whole log, counted in bytes. It must equal its place; else "
            "the unit is left over from a file that was used before."
        ),
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "size",
        "size",
        "i4",
        "number",
        "int",
        in_filters=msgid("bytes of the whole unit"),
        on_spark="length of the unit, bytes",
    ),
    Field(
        "version",
        "version",
        "u1",
        "number",
        "int",
        in_filters=msgid("1 or 2"),
        on_spark="of the unit's form: 1 or 2",
        meaning="1 or 2: the form of the unit, told by its magicCode.",
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "file",
        "",
        "",
        "text",
        "string",
        in_filters=msgid("name of the commit log file"),
        on_spark="name of the file that holds it",
    ),
    Field(
        "topic",
        "topic",
        "",
        "text",
        "string",
        InBytes(89, 0, "topic"),
        in_filters=msgid("topic it is stored under"),
        on_spark="the topic's name",
        meaning=(
            "TOPIC: under which name the message is stored. Delayed, half and retried messages lie under a topic of "
            "RocketMQ's own and carry the real one as a property."
        ),
        page="docs/formats/commit-log.md#unit",
        masked="names",
        with_tags=True,
    ),
    Field(
        "queueId",
        "queue_id",
        "i4",
        "number",
        "int",
        InBytes(12, 4, "id"),
        in_filters=msgid("queue of the topic"),
        on_spark="number of the queue in its topic",
        meaning="QUEUEID: the queue of the topic that the message belongs to.",
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "queueOffset",
        "queue_offset",
        "i8",
        "number",
        "bigint",
        InBytes(20, 8, "id"),
        in_filters=msgid("place in that queue"),
        on_spark="place in the queue, counted in entries (of a batch: its first)",
        meaning=(
            "QUEUEOFFSET: the number of the message in its queue. Consumers count in it; half and rollback units have "
            "none."
        ),
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "flag",
        "flag",
        "i4",
        "number",
        "int",
        InBytes(16, 4, "id"),
        in_filters=msgid("the sender's own flag"),
        on_spark="the application's own bits",
        meaning="FLAG: a number of the sender's own; RocketMQ never reads it.",
        page="docs/formats/commit-log.md#unit",
        with_tags=True,
    ),
    Field(
        "sysFlag",
        "sys_flag",
        "i4",
        "number",
        "int",
        InBytes(36, 4, "frame"),
        in_filters=msgid("bits of the system flag"),
        on_spark="RocketMQ's bits: compression, transaction, IPv6",
        meaning=(
            "SYSFLAG: bits of the broker and the client: compressed, several tags, part of a transaction, IPv6 hosts, "
            "inner batch."
        ),
        page="docs/formats/commit-log.md#sysflag",
    ),
    Field(
        "bornTimestamp",
        "born_timestamp",
        "i8",
        "time",
        "bigint",
        InBytes(40, 8, "time"),
        in_filters=msgid("the sender's clock"),
        on_spark="when the producer made it, ms since the epoch",
        meaning="BORNTIMESTAMP: when the sender made the message, by the sender's clock, in ms.",
        page="docs/formats/commit-log.md#unit",
        with_tags=True,
    ),
    Field(
        "bornHost",
        "born_host",
        "",
        "text",
        "string",
        InBytes(48, 0, "host"),
        in_filters=msgid("sender, ip:port"),
        on_spark="the producer, ip:port",
        meaning="BORNHOST: address and port of the sender.",
        page="docs/formats/commit-log.md#unit",
        masked="hosts",
    ),
    Field(
        "storeTimestamp",
        "store_timestamp",
        "i8",
        "time",
        "bigint",
        InBytes(56, 8, "time"),
        in_filters=msgid("the broker's clock"),
        on_spark="when the broker stored it, ms since the epoch",
        meaning=(
            "STORETIMESTAMP: when the broker stored the message, by the broker's clock, in ms. Checkpoint, index "
            "and deletion use it."
        ),
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "storeHost",
        "store_host",
        "",
        "text",
        "string",
        InBytes(64, 0, "host"),
        in_filters=msgid("broker, ip:port"),
        on_spark="the broker, ip:port",
        meaning="STOREHOST: address and port of the broker.",
        page="docs/formats/commit-log.md#unit",
        masked="hosts",
    ),
    Field(
        "reconsumeTimes",
        "reconsume_times",
        "i4",
        "number",
        "int",
        InBytes(72, 4, "id"),
        in_filters=msgid("how often it was sent back"),
        on_spark="how often it was handed to a consumer again",
        meaning="RECONSUMETIMES: how often a consumer sent the message back to be tried again.",
        page="docs/formats/transactions.md",
        with_tags=True,
    ),
    Field(
        "preparedTransactionOffset",
        "prepared_transaction_offset",
        "i8",
        "number",
        "bigint",
        InBytes(76, 8, "id"),
        in_filters=msgid("physical offset of the half message"),
        on_spark="of a transaction: where its half message lies",
        meaning="PREPAREDTRANSACTIONOFFSET: where the half message of the transaction lies; 0 outside transactions.",
        page="docs/formats/transactions.md",
        with_tags=True,
    ),
    Field(
        "bodyCRC",
        "body_crc",
        "i4",
        "number",
        "int",
        InBytes(8, 4, "frame"),
        in_filters=msgid("CRC of the body as stored"),
        on_spark="CRC of the body, as stored",
        meaning=(
            "BODYCRC: a checksum of the body, without its highest bit. A broker compares it when it recovers after an "
            "abnormal exit."
        ),
        page="docs/formats/commit-log.md#unit",
        masked="bodies",
    ),
    Field(
        "crc",
        "crc",
        "u1",
        "text",
        "string",
        in_filters=msgid("verdict on the body"),
        on_spark="ok, bad or unchecked: the body against its CRC",
        meaning="Whether the body gives the checksum that is stored in bodyCRC.",
        page="docs/formats/commit-log.md#unit-check",
        words=("ok", "bad", "unchecked"),
    ),
    Field(
        "bodyLength",
        "body_length",
        "i4",
        "number",
        "int",
        InBytes(84, 4, "frame"),
        in_filters=msgid("bytes of the stored body"),
        on_spark="length of the body as stored, bytes",
        meaning="BODYLENGTH: bytes of the body as it is stored, compressed or not.",
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "properties",
        "properties",
        "",
        None,
        "map<string,string>",
        on_spark="all properties by name",
        meaning="A property: a name and a text that sender, client or broker gave the message.",
        page="docs/formats/commit-log.md#properties",
        masked="properties",
    ),
    Field(
        "tags",
        "tags",
        "",
        "text",
        "string",
        in_filters=msgid("the tag"),
        on_spark="property TAGS",
        meaning="TAGS: the tag by which consumers filter. Its hash is in the queue entry.",
        page="docs/formats/commit-log.md#properties",
    ),
    Field(
        "keys",
        "keys",
        "",
        "list",
        "array<string>",
        in_filters=msgid("the keys; a comparison asks for any of them"),
        on_spark="property KEYS, split",
        meaning="KEYS: words by which the message can be found. Each goes into the index as topic#key.",
        page="docs/formats/index-file.md#keys",
        masked="keys",
    ),
    Field(
        "uniqueKey",
        "unique_key",
        "",
        "text",
        "string",
        in_filters=msgid("unique id the client gave"),
        on_spark="property UNIQ_KEY: the message's own id",
        meaning=(
            "UNIQ_KEY: the id that the client gave the message, what most tools call its message id. It is in the "
            "index too."
        ),
        page="docs/formats/commit-log.md#message-ids",
        masked="ids",
    ),
    Field(
        "tagsCode",
        "tags_code",
        "i8",
        "number",
        "bigint",
        in_filters=msgid("hash of the tag, or delivery time in the schedule topic"),
        on_spark="hash of the tags as the consume queue has it",
        meaning=(
            "Tags hash code: 8 bytes with the hash of the tag. In a delay queue it is the time of delivery, in a "
            "queue with an ext file an address there."
        ),
        page="docs/formats/consume-queue.md#entry",
        with_tags=True,
    ),
    Field(
        "offsetMsgId",
        "offset_msg_id",
        "",
        "text",
        "string",
        in_filters=msgid("offset message id"),
        on_spark="id made of the broker and the offset",
        meaning=(
            "The broker's address and the physical offset in one text: a broker finds the message by it without an "
            "index."
        ),
        page="docs/formats/commit-log.md#message-ids",
        masked="ids",
    ),
    Field(
        "bodySha256",
        "",
        "",
        None,
        "string",
        on_spark="digest of the body as stored",
        masked="bodies",
    ),
    Field(
        "body",
        "body",
        "",
        "text",
        "binary",
        InBytes(88, 0, "body"),
        in_filters=msgid("the body as text, unpacked"),
        on_spark="the body as stored",
        meaning="BODY: what the sender sent, compressed where sysFlag says so.",
        page="docs/formats/commit-log.md#unit",
        masked="bodies",
        always=False,
    ),
    Field(
        "physicalOffsetField",
        "physical_offset",
        "i8",
        "number",
        "bigint",
        in_filters=msgid("the physicalOffset that the unit itself states"),
        on_spark="where the unit says that it lies, if that is elsewhere",
        always=False,
    ),
    # in the bytes only
    Field(
        "totalSize",
        in_bytes=InBytes(0, 4, "frame"),
        instead="size",
        meaning="TOTALSIZE: size of the whole unit in bytes, including these four. The next unit begins after it.",
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "magicCode",
        in_bytes=InBytes(4, 4, "frame"),
        instead="version",
        meaning=(
            "MAGICCODE: says that a message begins here and which form its topic's length has: one byte (version 1) "
            "or two (version 2). Another value marks the end of a file."
        ),
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "topicLength",
        in_bytes=InBytes(88, 1, "frame"),
        meaning="TOPICLENGTH: bytes of the topic's name: one byte in version 1, two in version 2.",
        page="docs/formats/commit-log.md#unit",
    ),
    Field(
        "propertiesLength",
        in_bytes=InBytes(89, 2, "frame"),
        meaning="PROPERTIESLENGTH: bytes of the properties after it, at most 32,767.",
        page="docs/formats/commit-log.md#properties",
    ),
)
"""Every field, those of records first and in their order."""

BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}
OF_RECORDS: tuple[Field, ...] = tuple(field for field in FIELDS if field.spark)
"""Fields that a record of a unit can have, in its order."""
OF_BYTES: tuple[tuple[str, InBytes], ...] = tuple(
    sorted(((field.name, field.in_bytes) for field in FIELDS if field.in_bytes), key=lambda item: item[1].position)
)
"""Fields of the bytes, in the order of the bytes; the properties follow them, pair by pair."""
COLUMNS: tuple[tuple[str, str], ...] = (
    *((field.attribute, field.column) for field in FIELDS if field.column),
    ("kind", "u1"),
    ("topic_id", "i4"),
    ("body_position", "i8"),
    ("properties_position", "i8"),
    ("properties_length", "i4"),
)
"""Columns of a scanned block and their numpy types: numeric fields, and positions of the others in the block."""
NUMBERS: dict[str, str] = {
    field.name: field.attribute for field in OF_RECORDS if field.column and field.always and not field.words
}
"""Fields of every record that are numbers of a scanned block without conversion, each with its column."""
INSTEAD: dict[str, str] = {field.name: field.instead for field in FIELDS if field.instead}
"""Fields of the bytes, each with the field of records that has the same content."""


def masked_as(kind: Masked) -> tuple[str, ...]:
    """Names of the fields that are hidden where ``kind`` is masked."""
    return tuple(field.name for field in FIELDS if field.masked == kind)
