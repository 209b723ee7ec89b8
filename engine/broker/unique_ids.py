"""``UNIQ_KEY`` of a message whose sender gave none (protocol 5.4). Java: ``MessageClientIDSetter``."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time

_COUNT = itertools.count()
_HEAD = (
    socket.inet_aton("127.0.0.1") + (os.getpid() & 0xFFFF).to_bytes(2, "big") + secrets.token_bytes(4)
).hex().upper()  # fmt: skip


def unique_id(now: int) -> str:
    """A new id: 32 hex digits, of address, process, a number of its own, the time since the month began, a counter."""
    local = time.localtime(now / 1000)
    since = now - int(time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))) * 1000
    return f"{_HEAD}{since & 0xFFFFFFFF:08X}{next(_COUNT) & 0xFFFF:04X}"
