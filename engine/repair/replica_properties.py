"""Properties of messages that were overwritten or written only in part, taken from a replica
(docs/formats/repair.md#from).

No CRC covers them, so nothing in the store itself brings them back. Zeros show them (CL04), else an entry of the index
(IX06) or of a queue (CQ09) that was made of other keys or tags. A replica's message counts as the same one if it is at
the same physical offset and differs in its properties only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.codec.block_texts import ZERO_RUN_BYTES
from engine.codec.message import Unit
from engine.errors import StoreError
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.patching.patches import WriteBytes
from engine.rules.findings import Finding
from engine.sentences import sentence

_PLACES = {"CL04": ("", ""), "CQ09": ("expected", "physicalOffset"), "IX06": ("found", "phyOffset")}
"""Part and field of a finding's evidence that name the message; empty: the offset of the finding does."""
RULES = frozenset(_PLACES)
ZERO = b"\0"


def property_patches(
    store: StoreSnapshot, paths: Sequence[str | Path], findings: Iterable[Finding], name: str
) -> Iterator[tuple[WriteBytes, Unit]]:
    """Yield a patch for each message of :data:`RULES` that a store or log file at ``paths`` has, and that message."""
    offsets = sorted({offset for finding in findings if (offset := _message_of(finding)) is not None})
    for path in paths if offsets else ():
        with suppress(StoreError), open_store(path) as replica:
            for offset in list(offsets):
                patch = _patch(store, replica, offset, name)
                if patch is not None:
                    offsets.remove(offset)
                    yield patch


def _message_of(finding: Finding) -> int | None:
    """Return the physical offset of the message whose properties a finding doubts; None if it doubts none."""
    if finding.id not in _PLACES:
        return None
    part, name = _PLACES[finding.id]
    if not part:
        return finding.offset
    evidence = finding.evidence.get(part)
    offset = evidence.get(name) if isinstance(evidence, dict) else None
    return offset if isinstance(offset, int) else None


def _patch(store: StoreSnapshot, replica: StoreSnapshot, offset: int, name: str) -> tuple[WriteBytes, Unit] | None:
    torn, stored = store.log.seen_at(offset), replica.log.seen_at(offset)
    if not isinstance(torn, Unit) or not isinstance(stored, Unit) or stored.crc == "bad":
        return None
    is_same = _without_properties(torn) == _without_properties(stored)
    if not is_same or stored.properties_raw == torn.properties_raw or _is_torn(stored):
        return None
    file, other_file = store.log.sequence.find(offset), replica.log.sequence.find(offset)
    if file is None or other_file is None or not Path(file.path).is_relative_to(store.path):
        return None
    old, new = store.log.read(offset, torn.size), replica.log.read(offset, stored.size)
    why = sentence(
        "the same message with its properties is in {file} at {offset:,}",
        file=other_file.path,
        offset=offset - other_file.start_offset,
    )
    place = Path(file.path).relative_to(store.path).as_posix()
    return WriteBytes(file=place, offset=offset - file.start_offset, old=old, new=new, why=why, name=name), stored


def _without_properties(unit: Unit) -> Unit:
    return replace(unit, properties_raw=b"", properties={})


def _is_torn(unit: Unit) -> bool:
    text = unit.properties_raw
    return text.startswith(ZERO) or text.endswith(ZERO) or bytes(ZERO_RUN_BYTES) in text
