"""Property text of a message: ``name 0x01 value 0x02`` repeated (docs/formats/commit-log.md#properties), and its CRC
(docs/formats/commit-log.md#property-crc).

Pure. Releases differ in the final 0x02, so reading accepts both; order on disk is a Java hash map's and means nothing.
"""

from __future__ import annotations

from engine.codec.crc import crc31
from engine.codec.java import utf8

NAME_END = "\x01"
PAIR_END = "\x02"

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE_ID = "REAL_QID"
TRANSACTION_PREPARED = "TRAN_MSG"
PRODUCER_GROUP = "PGROUP"
UNIQUE_KEY = "UNIQ_KEY"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
TRANSACTION_ID = "__transactionId__"
TRANSACTION_OFFSET = "TRANS_OFFSET"
CHECK_IMMUNITY_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
INNER_NUM = "INNER_NUM"
INNER_BASE = "INNER_BASE"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQUE_KEY = "TIMER_DEL_UNIQKEY"
FIRST_POP_TIME = "1ST_POP_TIME"
ORIGIN_GROUP = "ORIGIN_GROUP"
SHARDING_KEY = "__SHARDINGKEY"
PRIORITY = "_SYS_MSG_PRIORITY_"
LITE_TOPIC = "__LITE_TOPIC"
CRC32 = "__CRC32#"

CRC_TAIL = 20
_CRC_HEAD = b"__CRC32#\x01"


def decode(raw: bytes) -> dict[str, str]:
    """Return name → value of ``raw`` as MessageDecoder reads it: empty values vanish, later duplicates win."""
    properties: dict[str, str] = {}
    for piece in utf8(raw).split(PAIR_END):
        if len(piece) < 3:
            continue
        separator = piece.find(NAME_END)
        if 0 < separator < len(piece) - 1:
            properties[piece[:separator]] = piece[separator + 1 :]
    return properties


def encode(properties: dict[str, str]) -> bytes:
    """Return property text in the order of ``properties``, each pair closed (5.2 and later)."""
    return "".join(f"{name}{NAME_END}{value}{PAIR_END}" for name, value in properties.items()).encode()


def pair_spans(raw: bytes) -> list[tuple[int, int]]:
    """Return (position, length) of each pair of ``raw`` with its closing 0x02, empty and malformed pairs included."""
    pair_spans = []
    position = 0
    while position < len(raw):
        end = raw.find(b"\x02", position)
        stop = len(raw) if end < 0 else end + 1
        pair_spans.append((position, stop - position))
        position = stop
    return pair_spans


def split_keys(text: str | None) -> list[str]:
    """Return the keys of a KEYS value: the non-empty pieces between single spaces."""
    return [key for key in text.split(" ") if key] if text else []


def verify_crc(unit: bytes) -> bool | None:
    """Check the property CRC at the end of a complete unit; None if the unit carries none
    (docs/formats/commit-log.md#property-crc).
    """
    tail = bytes(unit[-CRC_TAIL:])
    if len(tail) < CRC_TAIL or not tail.startswith(_CRC_HEAD) or tail[-1:] != b"\x02":
        return None
    return tail[len(_CRC_HEAD) : -1] == crc_digits(crc31(unit[:-CRC_TAIL]))


def with_right_crc(unit: bytes) -> bytes:
    """Return a complete unit with the property CRC at its end put right; unchanged if it carries none."""
    if verify_crc(unit) is not False:
        return unit
    return unit[: -CRC_TAIL + len(_CRC_HEAD)] + crc_digits(crc31(unit[:-CRC_TAIL])) + unit[-1:]


def crc_digits(crc: int) -> bytes:
    """Return ten decimal digits, least significant first, padded on the right with ``0``."""
    return str(crc)[::-1].ljust(10, "0").encode()
