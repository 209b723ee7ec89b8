"""Fill holes of the commit log with the messages that were there, from a replica or the image of a disk
(docs/formats/repair.md#from).

A unit is taken if its physical offset is that of the hole, if it fits, its CRC is right and nothing speaks for another
one. A missing file is made again if units for it are found. What stays open is left to the other repairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.codec.filler import BLANK_BYTES, blank
from engine.files.layout import queue_file_name
from engine.inspection.salvage.salvage_search import COMPLETE, EVIDENCE_WORDS, Salvaged, SalvageSearch
from engine.inspection.salvage.searched_files import open_images
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, WriteBytes, WriteFile
from engine.repair import replica_properties
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.rules.findings import Finding
from engine.sentences import join, plural, sentence

NAME = "real-messages"
MAX_BYTES = 512 << 20
"""Maximum bytes of messages that are written: patches are held in memory."""
_MAX_NAMED = 20


@dataclass(slots=True)
class _NewFile:
    """The content of a missing file from offset ``start`` on."""

    start: int
    content: bytearray


def repair_from(
    store: StoreSnapshot,
    paths: Sequence[str | Path],
    findings: Iterable[Finding],
    on_progress: Callable[[int, int], None],
) -> Repair | None:
    """Return the repair that fills holes of the log from the files or stores at ``paths``, and puts back the properties
    of messages that ``findings`` name; None if nothing fits.

    ``on_progress`` gets the bytes done and in all. Raises :class:`engine.errors.CannotRead`.
    """
    if store.kind != "store" or store.commit_log.dledger is not None or not store.log.files:
        return None
    with open_images(paths) as images:
        search = SalvageSearch(store, images)
        total = search.bytes_to_read
        search.run(lambda done: on_progress(done, total))
        rows, left_out = _fitting(search.rows())
    folder = Path(store.log.files[0].path).parent
    if not folder.is_relative_to(store.path):
        return None
    file_size = max(file.size for file in store.log.files)
    patches: list[Patch] = []
    filled: list[str] = []
    new_files: dict[int, _NewFile] = {}
    for row in rows:
        offset = row.physical_offset or 0
        file = store.log.sequence.find(offset)
        if file is None:
            start = offset - offset % file_size
            new_file = new_files.setdefault(start, _NewFile(start, bytearray()))
            position = offset - start
            if position + len(row.data) + BLANK_BYTES > file_size:
                continue
            new_file.content.extend(bytes(position + len(row.data) - len(new_file.content)))
            new_file.content[position : position + len(row.data)] = row.data
            filled.append(_name(row))
            continue
        old = store.log.read(offset, len(row.data))
        if old == row.data or len(old) < len(row.data) or not Path(file.path).is_relative_to(store.path):
            continue
        name = Path(file.path).relative_to(store.path).as_posix()
        position = offset - file.start_offset
        patches.append(WriteBytes(file=name, offset=position, old=old, new=row.data, why=_why(row), name=NAME))
        filled.append(_name(row))
    for start, new_file in sorted(new_files.items()):
        content = bytes(new_file.content)
        content += blank(file_size - len(content))[:BLANK_BYTES]
        name = f"{folder.relative_to(store.path).as_posix()}/{queue_file_name(start)}"
        why = sentence("the file is missing: the messages of it that were found")
        zeros = file_size - len(content)
        patches.append(WriteFile(file=name, old=None, new=content, zeros=zeros, why=why, name=NAME))
    for patch, unit in replica_properties.property_patches(store, paths, findings, NAME):
        patches.append(patch)
        filled.append(f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}")
    return _as_repair(patches, filled, left_out) if patches else None


def _as_repair(patches: list[Patch], filled: list[str], left_out: int) -> Repair:
    gains = plural(
        "{n:,} message is as it was ({names})",
        "{n:,} messages are as they were ({names})",
        n=len(filled),
        names=join(", ", [*filled[:_MAX_NAMED], *(["…"] if len(filled) > _MAX_NAMED else [])]),
    )
    costs = plural(
        "{n:,} message is left out: patches have at most 512 MiB; copy whole files of the replica instead",
        "{n:,} messages are left out: patches have at most 512 MiB; copy whole files of the replica instead",
        n=left_out,
    )
    rules = mendable.LOG | mendable.MISSING_FILES | mendable.LENGTHS | {"CL11"} | replica_properties.RULES
    title = sentence("Fill holes of the commit log with the messages that were there")
    new_units = len(filled)  # a start that cuts the log in front of them loses them again: that is not worse than today
    return Repair(NAME, rules, title, tuple(patches), gains, costs if left_out else "", new_units=new_units)


def _fitting(rows: Iterator[Salvaged]) -> tuple[list[Salvaged], int]:
    """Return the rows that certainly belong into holes of the log, and the number of those beyond :data:`MAX_BYTES`."""
    fitting: list[Salvaged] = []
    size = left_out = end = 0
    for row in rows:
        signs, offset = {*row.evidence}, row.physical_offset
        is_certain = (
            row.verdict in COMPLETE and row.rank == 1 and not row.ties and bool(signs & {"bodyCrc", "propertyCrc"})
        )
        is_in_log = "missingInLog" in signs or ("behindLog" in signs and "queueEntry" in signs)
        if not is_certain or not is_in_log or offset is None or offset < end:
            continue
        end = offset + len(row.data)
        size += len(row.data)
        if size > MAX_BYTES:
            left_out += 1
        else:
            fitting.append(row)
    return fitting, left_out


def _name(row: Salvaged) -> str:
    return f"{row.topic}/{row.queue_id}/{row.queue_offset}"


def _why(row: Salvaged) -> str:
    place = row.places[0]
    return sentence(
        "the message {name} is in {file} at {offset:,}: {signs}",
        name=_name(row),
        file=place.file,
        offset=place.offset,
        signs=join(", ", [sentence(EVIDENCE_WORDS[sign]) for sign in row.evidence if sign not in ("magic", "lengths")]),
    )
