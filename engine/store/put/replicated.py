"""A master's log as its HA port gives it, appended as it is (spec 15; Java: ``CommitLog.appendData``)."""

from __future__ import annotations

from engine.errors import StoreError
from engine.store.put.log import PutLog


def append_replicated(log: PutLog, offset: int, data: bytes | memoryview, stored: int) -> int:
    """Append whole units, blanks with their tails among them, that stand at ``offset`` of the master's log; gives the
    log's end. ``stored`` is the store time (ms) of the last message among them, 0 without one. An empty log begins
    there, which must be a file's first byte then.

    Raises :class:`StoreError` where ``offset`` is not the log's end or bytes go over a file's end,
    :class:`engine.errors.NotWriteable`, ``OSError``.
    """
    with log.appending:
        empty = log.files.last is None
        at = 0
        while at < len(data):
            file = log.files.last_or_create(offset)
            if file is None:
                raise StoreError("no new file of the commit log can be made", file=str(log.files.folders[0]))
            end = file.start_offset + file.wrote
            if end != offset + at:
                where = "begins at" if empty else "ends at"
                raise StoreError(f"expected bytes of offset {end:,}, where the log {where}, found {offset + at:,}")
            piece = data[at : at + file.size - file.wrote]
            file.append(piece, stored)
            at += len(piece)
        return log.wrote
