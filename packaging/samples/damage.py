"""Damages a store as a power cut and a bad disk would: one bit, a torn tail, one chain of the index bent into a ring.

    python damage.py STORE

The places follow from the store, so that the same store is always damaged in the same way. Prints what was done.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine.codec import index
from engine.codec.java import index_key_hash
from engine.codec.message import Unit, check_frame, list_fields
from engine.inspection import open_store

TOPIC = "OrderPaid"
PAGE = 4096


def main(store: Path) -> None:
    """All three kinds of damage, one after the other."""
    with open_store(store) as snapshot:
        units = [item for item in snapshot.log.walk() if isinstance(item, Unit)]
        files = [(file.start_offset, Path(file.path)) for file in snapshot.log.files]
        chains = [(Path(reader.path), reader.geometry) for reader in snapshot.index_files()]
    flip_bit(units, files)
    tear_tail(units, files)
    bend_chain(units, *chains[1])


def flip_bit(units: list[Unit], files: list[tuple[int, Path]]) -> None:
    """Flip a bit in the body of a unit in the log's second file, a quarter of the way."""
    middle = files[1][0] + (1 << 18)
    unit = next(unit for unit in units if unit.offset >= middle and unit.topic == TOPIC)
    path, position = place(unit.offset, files)
    raw = read(path, position, unit.size)
    body = next(part for part in list_fields(raw) if part.name == "body")
    at = position + body.position + unit.body.index(b'"cents"') + 10
    write(path, at, bytes([read(path, at, 1)[0] ^ 0x04]))
    say(f"flipped bit 0x04 of byte {at} of {path.name}: body of the unit at {unit.offset}, key {unit.keys[0]}")


def tear_tail(units: list[Unit], files: list[tuple[int, Path]]) -> None:
    """The last pages of the log never reached the disk: from a page's edge inside a unit on, everything is zero."""
    end = units[-1].end
    for unit in reversed(units):
        edge = unit.end // PAGE * PAGE
        path, position = place(unit.offset, files)
        kept = read(path, position, edge - unit.offset) if edge > unit.offset else b""
        if kept and isinstance(check_frame(kept + bytes(unit.end - edge), 0, unit.size), str):
            write(path, position + len(kept), bytes(end - edge))
            lost = sum(item.offset > unit.offset for item in units)
            say(f"tore the unit at {unit.offset}: zero from {edge} on; {lost} units behind it are gone")
            return
    raise SystemExit("no unit lies across the edge of a page")


def bend_chain(units: list[Unit], path: Path, geometry: index.Geometry) -> None:
    """In a chain of a few entries the oldest points to the newest."""
    raw = path.read_bytes()
    topic_key = {index_key_hash(unit.topic, key): f"{unit.topic} {key}" for unit in units for key in unit.keys}
    for slot in range(geometry.slots):
        chain = []
        entry = int.from_bytes(raw[geometry.slot_position(slot) :][:4], "big")
        while entry:
            chain.append(entry)
            newest = index.decode_entry(raw, geometry.entry_position(chain[0]))
            entry = index.decode_entry(raw, geometry.entry_position(entry)).prev
        if 4 <= len(chain) <= 6 and newest.key_hash in topic_key:
            write(path, geometry.entry_position(chain[-1]) + index.ENTRY_SIZE - 4, chain[0].to_bytes(4, "big"))
            say(f"bent slot {slot} of {path.name}: entries {chain} are a ring; trace {topic_key[newest.key_hash]}")
            return
    raise SystemExit("no chain has four to six entries")


def say(line: str) -> None:
    """A line of the account."""
    sys.stdout.write(line + "\n")


def place(offset: int, files: list[tuple[int, Path]]) -> tuple[Path, int]:
    """The file that holds ``offset`` and the position in it."""
    start, path = max(file for file in files if file[0] <= offset)
    return path, offset - start


def read(path: Path, at: int, length: int) -> bytes:
    """``length`` bytes at ``at``."""
    with path.open("rb") as file:
        file.seek(at)
        return file.read(length)


def write(path: Path, at: int, data: bytes) -> None:
    """``data`` at ``at``, the rest as it was."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
