"""A private view of a RocksDB folder, in a temporary folder outside of the store.

RocksDB writes into the folder that it opens, even read-only (its own log, a configuration of the binding), and a broker
may hold the database open. So the folder is never opened itself. Table files are linked symbolically: a hard link would
change the inode of the store's file. What a broker still appends to (manifest, write-ahead logs) is copied, so that
nothing changes beneath the reader.

The view is of one moment: it is made again if the manifest changed in the meantime, because a broker then may have
deleted a write-ahead log whose rows are in a table file that the copied manifest does not know.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.codec import rocksdb
from engine.errors import CannotRead, DamagedDatabase
from engine.files.temporary_folders import TemporaryFolder, hold_new
from engine.mapped.reading import Reading
from engine.sentences import plural, sentence

PREFIX = "storescope-rocksdb-"
_TABLE = re.compile(r"(\d+)\.(?:sst|ldb|blob)", re.ASCII)
_WRITE_AHEAD = re.compile(r"(\d+)\.log", re.ASCII)
_CURRENT_TEXT = re.compile(rb"(MANIFEST-\d+)\n?")
_SMALL_BYTES = 4096
_CHUNK_BYTES = 8 << 20
_MAX_MANIFEST_BYTES = 256 << 20
_ATTEMPTS = 5

Fingerprint = tuple[tuple[str, int, int, int], ...]
"""Name, inode, length (bytes) and time of change (ns) of every file of a folder."""


class _Changed(Exception):
    """The broker changed the database while it was copied."""


@dataclass(frozen=True, slots=True)
class PrivateCopy:
    """The private view of ``source``; ``newer_tables`` are table files that its manifest does not list."""

    source: Path
    scratch: TemporaryFolder
    fingerprint: Fingerprint

    @property
    def path(self) -> Path:
        """The temporary folder."""
        return self.scratch.path

    def remove(self) -> None:
        """Remove the temporary folder."""
        self.scratch.give_up()


def fingerprint(folder: Path, reading: Reading) -> Fingerprint:
    """Return what shows whether a database has changed. Raises :class:`CannotRead`."""
    files = []
    for entry in reading.entries(folder, listed=True):
        info = reading.entry_status(entry)
        files.append((entry.name, info.st_ino, info.st_size, info.st_mtime_ns))
    return tuple(files)


def make_private_copy(folder: Path, reading: Reading) -> PrivateCopy:
    """Make the view of the database in ``folder``; the caller must call :meth:`PrivateCopy.remove`.

    Raises:
        DamagedDatabase: files are missing, of another length, or of another time.
        CannotRead: a file cannot be read, or the database changes faster than it can be copied.
    """
    for _ in range(_ATTEMPTS):
        scratch = hold_new(_place(folder), PREFIX)
        is_complete = False
        known_failures = set(reading.unread)
        try:
            source_files = _copy(folder, scratch.path, reading)
            is_complete = True
            return PrivateCopy(folder, scratch, source_files)
        except _Changed:
            reading.drop_unread([item for item in reading.unread if item not in known_failures])
        except CannotRead:
            if not _has_new_manifest(folder, scratch.path, reading):
                raise
            reading.drop_unread([item for item in reading.unread if item not in known_failures])
        finally:
            if not is_complete:
                scratch.give_up()
    raise reading.note(folder, sentence("the broker changes the RocksDB faster than it can be copied"), "read")


def _place(folder: Path) -> Path:
    place = Path(tempfile.gettempdir()).resolve()
    if place.is_relative_to(folder.resolve().parent):
        raise CannotRead(
            sentence("the folder for temporary files is inside the store: set TMPDIR to another one"), file=str(place)
        )
    return place


def damaged(reading: Reading, file: Path, problem: str, *, is_whole: bool = False) -> DamagedDatabase:
    """Record that a database cannot be read, so that nothing is concluded from it; return the error to raise.

    ``is_whole``: its files are as they should be, but it holds other rows than a broker's.
    """
    reading.note(file, problem, "decode" if is_whole else "read")
    return DamagedDatabase(problem, file=str(file))


def _copy(folder: Path, target: Path, reading: Reading) -> Fingerprint:
    files_before = fingerprint(folder, reading)
    sizes = {name: size for name, _, size, _ in files_before}
    name = _current_manifest(folder, sizes, reading)
    manifest_bytes = reading.small(folder / name, _MAX_MANIFEST_BYTES) or b""
    (target / "CURRENT").write_bytes(name.encode("ascii") + b"\n")
    (target / name).write_bytes(manifest_bytes)
    manifest = rocksdb.decode(manifest_bytes)
    if manifest is not None:  # else RocksDB itself decides whether these are its bytes
        _check_tables(folder, manifest, sizes, reading)
    for table in sizes:
        if _TABLE.fullmatch(table):
            if reading.is_plain(str(folder / table)):
                os.close(reading.open(folder / table))
                (target / table).symlink_to((folder / table).absolute())
            else:
                _copy_file(folder / table, target / table, reading)
    first_log = manifest.first_log_number if manifest is not None else 0
    logs = [log for number, log in sorted(_logs(sizes)) if number >= first_log]
    for log in logs:
        _copy_file(folder / log, target / log, reading)
    if manifest is not None:
        _check_sequence(folder, target, manifest, logs, reading)
    sizes_after = {name: size for name, _, size, _ in fingerprint(folder, reading)}
    if sizes_after.get(name) != len(manifest_bytes) or _current_manifest(folder, sizes_after, reading) != name:
        raise _Changed
    return files_before


def _current_manifest(folder: Path, sizes: dict[str, int], reading: Reading) -> str:
    """Return the name of the manifest that counts."""
    if "CURRENT" not in sizes:
        raise damaged(reading, folder / "CURRENT", sentence("expected the name of a manifest, found no file"))
    match = _CURRENT_TEXT.fullmatch(reading.small(folder / "CURRENT", _SMALL_BYTES) or b"")
    if match is None:
        raise damaged(reading, folder / "CURRENT", sentence("expected the name of a manifest, found other bytes"))
    name = match[1].decode("ascii")
    if name not in sizes:
        raise damaged(reading, folder / name, sentence("expected this manifest, which CURRENT names; found no file"))
    return name


def _check_tables(folder: Path, manifest: rocksdb.Manifest, sizes: dict[str, int], reading: Reading) -> None:
    """Every table file that the manifest lists must be there with its length."""
    table_files = {int(match[1]): (name, size) for name, size in sizes.items() if (match := _TABLE.fullmatch(name))}
    for number, size in sorted(manifest.live_files().items()):
        name, actual_size = table_files.get(number, (f"{number:06d}.sst", None))
        if actual_size == size:
            continue
        expected = plural(
            "expected a table file of {n:,} byte, as the manifest lists it",
            "expected a table file of {n:,} bytes, as the manifest lists it",
            n=size,
        )
        outcome = sentence("found no file") if actual_size is None else sentence("found {n:,} bytes", n=actual_size)
        raise damaged(reading, folder / name, sentence("{expected}; {found}", expected=expected, found=outcome))


def _logs(sizes: dict[str, int]) -> Iterator[tuple[int, str]]:
    for name in sizes:
        match = _WRITE_AHEAD.fullmatch(name)
        if match:
            yield int(match[1]), name


def _check_sequence(folder: Path, target: Path, manifest: rocksdb.Manifest, logs: list[str], reading: Reading) -> None:
    """The first write of the logs must follow those of the table files: else writes are missing in between."""
    for log in logs:
        with (target / log).open("rb") as file:
            first_sequence = rocksdb.first_sequence(file.read(1 << 16))
        if first_sequence is None:
            continue
        if first_sequence > manifest.last_sequence + 1:
            raise damaged(
                reading,
                folder / log,
                sentence(
                    "expected write {n:,} to follow, the manifest knows no later one; found write {found:,}: manifest "
                    "and write-ahead log are of different times",
                    n=manifest.last_sequence + 1,
                    found=first_sequence,
                ),
            )
        return


def _copy_file(source: Path, target: Path, reading: Reading) -> None:
    """Copy the bytes that a file has now; a broker may append to it meanwhile."""
    descriptor = reading.open(source)
    try:
        length = os.fstat(descriptor).st_size
        with target.open("wb") as copy:
            position = 0
            while position < length:
                data = reading.read(str(source), descriptor, min(_CHUNK_BYTES, length - position), position, length)
                if not data:
                    break
                copy.write(data)
                position += len(data)
    finally:
        os.close(descriptor)


def _has_new_manifest(folder: Path, target: Path, reading: Reading) -> bool:
    """Return True if the broker wrote into the manifest since it was copied."""
    names = [path.name for path in target.glob("MANIFEST-*")]
    if not names:
        return False
    info = reading.status(folder / names[0])
    return info is None or info.st_size != (target / names[0]).stat().st_size
