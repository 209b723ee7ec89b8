"""The files of a store that is about to be written, as recovery reads them: through the disk of the engine
(docs/formats/recovery.md#order).

Nothing is created or changed. Sizes come from the configuration, as a broker takes them;
:mod:`engine.inspection.recovery` hands over stores that are only looked at, whose sizes are worked out instead.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from engine.codec.checkpoint import Checkpoint, decode
from engine.codec.index import HEADER_SIZE, decode_header
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, CorruptUnit, StoreError
from engine.files.layout import StorePaths, parse_file_name
from engine.files.store_folders import StoreFolders, settle_folders
from engine.mapped.disk import Disk, DiskFile
from engine.mapped.read_only import DescriptorCache, FileSequence, ReadOnlyFile
from engine.sentences import sentence
from engine.store.recovery import source as recovery_tables
from engine.store.recovery.source import Entry, IndexHead, QueueFiles, QueueKind, RecoverySource

CHECKPOINT_NOTE = sentence("the checkpoint's time less 3 s")
MIN_MAPPED_BYTES = 64 << 20
"""Bytes of a file from which on mapping it costs less than copying."""
Answer = TypeVar("Answer")


def source(paths: StorePaths, config: MessageStoreConfig, disk: Disk) -> RecoverySource:
    """Return the store below ``paths.root`` as it stands now. Raises ``OSError`` if a folder cannot be listed,
    and :class:`CannotRead` if a file of the log or a table cannot be read: before anything is changed.
    """
    listing = _Listing(disk)
    checkpoint, note = read_checkpoint(
        disk.read_file(paths.checkpoint) if _is_file(listing, paths.checkpoint) else None
    )
    tables = recovery_tables.Tables(_reader(paths, disk), str(paths.config))
    log = DiskSequence(log_folders(paths, config), listing, disk, config.mapped_file_size_commit_log)
    for file in log.files:  # recovery reads the last ones, and begins to write on the way
        file.read(0, 1)
    return RecoverySource(
        root=paths.root,
        log=log,
        log_file_size=config.mapped_file_size_commit_log,
        queues=tuple(_queues(paths, config, listing, disk)),
        queue_file_size=config.consume_queue_file_size,
        batch_queue_file_size=config.mapper_file_size_batch_consume_queue,
        index=tuple(_index_heads(paths, listing, disk)),
        checkpoint=checkpoint,
        checkpoint_note=note,
        abort=disk.exists(paths.abort),
        config=config,
        batch_topics=tables.batch_topics(),
        group_offsets=tuple(tables.group_offsets()),
        tables=tables.states(),
        listing=listing,
        light=config.enable_multi_dispatch,
        missing=tuple(folder for folder in log_folders(paths, config) if not disk.exists(folder)),
        confirmed_note=disk.read_file(paths.confirmed_empty_log)
        if _is_file(listing, paths.confirmed_empty_log)
        else None,
        heal=True,
    )


def log_folders(paths: StorePaths, config: MessageStoreConfig) -> tuple[Path, ...]:
    """Folders of the commit log: those of a multi-path log, read-only ones behind them, else ``commitlog``.

    Raises as :func:`written_folders`.
    """
    return written_folders(paths, config).log


def written_folders(paths: StorePaths, config: MessageStoreConfig) -> StoreFolders:
    """The folders of a store that is written. Raises :class:`engine.files.store_folders.OutsidePath` where the
    configuration leads to folders that are not of the store.
    """
    folders = settle_folders(paths.root, config)
    folders.refuse_outside()
    return folders


def read_checkpoint(raw: bytes | None) -> tuple[Checkpoint, str]:
    """Read the checkpoint as a broker maps it, and where its times come from: bytes that are missing read as zero."""
    if raw is None:
        return Checkpoint(0, 0, 0), sentence("there is no checkpoint")
    try:
        return decode(raw), CHECKPOINT_NOTE
    except CorruptUnit as error:
        return Checkpoint(0, 0, 0), sentence("the checkpoint is invalid: {why}", why=error.what)


class LoadedFile(ReadOnlyFile):
    """A file of the engine's disk; its bytes come through the same descriptors that writing goes through."""

    __slots__ = ("_disk", "_file")

    def __init__(self, path: str, start_offset: int, size: int, disk: Disk) -> None:
        super().__init__(path, start_offset, size, _NO_CACHE)
        self._disk = disk
        self._file: DiskFile | None = None

    def read(self, position: int, size: int) -> bytes:
        """See :meth:`ReadOnlyFile.read`."""
        return self._asked(lambda file: file.read(position, size) if size > 0 and position >= 0 else b"", position)

    def read_into(self, view: memoryview, position: int) -> int:
        """See :meth:`ReadOnlyFile.read_into`."""
        return self._asked(lambda file: file.read_into(view, position), position)

    def lend(self, position: int, size: int) -> memoryview | None:
        """See :meth:`ReadOnlyFile.lend`: the lock keeps others from cutting the file."""
        if self.size < MIN_MAPPED_BYTES or position + size > self.size:
            return None
        return self._asked(lambda file: file.lend(position, size), position)

    def extents(self, position: int) -> list[tuple[int, int]]:
        """See :meth:`ReadOnlyFile.extents`."""
        return self._asked(lambda file: file.extents(position), position)

    def _asked(self, ask: Callable[[DiskFile], Answer], position: int) -> Answer:
        try:
            if self._file is None:
                if not self._disk.exists(Path(self.path)):  # opening would make it again
                    raise FileNotFoundError(errno.ENOENT, sentence("it was deleted after it was listed"), self.path)
                self._file = self._disk.open(Path(self.path), self.size)
            return ask(self._file)
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=error.strerror), file=self.path, offset=position
            ) from error


