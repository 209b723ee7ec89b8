"""Files of a log that are full of units; some bodies contain bytes that look like units."""

from __future__ import annotations

import random

from raw_units import raw_blank, raw_unit

SIZE = 1 << 15


BODY = 88
"""Bytes in front of the body of a unit with hosts of four bytes."""


def full_file(base, seed, size=SIZE, max_body=400, nested=0.0):
    """Return a log file full of units; in a share of ``nested`` the body is made of units for exactly its place."""
    rng, log = random.Random(seed), bytearray()
    while True:
        body = rng.randbytes(rng.randrange(max_body))
        if rng.random() < nested:
            body = inner_units(rng, base + len(log) + BODY)
        unit = raw_unit(base + len(log), body=body, queue_offset=len(log))
        if len(log) + len(unit) + 8 > size:
            return log + raw_blank(size - len(log))
        log += unit


def inner_units(rng, place):
    body = bytearray(rng.randbytes(rng.randrange(3)))
    for _ in range(rng.randrange(1, 6)):
        body += raw_unit(place + len(body), topic=b"Inner", body=rng.randbytes(rng.randrange(90)))
    return bytes(body) + (raw_blank(SIZE - (place + len(body)) % SIZE) if rng.random() < 0.2 else b"")
