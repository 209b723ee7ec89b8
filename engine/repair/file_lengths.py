"""Give files of the commit log the length of the others: a broker does not start with a file of another one
(docs/formats/repair.md#lengths).

A file that was cut gets zeros behind its last byte. What stood there is lost; the repair of the log covers it. A file
that is too long loses what stands behind its end, if that is no part of the log. The length of an only file is known by
the configuration alone.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.patching.patches import ResizeFile
from engine.repair.repair import Repair, sample_of
from engine.rules import log_rules, mendable
from engine.rules.findings import Finding
from engine.sentences import join, plural, sentence

NAME = "lengths"
PAGE_BYTES = 4096
"""Brokers are configured with files of whole pages."""
_BLOCK_BYTES = 1 << 20


def repair_lengths(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of log files that are longer or shorter than the others; None if there is none.

    Raises :class:`engine.errors.CannotRead` if a file cannot be read.
    """
    if (
        store.kind != "store"
        or store.commit_log.dledger is not None
        or not any(f.id in mendable.LENGTHS for f in findings)
    ):
        return None
    files = store.log.sequence.files
    length = log_rules.likely_length([log_rules.LogFile(file.path, file.start_offset, file.size) for file in files])
    configured_length = _configured_length(store, files[0]) if len(files) == 1 else 0
    length = configured_length or length
    patches: list[ResizeFile] = []
    costs = []
    for file in files:
        if file.size in (0, length) or not length or not Path(file.path).is_relative_to(store.path):
            continue
        if file.size > length and not (configured_length or _is_surplus(store, file, length)):
            continue
        name = Path(file.path).relative_to(store.path).as_posix()
        _, sample = sample_of(store, Path(file.path))
        if file.size < length:
            why = plural(
                "the file was cut: {n:,} zero byte takes the place of what stood behind",
                "the file was cut: {n:,} zero bytes take the place of what stood behind",
                n=length - file.size,
            )
        else:
            why = plural(
                "{n:,} byte behind the end of the file is cut off",
                "{n:,} bytes behind the end of the file are cut off",
                n=file.size - length,
            )
            costs += [] if _is_zero(file, length) else [sentence("{file}: {what}", file=file.name, what=why)]
        patches.append(ResizeFile(file=name, size=file.size, new_size=length, sample=sample, why=why, name=NAME))
    if not patches:
        return None
    gains = sentence("a broker starts with these files")
    title = sentence("Give files of the commit log the length of the others")
    return Repair(NAME, mendable.LENGTHS, title, tuple(patches), gains, join("; ", costs))


def _configured_length(store: StoreSnapshot, file: ReadOnlyFile) -> int:
    """Return the length that the configuration gives to the only file of the log; 0 if it may be the wrong one: the
    file's own length could be what a broker made.
    """
    config = store.config
    if config is None or "mappedFileSizeCommitLog" not in config.given:
        return 0
    length = config.mapped_file_size_commit_log
    is_cut = file.size < length and file.size % PAGE_BYTES != 0
    is_padded = file.size > length >= store.log.max_offset - file.start_offset
    return length if is_cut or is_padded else 0


def _is_surplus(store: StoreSnapshot, file: ReadOnlyFile, length: int) -> bool:
    """Return True if the bytes of ``file`` behind ``length`` are no part of the log: zeros, or the next file begins
    where they do.
    """
    following = store.log.sequence.find(file.start_offset + length)
    is_covered = following is not None and following.start_offset == file.start_offset + length
    return is_covered or _is_zero(file, length)


def _is_zero(file: ReadOnlyFile, start: int) -> bool:
    for position in range(start, file.size, _BLOCK_BYTES):
        block = file.read(position, min(_BLOCK_BYTES, file.size - position))
        if block.count(0) != len(block):
            return False
    return True
