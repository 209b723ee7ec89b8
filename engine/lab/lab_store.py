"""A lab store: a directory that the lab made, with a real store in it and what a disk would have kept of it.

``<folder>/store`` is the store, ``<folder>/durable`` what flushes made durable, ``<folder>/storescope-lab.json`` the
marker without which nothing is ever deleted or loses its power.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from engine.config import MessageStoreConfig, from_mapping
from engine.errors import CannotRead, StoreError, UsageError
from engine.files.atomic_file import write_atomically
from engine.files.layout import LAB_MARKER
from engine.lab.presets import NOT_IN_A_LAB, changes_of
from engine.lab.shadow_disk import ShadowDisk
from engine.message_store import MessageStore
from engine.releases import NEWEST, Release, parse
from engine.sentences import sentence

MARKER: Final = LAB_MARKER
DISK_BYTES: Final = 16 << 30
"""Bytes of the disk that a lab store believes to have: retention and refusals follow from it."""
_PARTS: Final = ("store", "durable", "before", "kept", "again")
_MAX_MARKER_BYTES: Final = 1 << 20


class NotALab(StoreError):
    """The directory was not made by the lab: it is neither deleted, nor is its power cut."""


@dataclass(frozen=True, slots=True)
class LabMarker:
    """Content of the marker file: how the store is to be opened."""

    config: MessageStoreConfig
    release: Release
    disk_bytes: int
    made_ms: int


class LabStore:
    """An open lab store: ``store`` is the engine, ``disk`` what it writes to. Open from construction to :meth:`close`.

    Made by :meth:`create` or :meth:`open`.
    """

    def __init__(self, folder: Path, marker: LabMarker) -> None:
        self.folder = folder
        self.marker = marker
        self.root = folder / "store"
        # A power cut may have taken all of the log: here the cause is known.
        self.disk = ShadowDisk(self.root, folder / "durable", marker.disk_bytes)
        try:
            self.store = MessageStore(self.root, marker.config, disk=self.disk, release=marker.release, empty_log=True)
        except BaseException:
            self.disk.close()
            raise
        self.disk.set_flushed_offset(self.store.positions().flushed)

    @classmethod
    def create(
        cls, folder: Path, config: MessageStoreConfig, *, release: Release = NEWEST, disk_bytes: int = DISK_BYTES
    ) -> LabStore:
        """Create a store below ``folder``, which must be absent or empty.

        Raises :class:`UsageError` if something is there or the configuration leads out of the directory,
        :class:`CannotRead` if it cannot be made, :class:`StoreError` if the engine refuses.
        """
        folder = Path(folder).absolute()
        _check(config)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(sentence("expected a new or empty folder, found something there"), file=str(folder))
        marker = LabMarker(config, release, disk_bytes, time.time_ns() // 1_000_000)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_marker(folder, marker)
        except OSError as error:
            raise CannotRead(
                sentence("the directory cannot be made: {why}", why=error.strerror), file=str(folder)
            ) from error
        lab_store = cls(folder, marker)
        try:
            lab_store.store.parts.commit_log.begin_at(
                0
            )  # from its first moment on it can be looked at: there is a log, with nothing in it
        except BaseException:
            lab_store.close()
            raise
        return lab_store

    @classmethod
    def open(cls, folder: Path) -> LabStore:
        """Open the lab store at ``folder``, recovered as by a start. Raises :class:`NotALab`, :class:`StoreLocked`,
        :class:`StoreError`, ``OSError``.
        """
        folder = Path(folder).absolute()
        marker = read_marker(folder)
        if not (folder / "store").exists() and (folder / "before").is_dir():  # it ended while its power was cut
            (folder / "before").rename(folder / "store")
        _refuse_links(folder)
        return cls(folder, marker)

    def close(self) -> None:
        """Close the store as a broker does that stops normally."""
        try:
            self.store.close()
        finally:
            self.disk.close()

    def abandon(self) -> None:
        """End like a killed process: nothing is flushed, and only the content of a pool is lost."""
        try:
            self.store.abandon()
        finally:
            self.disk.close()


def is_lab(folder: Path) -> bool:
    """Return True if the lab made this directory."""
    try:
        read_marker(Path(folder))
    except StoreError:
        return False
    return True


def read_marker(folder: Path) -> LabMarker:
    """Read the marker of a lab store; raises :class:`NotALab` without a good one."""
    path = folder / MARKER
    try:
        if path.is_symlink() or path.stat().st_size > _MAX_MARKER_BYTES:
            raise NotALab(sentence("the marker of a lab store is no plain small file"), file=str(path))
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotALab(sentence("this directory was not made by the lab: it has no marker"), file=str(path)) from error
    if not isinstance(document, dict) or document.get("lab") != 1 or not isinstance(document.get("config"), Mapping):
        raise NotALab(
            sentence("this directory was not made by the lab: its marker says something else"), file=str(path)
        )
    config, unknown = from_mapping(cast("dict[str, Any]", document["config"]), file=str(path))
    if unknown or NOT_IN_A_LAB & config.given:
        raise NotALab(
            sentence("the marker names what no lab store has: {what}", what=", ".join(unknown) or "paths"),
            file=str(path),
        )
    try:
        release = parse(str(document.get("like", "5.3")))
    except ValueError as error:
        raise NotALab(
            sentence("the marker names a release that is not known: {why}", why=error), file=str(path)
        ) from error
    return LabMarker(config, release, int(document.get("diskBytes", DISK_BYTES)), int(document.get("madeMs", 0)))


def change_config(folder: Path, config: MessageStoreConfig) -> None:
    """Store ``config`` as the configuration for the next start of the lab store at ``folder``.

    Raises :class:`NotALab`, :class:`UsageError` if a value is not for a lab store, ``OSError``.
    """
    _check(config)
    _write_marker(folder, replace(read_marker(folder), config=config))


def _refuse_links(folder: Path) -> None:
    """Raise :class:`NotALab` for links: they may lead to a store that the lab did not make."""
    store = folder / "store"
    for place in (store, *(store.iterdir() if store.is_dir() else ())):
        if place.is_symlink():
            raise NotALab(
                sentence("this leads out of the lab store: it is not opened, cut off from power or deleted"),
                file=str(place),
            )


def _check(config: MessageStoreConfig) -> None:
    changes = changes_of(config)
    for key in NOT_IN_A_LAB & changes.keys():
        raise UsageError(sentence("{key}: a lab store keeps the default, found {value!r}", key=key, value=changes[key]))


def _write_marker(folder: Path, marker: LabMarker) -> None:
    text = {
        "lab": 1,
        "madeMs": marker.made_ms,
        "like": marker.release,
        "diskBytes": marker.disk_bytes,
        "config": changes_of(marker.config),
    }
    write_atomically(folder / MARKER, json.dumps(text, indent=1) + "\n")


def check_is_lab(folder: Path) -> None:
    """Raise :class:`NotALab` unless the lab made this directory, and everything in its store lies in it."""
    read_marker(folder)
    _refuse_links(folder)


def delete_lab(folder: Path) -> None:
    """Delete a lab store: the parts that the lab made, its marker last, and the directory if nothing else is in it.

    Raises :class:`NotALab` for any other directory, :class:`StoreLocked` where it is open, ``OSError``.
    """
    folder = Path(folder).absolute()
    check_is_lab(folder)
    if (folder / "store").is_dir():
        ShadowDisk(folder / "store", None, 0).lock(folder / "store" / "lock").release()
    for part in _PARTS:
        remove_part(folder, part)
    (folder / MARKER).unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def remove_part(folder: Path, part: str) -> None:
    """Delete one of the lab's own subdirectories; never follows a link out of it. Raises ``NotALab``, ``OSError``."""
    read_marker(folder)
    if part not in _PARTS:
        raise UsageError(sentence("expected one of {what}, found {value!r}", what=", ".join(_PARTS), value=part))
    place = folder / part
    if place.is_symlink():
        place.unlink()
    elif os.path.lexists(place):
        shutil.rmtree(place)
