"""A log that is empty or gone although other files know its messages: most often a disk that is not mounted.

RocketMQ deletes every queue when it starts on such a store (docs/formats/recovery.md#order). The plan of a
recovery shows that, and this module says why it is likely not meant. Nothing is carried out until the caller
allows it with ``empty_log``.

A log is empty if it has no file, or if its files hold only zeros. A crash loses a tail that was not flushed and
leaves what stands in front of it, so a log with a first unit is never empty. Nor is a log empty whose first file
begins behind everything that other files know: the rest has expired. If a log lies in several folders, one of
them may be gone: it holds no file, and queues know of bytes that no file holds. Of a new store no file knows
anything.

Recovery with ``empty_log`` deletes the queues and leaves the index and the consumers' positions, as RocketMQ
does. It sets the checkpoint to zero, so that the next start does not need ``empty_log`` again: a whole checkpoint
that knows of nothing shows that the index and the positions are left over. A recovery that clears the log from
its first byte on does the same, because only zeros are left then: one blank unit and no message, or a first unit
that is damaged. Where files still know of what is gone (entries beside a log of zeros, one folder of several, a
checkpoint beside rebuilt queues), a note in the store keeps the evidence that was overruled: the same evidence
does not stop a start again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from engine.codec.checkpoint import CHECKPOINT_SIZE, Checkpoint
from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.dledger import FOLDER_PREFIX
from engine.errors import StoreError
from engine.mapped.read_only import MAX_OFFSET, ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.sentences import sentence
from engine.store.recovery.plan import EmptyLog
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.source import RecoverySource

_HEAD = 8
Spans = list[tuple[int, int]]
Queues = Callable[[], Iterable[RecoveredQueue]]


class LogIsEmpty(StoreError):
    """The log is empty or a part of it is gone, and other files know of its messages; :attr:`found` is the evidence.
    Nothing was changed; ``empty_log`` (on the command line ``--empty-log``) goes on all the same.
    """

    def __init__(self, empty_log: EmptyLog, word: str = "empty_log=True") -> None:
        super().__init__(
            sentence(
                "{message} (nothing was changed; use {word} to go on anyway)", message=empty_log.message, word=word
            ),
            file=empty_log.folder,
        )
        self.empty_log = empty_log


def find(source: RecoverySource, files: Sequence[ReadOnlyFile], queues: Queues) -> EmptyLog | None:
    """Return what knows of messages that the log's ``files`` do not hold; None if nothing is missed.

    ``queues`` gives every queue as recovery found it; it is asked only where the log looks empty, so a log that is
    there costs one short read. Raises :class:`engine.errors.CannotRead`.
    """
    empty_log = missed(source, files, queues)
    return None if empty_log is not None and empty_log.note == source.confirmed_note else empty_log


def missed(source: RecoverySource, files: Sequence[ReadOnlyFile], queues: Queues) -> EmptyLog | None:
    """Like :func:`find`, with evidence that was overruled before."""
    if not files or _only_zeros(files):
        recovered_queues = list(queues())
        return (
            None
            if files and _has_expired(source, files[0].start_offset, recovered_queues)
            else _evidence_of_whole_log(source, recovered_queues)
        )
    return _evidence_of_folder(source, files, queues) if source.missing or len(source.log.folders) > 1 else None


def _only_zeros(files: Iterable[ReadOnlyFile]) -> bool:
    """Return True if no file has a byte at its beginning, nor anywhere behind."""
    files = list(files)
    return not any(any(file.read(0, _HEAD)) for file in files) and not any(last_byte(file) for file in files)


def _has_expired(source: RecoverySource, start: int, queues: Iterable[RecoveredQueue]) -> bool:
    """Return True if everything that is known of ended before the log's first file begins: retention deleted it, and
    nothing was put since.
    """
    if start <= 0 or any(head.header.end_phy_offset >= start for head in source.index):
        return False
    return not any(_entries_in(queue, [(start, MAX_OFFSET)]) for queue in queues)


def _evidence_of_whole_log(source: RecoverySource, queues: Iterable[RecoveredQueue]) -> EmptyLog | None:
    empty_log = EmptyLog(
        str(source.log.folders[0]),
        part=False,
        entries=sum(_entries(queue) for queue in queues),
        index_entries=sum(head.header.entries for head in source.index),
        groups=sum(group.offset > 0 for group in source.group_offsets),
        checkpoint=_knows_messages(source.checkpoint),
        dledger=any(e.folder and e.name.startswith(FOLDER_PREFIX) for e in source.listing(source.root)),
    )
    if empty_log.entries or empty_log.checkpoint:
        return empty_log
    return empty_log if (empty_log.index_entries or empty_log.groups) and not _was_allowed(source) else None


def _was_allowed(source: RecoverySource) -> bool:
    """Return True if there is a whole checkpoint (by now one that knows of nothing): recovery with ``empty_log``
    leaves it so.
    """
    return any(
        entry.name == "checkpoint" and not entry.folder and entry.size == CHECKPOINT_SIZE
        for entry in source.listing(source.root)
    )


def _entries(queue: RecoveredQueue) -> int:
    """Number of entries of a queue that recovery believes, before it looks at the log."""
    files = queue.data.files
    return max(queue.data.end - files[0].start, 0) // queue.data.unit_size if files else 0


def _knows_messages(checkpoint: Checkpoint) -> bool:
    if checkpoint.impossible:
        return False  # something else stands in the file
    times = (checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp)
    offsets = (checkpoint.master_flushed_offset, checkpoint.confirm_phy_offset, checkpoint.logics_physical_offset)
    return any((value or 0) > 0 for value in (*times, *offsets))


# -- one folder of several


def _evidence_of_folder(source: RecoverySource, files: Sequence[ReadOnlyFile], queues: Queues) -> EmptyLog | None:
    """Return the evidence that one folder of several is gone. A folder without a file is normal where the log has
    few files: it counts where entries lead to bytes that should be there. Bytes before the first file expire, so
    they count only where the folder itself is gone.
    """
    used = {str(Path(file.path).parent) for file in files}
    bare = [*source.missing, *(folder for folder in source.log.folders if str(folder) not in used)]
    if not bare:
        return None
    spans = list(_uncovered_spans(files, from_zero=bool(source.missing)))
    entries = sum(_entries_in(queue, spans) for queue in queues())
    return EmptyLog(str(bare[0]), part=True, entries=entries) if entries else None


def _uncovered_spans(files: Sequence[ReadOnlyFile], *, from_zero: bool) -> Iterator[tuple[int, int]]:
    """Spans of the log that no file holds."""
    if from_zero and files[0].start_offset > 0:
        yield 0, files[0].start_offset
    for number, file in enumerate(files[1:]):
        if file.start_offset > files[number].end_offset:
            yield files[number].end_offset, file.start_offset
    yield files[-1].end_offset, MAX_OFFSET


def _entries_in(queue: RecoveredQueue, spans: Spans) -> int:
    count = 0
    for file in queue.data.files:
        for rows in queue.data.rows(file, 0, file.wrote):
            points = rows.valid & (rows.size != PREFILLED_SIZE)
            for start, stop in spans:
                count += int((points & (rows.physical >= start) & (rows.physical < stop)).sum())
    return count
