"""The index files of a store: made, filled, queried, deleted (docs/formats/index-file.md; Java: IndexService)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.callbacks import Clock
from engine.codec.index import Geometry
from engine.codec.index_builder import IndexKeys
from engine.codec.index_keys import index_keys
from engine.codec.index_query import MappedFiles, TimeWindow, find_key, find_keys, hashes_of, mapped_files, with_newest
from engine.codec.java import index_key_hash
from engine.codec.message import ROLLBACK, TRANSACTION_MASK
from engine.config import MessageStoreConfig
from engine.errors import WrongFileSize
from engine.files.layout import StorePaths, index_file_name
from engine.mapped.disk import Disk
from engine.rules.unit_check import Request
from engine.sentences import sentence
from engine.store.index_file import IndexFile

_CREATE_TRIES, _RETRY_PAUSE_S = 3, 1.0
_log = logging.getLogger(__name__)


class KeyAnswers(NamedTuple):
    """Offsets into the log that may hold many keys (hash collisions are among them): in the order of the log, key
    after key; ``ends[i]`` is where those of key ``i`` end; and the end of the newest file.
    """

    ends: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    last_update_timestamp: int
    last_update_offset: int


class IndexService:
    """Puts come from one thread; any thread asks. ``clock`` gives ms, names of files are its local time.

    ``on_full(file)`` is called when a file has been followed by a new one: it should see to :meth:`IndexFile.flush` in
    another thread and to the checkpoint's index time where ``file.is_full``. Without it the file is flushed at once.
    With ``tag_entries`` the tags of units have entries, too, as since RocketMQ 5.4.
    """

    def __init__(
        self,
        paths: StorePaths,
        config: MessageStoreConfig,
        disk: Disk,
        clock: Clock,
        on_full: Callable[[IndexFile], None] | None = None,
        *,
        tag_entries: bool,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = paths.index
        self._disk = disk
        self._clock = clock
        self.tag_entries = tag_entries
        self._on_full = on_full
        self._pause = pause
        self._geometry = Geometry(config.max_hash_slot_num, config.max_index_num)
        self._most = config.max_msgs_num_batch
        self.files: tuple[IndexFile, ...] = ()
        """Oldest first, by name; replaced and never changed."""
        self._changing = threading.Lock()  # one thread adds files, another deletes
        self._seen: tuple[tuple[IndexFile, ...], MappedFiles] = (), mapped_files(())

    def load(self, *, abnormal: bool = False, index_msg_timestamp: int = 0) -> list[str]:
        """Load the files of the folder; returns the names of those deleted.

        After an abnormal exit a file that goes beyond ``index_msg_timestamp`` (ms, the checkpoint's) is deleted
        (docs/formats/index-file.md#files). Raises :class:`WrongFileSize` where a file has another geometry than the
        configuration: RocketMQ misreads it.
        """
        files, deleted_names = [], []
        for name, size in self._disk.names(self._folder):
            if not (name.isascii() and name.isdigit()):
                _log.warning("%s: expected a name of digits", self._folder / name)
                continue
            if size not in (0, self._geometry.file_size):
                raise WrongFileSize(
                    sentence(
                        "expected {file_size:,} bytes by maxHashSlotNum {slots:,} and maxIndexNum {entries:,}, "
                        "found {size:,}",
                        file_size=self._geometry.file_size,
                        slots=self._geometry.slots,
                        entries=self._geometry.entries,
                        size=size,
                    ),
                    file=str(self._folder / name),
                )
            file = self._open(name)
            if abnormal and file.end_timestamp > index_msg_timestamp:
                file.delete()
                deleted_names.append(name)
            else:
                files.append(file)
        self.files = tuple(files)
        return deleted_names

    # -- puts

    @property
    def end_phy_offset(self) -> int:
        """Offset of the newest message that is indexed, 0 without files: older ones are passed over."""
        return self.files[-1].end_phy_offset if self.files else 0

    def put(self, request: Request) -> None:
        """Index one dispatched unit (docs/formats/index-file.md#keys). Raises ``OSError``."""
        file = self._ready_file()
        if request.physical_offset < file.end_phy_offset or request.sys_flag & TRANSACTION_MASK == ROLLBACK:
            return
        for key in index_keys(request.properties, tags=self.tag_entries):
            file = self._ready_file()
            file.put_key(index_key_hash(request.topic, key.text), request.physical_offset, request.store_timestamp)

    def cut(self, log_end: int) -> None:
        """See :meth:`IndexFile.cut`: after a power loss the index may know more than the log. Raises ``OSError``."""
        for file in self.files:
            file.cut(log_end)
        self._forget_seen()

    def put_keys(self, keys: IndexKeys) -> None:
        """Index the units of a block, as :meth:`put` for each (docs/formats/index-file.md#keys); their offsets do not
        fall. Raises ``OSError``.
        """
        if not keys.units:
            return
        self._ready_file()
        done, count = 0, len(keys.key_hash)
        if count and int(keys.phy_offset[0]) < self.end_phy_offset:
            done = int(np.searchsorted(keys.phy_offset, self.end_phy_offset))
        while done < count:
            file = self._ready_file()
            stop = min(done + file.room, count)
            file.put_keys(keys.key_hash[done:stop], keys.phy_offset[done:stop], keys.store_timestamp[done:stop])
            done = stop
        if keys.later_units:
            self._ready_file()  # one of them found the file full

    def _ready_file(self) -> IndexFile:
        """The file that takes the next key: the last one, or a new one where it is full
        (docs/formats/index-file.md#files). Raises ``OSError``.
        """
        if self.files and not self.files[-1].is_full:
            return self.files[-1]
        for tries_left in reversed(range(_CREATE_TRIES)):
            try:
                return self._create()
            except OSError as error:
                if not tries_left:
                    raise
                _log.warning("no new index file, tried again in %.0f s: %s", _RETRY_PAUSE_S, error)
                self._pause(_RETRY_PAUSE_S)
        raise AssertionError

    def _create(self) -> IndexFile:
        full_file = self.files[-1] if self.files else None
        name = index_file_name(self._clock(), full_file.name if full_file else "")
        file = self._open(name, full_file)
        with self._changing:
            self.files = (*self.files, file)
        if full_file is not None:
            if self._on_full is not None:
                self._on_full(full_file)
            else:
                full_file.flush()
        return file

    def _open(self, name: str, previous: IndexFile | None = None) -> IndexFile:
        file = self._disk.open(self._folder / name, self._geometry.file_size)
        try:
            index_file = IndexFile(file, name, self._geometry, previous)
            if index_file.header.index_count <= 1:
                index_file.begin()
        except OSError:
            file.delete()
            raise
        return index_file

    # -- asking

    def query_offset(self, topic: str, key: str, max_count: int, begin: int, end: int) -> tuple[list[int], int, int]:
        """Find the offsets at which the log may hold ``key``: files newest first, entries with a time in [begin,
        end] ms (docs/formats/index-file.md#query).

        Gives the offsets (hash collisions are among them), newest first, and time (ms) and offset up to which the
        newest file goes.
        """
        mapped = self._mapped_files()
        limit = max_count if max_count < self._most else self._most  # noqa: FURB136 (a third of the price)
        return find_key(mapped, topic, key, begin, end, limit), mapped.end_timestamp, mapped.end_phy_offset

    def query_offsets(self, topic: str, keys: list[str], max_count: int, begin: int, end: int) -> KeyAnswers:
        """:meth:`query_offset` for many keys of one topic in one walk over the files."""
        mapped = self._mapped_files()
        matches = find_keys(mapped, hashes_of(topic, keys), TimeWindow(begin, end, max(min(max_count, self._most), 0)))
        return KeyAnswers(*matches, mapped.end_timestamp, mapped.end_phy_offset)

    def _mapped_files(self) -> MappedFiles:
        """Return the files as readers see them now; built again only after a put."""
        files, mapped = self._seen
        if files is self.files:
            if not files or mapped.files[0] is files[-1].mapped:
                return mapped
            mapped = with_newest(mapped, files[-1].mapped)  # older files change no more
        else:
            files = self.files
            mapped = mapped_files([file.mapped for file in reversed(files)])
        self._seen = files, mapped
        if files is not self.files:  # some may have been deleted meanwhile: nothing holds their maps
            self._forget_seen()
        return mapped

    def _forget_seen(self) -> None:
        self._seen = (), mapped_files(())

    # -- keeping

    def flush(self) -> None:
        """Flush every file to the disk. Raises ``OSError``."""
        for file in self.files:
            file.flush()

    def delete_expired(self, log_min: int) -> list[str]:
        """Delete the oldest files that end below ``log_min``, never the last; gives their names
        (docs/formats/index-file.md#files).
        """
        expired_files = []
        with self._changing:
            for file in self.files[:-1]:
                if file.end_phy_offset >= log_min:
                    break
                expired_files.append(file)
            self.files = self.files[len(expired_files) :]
        self._forget_seen()
        for file in expired_files:
            file.delete()
        return [file.name for file in expired_files]

    def destroy(self) -> None:
        """Delete every file."""
        files, self.files = self.files, ()
        self._forget_seen()
        for file in files:
            file.delete()

    def close(self) -> None:
        """Close the open files."""
        files, self.files = self.files, ()
        self._forget_seen()
        for file in files:
            file.close()
