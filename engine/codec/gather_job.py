"""The order sheet of gathering: what compiled code reads and writes while it goes through message objects.

A row of 64-bit numbers in memory, as in :mod:`engine.codec.write_job`.
"""

from __future__ import annotations

import struct

NAMES = (
    # the list, and how many messages there are
    "messages", "rows",
    # addresses of objects that never go away: types, None, and the number 0
    "message_type", "bytes_type", "str_type", "dict_type", "int_type", "none", "zero",
    # where in a message object the references to its fields stand
    "body", "born_host", "born_timestamp", "flag", "prepared_transaction_offset", "properties", "properties_raw",
    "queue_id", "reconsume_times", "store_host", "sys_flag", "topic",
    # names of the properties that every map has: their objects, their text with 0x01 behind each, where each ends
    "names", "name_count", "name_text", "name_ends",
    # columns to be filled: addresses
    "body_lengths", "text_lengths", "queue_ids", "born_timestamps",
    # blobs to be filled: addresses and room
    "bodies", "bodies_room", "texts", "texts_room",
    # answers: bytes of the blobs, whether all have one topic, one host of birth, a time of birth (1), or none has (0)
    "bodies_size", "texts_size", "one_topic", "one_host", "born",
    # scratch
    "scratch_1", "scratch_2", "scratch_3",
)  # fmt: skip
"""The numbers in their order: 64 bits each, in the machine's own byte order."""

SHEET = struct.Struct(f"={len(NAMES)}q")
FIELDS = NAMES[NAMES.index("body") : NAMES.index("names")]
"""The fields of a message, as their slots are called."""
BODIES_SIZE = NAMES.index("bodies_size")

DONE, NO_ROOM, REFUSED = 0, 1, 2
"""How a run ends: all is gathered; a blob needs more room (its size stands in the sheet); this is for plain Python."""
