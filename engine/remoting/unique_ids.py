"""``UNIQ_KEY`` of a message, made as Java's clients make it (docs/protocol/clients.md#messages). Java:
``MessageClientIDSetter``.

A broker gives an id to a message that has none, a producer to each message that it sends; both count on within one
process.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time

_COUNT = itertools.count()
_HEAD = (
    (socket.inet_aton("127.0.0.1") + (os.getpid() & 0xFFFF).to_bytes(2, "big") + secrets.token_bytes(4)).hex().upper()
)
_HALF_HOUR = 1_800_000
_months: dict[int, int] = {}
"""Half hour → the time (ms since the epoch) at which its month began. Time zones differ by multiples of half an hour.
"""


def unique_id(now: int) -> str:
    """A new id: 32 hex digits, of address, process, a number of its own, the time since the month began, a counter.

    ``now`` is ms since the epoch; months begin at midnight where this machine is.
    """
    began = _months.get(now // _HALF_HOUR)
    if began is None:
        local = time.localtime(now / 1000)
        began = int(time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))) * 1000
        _months.clear()
        _months[now // _HALF_HOUR] = began
    return f"{_HEAD}{now - began & 0xFFFFFFFF:08X}{next(_COUNT) & 0xFFFF:04X}"