class DiskSequence(FileSequence):
    """The files of one file queue as they were listed once."""

    def __init__(self, folders: Iterable[Path], listing: _Listing, disk: Disk, file_size: int) -> None:
        self._listing = listing
        self._disk = disk
        super().__init__(folders, _NO_CACHE, file_size)

    def refresh(self) -> bool:
        """Take the files of the listing; it never changes."""
        files: list[ReadOnlyFile] = []
        for folder in self.folders:
            for entry in self._listing(folder):
                start = None if entry.folder else parse_file_name(entry.name)
                if start is not None and start >= 0:
                    files.append(LoadedFile(entry.path, start, entry.size, self._disk))
        self.files = sorted(files, key=lambda f: f.start_offset)
        for file, next_file in pairwise(self.files):
            if file.start_offset == next_file.start_offset:
                raise StoreError(
                    sentence(
                        "{path} begins at the same offset: nothing is written while both are there, move one of "
                        "the two out of the log's folders",
                        path=file.path,
                    ),
                    file=next_file.path,
                    offset=next_file.start_offset,
                )
        return False


class _Listing:
    """Contents of the folders; a folder is listed once."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._seen: dict[str, list[Entry]] = {}  # a path is hashed ten times as slowly as its text

    def __call__(self, folder: Path) -> list[Entry]:
        text = str(folder)
        listing = self._seen.get(text)
        if listing is None:
            entries = self._disk.entries(folder)
            listing = self._seen[text] = [
                Entry(f"{text}/{name}", name, size, is_folder) for name, size, is_folder in entries
            ]
        return listing


def _is_file(listing: _Listing, path: Path) -> bool:
    return any(entry.name == path.name and not entry.folder for entry in listing(path.parent))


def _queues(paths: StorePaths, config: MessageStoreConfig, listing: _Listing, disk: Disk) -> Iterator[QueueFiles]:
    kinds: tuple[tuple[QueueKind, Path, int], ...] = (
        ("simple", paths.consumequeue, config.consume_queue_file_size),
        ("batch", paths.batchconsumequeue, config.mapper_file_size_batch_consume_queue),
    )
    for kind, root, size in kinds:
        for topic in _folders(listing, root):
            place = root / topic
            for name in _folders(listing, place):
                queue_id = parse_file_name(name)
                if queue_id is None:
                    continue
                ext = None
                if kind == "simple" and config.enable_consume_queue_ext:
                    folder = paths.ext_folder(topic, queue_id)
                    ext = DiskSequence((folder,), listing, disk, config.mapped_file_size_consume_queue_ext)
                sequence = DiskSequence((place / name,), listing, disk, size)
                yield QueueFiles(topic, queue_id, kind, sequence, ext if ext is not None and ext.files else None)


def _folders(listing: _Listing, folder: Path) -> list[str]:
    return [entry.name for entry in listing(folder) if entry.folder]


def _index_heads(paths: StorePaths, listing: _Listing, disk: Disk) -> Iterator[IndexHead]:
    for entry in listing(paths.index):
        if not entry.folder and parse_file_name(entry.name) is not None:
            head = LoadedFile(entry.path, 0, entry.size, disk).read(0, HEADER_SIZE)
            yield IndexHead(entry.name, entry.path, decode_header(head.ljust(HEADER_SIZE, b"\0")))


def _reader(paths: StorePaths, disk: Disk) -> Callable[[str], bytes | None]:
    def read(name: str) -> bytes | None:
        try:
            return disk.read_file(paths.config / name)
        except IsADirectoryError as error:
            raise CorruptUnit(sentence("expected a file, found a folder"), file=str(paths.config / name)) from error
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {error}", error=error.strerror), file=str(paths.config / name)
            ) from error

    return read


_NO_CACHE = DescriptorCache(0)
