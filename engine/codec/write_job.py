"""The order sheet of an encoding run: what compiled code reads and writes instead of taking thirty arguments.

A row of 64-bit numbers in memory. One number as the only argument (its address) makes a call some microseconds
cheaper, which counts where a batch has 64 messages.
"""

from __future__ import annotations

import struct

NAMES = (
    # moved on by the run
    "row",
    "position",
    "body",
    "properties",
    # what there is to write to
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
    # tables: addresses, and how many rows they have
    "topics",
    "topic_count",
    "hosts",
    "host_count",
    "numbers",
    # answers: addresses
    "out_offset",
    "out_queue_offset",
    "out_size",
    # bytes that a body may have
    "longest_body",
)
"""The numbers in their order: 64 bits each, in the machine's own byte order."""

SHEET = struct.Struct(f"={len(NAMES)}q")
MOVED = struct.Struct("=4q")
"""The first of them: what a run has moved on."""
TOPIC_ROW = struct.Struct("=5q")
"""A row of the topic table: address and length of the topic's field, magic, address and length of its places."""
HOST_ROW = struct.Struct("=20si")
"""A row of the host table: raw host, its length."""

DONE, NO_ROOM, NO_PLACE, RULED = 0, 1, 2, 3
"""Why a run stops: all rows are written; the next unit does not fit; its queue has no place yet; rules apply to it."""
