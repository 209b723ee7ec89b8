"""The job sheet of an encoding run: compiled code reads and writes it instead of taking thirty arguments.

It is a row of 64-bit numbers in memory. With one number as the only argument (its address) a call is some
microseconds cheaper, which matters for a batch of 64 messages.

"""

from __future__ import annotations

import struct

NAMES = (
    # advanced by the run
    "row",
    "position",
    "body",
    "properties",
    # the target
    "target",
    "limit",
    "base",
    "now",
    "rows",
    "store_default",
    # columns: addresses, 0 where every row has 0
    "topic_id",
    "queue_id",
    "flag",
    "sys_flag",
    "born_timestamp",
    "born_host",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_length",
    "properties_length",
    # tables: addresses and numbers of rows
    "topics",
    "topic_count",
    "hosts",
    "host_count",
    "numbers",
    # results: addresses
    "out_offset",
    "out_queue_offset",
    "out_size",
    # maximum bytes of a body
    "longest_body",
)
"""The numbers in their order: 64 bits each, in the machine's own byte order."""

SHEET = struct.Struct(f"={len(NAMES)}q")
ADVANCED = struct.Struct("=4q")
"""The first of them, which a run advances."""
TOPIC_ROW = struct.Struct("=5q")
"""A row of the topic table: address and length of the topic's field, magic, address and length of its places."""
HOST_ROW = struct.Struct("=20si")
"""A row of the host table: raw host, its length."""

DONE, NO_ROOM, NO_PLACE, RULED = 0, 1, 2, 3
"""Reasons why a run stops: all rows written; the next unit does not fit; its queue has no place yet; it has rules."""
