"""``UNIQ_KEY`` of a message, made as Java's clients make it (docs/protocol/clients.md#messages). Java:
``MessageClientIDSetter``.

A broker gives an id to a message that has none, a producer to each message that it sends; both use the counter of their
process.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time

_COUNTER = itertools.count()
_PROCESS_PART = (
    (socket.inet_aton("127.0.0.1") + (os.getpid() & 0xFFFF).to_bytes(2, "big") + secrets.token_bytes(4)).hex().upper()
)
_HALF_HOUR_MS = 1_800_000
_month_starts: dict[int, int] = {}
"""Half hour → start of its month, ms since the epoch. Time zones differ by multiples of half an hour."""


def unique_id(now: int) -> str:
    """Return a new id of 32 hex digits: address, process id, a random number, ms since the month began, a counter.

    ``now`` is ms since the epoch; months begin at midnight in the zone of this machine.
    """
    month_start = _month_starts.get(now // _HALF_HOUR_MS)
    if month_start is None:
        local = time.localtime(now / 1000)
        month_start = int(time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))) * 1000
        _month_starts.clear()
        _month_starts[now // _HALF_HOUR_MS] = month_start
    return f"{_PROCESS_PART}{now - month_start & 0xFFFFFFFF:08X}{next(_COUNTER) & 0xFFFF:04X}"
