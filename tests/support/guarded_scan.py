"""Run as a process: compiled walks over damaged bytes beside pages without rights; a stray read ends it.

``guarded_scan.py N`` walks N cases and prints their number.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402
from raw_units import raw_blank, raw_log  # noqa: E402

from engine.codec.columns import UnitColumns, next_unit, scan_block, twin  # noqa: E402
from engine.codec.index_builder import key_hashes  # noqa: E402
from engine.codec.topic_table import TopicTable  # noqa: E402

PAGE = mmap.PAGESIZE
ROOM = 8 * PAGE


def guarded() -> np.ndarray:
    """Return ``ROOM`` bytes between two pages without any rights."""
    full_mmap = mmap.mmap(-1, ROOM + 2 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(full_mmap))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (address, address + PAGE + ROOM):
        if protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(full_mmap, np.uint8)[PAGE : PAGE + ROOM]


def log_of(rng: random.Random) -> bytes:
    """Return a few units of many shapes, some bytes of them changed, cut off anywhere."""
    units = [
        {
            "body": rng.randbytes(rng.choice((0, 1, 3, 4, 15, 16, 17, 63, 64, 200, 1000))),
            "topic": rng.randbytes(rng.choice((0, 1, 7, 8, 9, 100))),
            "properties": b"\x02".join(
                rng.choice((b"TAGS\x01", b"KEYS\x01", b"UNIQ_KEY\x01", b"TAG", b"DELAY\x01", b""))
                + rng.choice((b"", b"7", rng.randbytes(rng.randrange(40)), b"a b  c", "ä".encode() * 5, b"\xf0"))
                for _ in range(rng.randrange(6))
            ),
            "version": rng.choice((1, 2)),
            "sys_flag": rng.randrange(256),
        }
        for _ in range(rng.randint(1, 5))
    ]
    data = bytearray(raw_log(*units) + (raw_blank(500) if rng.random() < 0.2 else b""))
    for _ in range(rng.randrange(4)):
        data[rng.randrange(len(data))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data[: rng.randint(1, len(data))] if rng.random() < 0.5 else data)


def main() -> None:
    """Walk as many cases as the command line says."""
    if twin() is None:
        raise SystemExit("no compiled twin")
    room = guarded()
    out, cases = UnitColumns(16), int(sys.argv[1])
    for seed in range(cases):
        data = log_of(random.Random(seed))[:ROOM]
        for place in (room[ROOM - len(data) :], room[: len(data)]):
            place[:] = np.frombuffer(data, np.uint8)
            topics = TopicTable()
            for position in (0, seed % len(data)):
                scan_block(place, len(data), 0, position, out, topics)
                key_hashes(out, topics)
                next_unit(place, len(data), 0, position, len(data))
    sys.stdout.write(f"{cases} cases\n")


if __name__ == "__main__":
    main()
