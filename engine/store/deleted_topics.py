"""The folders of a deleted topic: they disappear at once and are removed later (docs/formats/cleaning.md).

A topic has a folder for each kind of queue and many files in it. If they were removed one by one, a disk error would
leave half a topic, and a power loss queues with holes. So the folders are renamed first: that happens, or it does not.
No broker takes what a crash leaves there for a queue, because the names are no numbers.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from pathlib import Path

from engine.files.layout import is_folder_name
from engine.mapped.disk import Disk

_log = logging.getLogger(__name__)


ASIDE = ".deleted"
"""The folder beside those of the topics."""


def set_aside(disk: Disk, kind_folders: Sequence[Path], topic: str) -> None:
    """Rename the topic's folder in each of ``kind_folders`` that has one. If the first cannot be renamed,
    ``OSError`` is raised and nothing has changed; later folders that cannot be renamed stay, with a warning. A
    topic whose name cannot be a folder's name has no folders, and the name may lead out of the store.
    """
    if not is_folder_name(topic):
        return
    decided = False
    for kind_folder in kind_folders:
        source, target = kind_folder / topic, kind_folder / ASIDE / f"topic-{zlib.crc32(topic.encode()):08x}"
        try:
            if disk.exists(source):
                _remove(disk, target)
                disk.move_folder(source, target)
                decided = True
                disk.sync_folder(kind_folder)
        except OSError as error:
            if not decided:
                raise
            _log.warning("of a deleted topic %s may come back: %s", source, error)


def remove_aside(disk: Disk, kind_folders: Sequence[Path]) -> None:
    """Remove what was set aside, now or before a crash; what cannot be removed stays for the next time."""
    for kind_folder in kind_folders:
        try:
            if disk.exists(kind_folder / ASIDE):
                _remove(disk, kind_folder / ASIDE)
        except OSError as error:
            _log.warning("queue files of a deleted topic stay in %s: %s", kind_folder / ASIDE, error)


def _remove(disk: Disk, folder: Path) -> None:
    for name, _, is_folder in disk.entries(folder):
        if is_folder:
            _remove(disk, folder / name)
        else:
            disk.delete(folder / name)
    disk.remove_folder(folder)
