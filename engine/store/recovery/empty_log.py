"""A log that is empty or gone beside files that know its messages: most often a disk that is not mounted.

RocketMQ deletes every queue when it starts so (docs/formats/recovery.md#order). The plan of a recovery says that
truthfully, and this module says why it is likely not meant; nothing is carried out until somebody says the word
``empty_log``.

Empty is a log without a file, and one whose files hold nothing but zeros. A crash loses a tail that was not flushed and
leaves what stands in front of it, so a log with a first unit is never empty; nor is one whose first file begins behind
all that anybody knows of: the rest has expired. Of a log in several folders one may be gone: it holds no file, and
queues know of bytes that no file holds. Nobody knows anything of a new store.

Recovery with the word deletes the queues and leaves the index and the consumers' positions, as RocketMQ does; the
checkpoint it sets to zero, so that the next start is not asked for the word again: a whole checkpoint that knows of
nothing says that the index and the positions are left over. The same does a recovery that clears the log from its
first byte on, for nothing but zeros is left then: one blank unit and no message, or a first unit that is damaged. Where
something still knows of what is gone (entries beside a log of zeros, one folder of several, a checkpoint beside rebuilt
queues), a note of ours in the store says for what the word was given: nobody is asked for the very same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from engine.codec.checkpoint import CHECKPOINT_SIZE, Checkpoint
from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.foreign import FOLDER_PREFIX
from engine.errors import StoreError
from engine.mapped.read_only import LARGEST_OFFSET, ReadOnlyFile
from engine.mapped.sparse import last_byte
from engine.store.recovery.plan import EmptyLog
from engine.store.recovery.queues import RecoveredQueue
from engine.store.recovery.source import RecoverySource

_HEAD = 8
Spans = list[tuple[int, int]]
Queues = Callable[[], Iterable[RecoveredQueue]]


class LogIsEmpty(StoreError):
    """The log is empty or a part of it is gone, and others know of its messages; :attr:`found` says who. Nothing was
    changed; ``empty_log`` (on the command line ``--empty-log``) goes on all the same.
    """

    def __init__(self, found: EmptyLog, word: str = "empty_log=True") -> None:
        super().__init__(f"{found.message} (nothing was changed; {word} goes on all the same)", file=found.folder)
        self.found = found


def find(source: RecoverySource, files: Sequence[ReadOnlyFile], queues: Queues) -> EmptyLog | None:
    """Who knows of messages that the log's ``files`` do not hold; None where nothing is missed.

    ``queues`` gives every queue as recovery found it; it is asked only where the log looks empty, so a log that is
    there costs one short read. Raises :class:`engine.errors.CannotRead`.
    """
    found = missed(source, files, queues)
    return None if found is not None and found.note == source.said else found


def missed(source: RecoverySource, files: Sequence[ReadOnlyFile], queues: Queues) -> EmptyLog | None:
    """The same, whatever the word was given for."""
    if not files or _only_zeros(files):
        known = list(queues())
        return None if files and _expired(source, files[0].start_offset, known) else _whole(source, known)
    return _part(source, files, queues) if source.missing or len(source.log.folders) > 1 else None


def _only_zeros(files: Iterable[ReadOnlyFile]) -> bool:
    """No file begins with anything, and nothing stands behind either."""
    files = list(files)
    return not any(any(file.read(0, _HEAD)) for file in files) and not any(last_byte(file) for file in files)


def _expired(source: RecoverySource, start: int, queues: Iterable[RecoveredQueue]) -> bool:
    """Whether all that is known of ended before the log's first file begins: retention deleted it, and nothing was put
    since.
    """
    if start <= 0 or any(head.header.end_phy_offset >= start for head in source.index):
        return False
    return not any(_entries_in(queue, [(start, LARGEST_OFFSET)]) for queue in queues)


def _whole(source: RecoverySource, queues: Iterable[RecoveredQueue]) -> EmptyLog | None:
    found = EmptyLog(
        str(source.log.folders[0]),
        part=False,
        entries=sum(_entries(queue) for queue in queues),
        index_entries=sum(head.header.entries for head in source.index),
        groups=sum(group.offset > 0 for group in source.group_offsets),
        checkpoint=_knows(source.checkpoint),
        dledger=any(e.folder and e.name.startswith(FOLDER_PREFIX) for e in source.listing(source.root)),
    )
    if found.entries or found.checkpoint:
        return found
    return found if (found.index_entries or found.groups) and not _was_said(source) else None


def _was_said(source: RecoverySource) -> bool:
    """Whether there is a whole checkpoint (one that knows of nothing, by now): recovery with the word leaves it so."""
    return any(
        entry.name == "checkpoint" and not entry.folder and entry.size == CHECKPOINT_SIZE
        for entry in source.listing(source.root)
    )


def _entries(queue: RecoveredQueue) -> int:
    """Entries of a queue that recovery believes, before the log is asked."""
    files = queue.data.files
    return max(queue.data.end - files[0].start, 0) // queue.data.unit_size if files else 0


def _knows(checkpoint: Checkpoint) -> bool:
    times = (checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp)
    offsets = (checkpoint.master_flushed_offset, checkpoint.confirm_phy_offset, checkpoint.logics_physical_offset)
    return any((value or 0) > 0 for value in (*times, *offsets))


# -- one folder of several


def _part(source: RecoverySource, files: Sequence[ReadOnlyFile], queues: Queues) -> EmptyLog | None:
    """A folder without a file is an everyday thing where the log has few files: it counts where entries lead to bytes
    that should be there. Bytes before the first file expire, so they count only where the folder itself is gone.
    """
    used = {str(Path(file.path).parent) for file in files}
    bare = [*source.missing, *(folder for folder in source.log.folders if str(folder) not in used)]
    if not bare:
        return None
    spans = list(_nowhere(files, before=bool(source.missing)))
    entries = sum(_entries_in(queue, spans) for queue in queues())
    return EmptyLog(str(bare[0]), part=True, entries=entries) if entries else None


def _nowhere(files: Sequence[ReadOnlyFile], *, before: bool) -> Iterator[tuple[int, int]]:
    """Spans of the log that no file holds."""
    if before and files[0].start_offset > 0:
        yield 0, files[0].start_offset
    for number, file in enumerate(files[1:]):
        if file.start_offset > files[number].end_offset:
            yield files[number].end_offset, file.start_offset
    yield files[-1].end_offset, LARGEST_OFFSET


def _entries_in(queue: RecoveredQueue, spans: Spans) -> int:
    found = 0
    for file in queue.data.files:
        for rows in queue.data.rows(file, 0, file.wrote):
            points = rows.valid & (rows.size != PREFILLED_SIZE)
            for start, stop in spans:
                found += int((points & (rows.physical >= start) & (rows.physical < stop)).sum())
    return found
