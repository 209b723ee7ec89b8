"""Folders of a deleted topic, taken away at once and removed at leisure (spec 11).

A topic has a folder for each kind of queue and many files in it. Removed one by one they would leave half a topic where
the disk refuses in the middle, and queues with holes where the power fails. So its folders get another name first: that
happens or it does not. What a crash leaves there no broker takes for a queue, as the names are no numbers.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from pathlib import Path

from engine.mapped.disk import Disk

ASIDE = ".deleted"
"""The folder beside those of the topics."""
_log = logging.getLogger(__name__)


def set_aside(disk: Disk, kinds: Sequence[Path], topic: str) -> None:
    """Rename the topic's folder in each of ``kinds`` that has one. The first decides: where it cannot be renamed
    ``OSError`` is raised and nothing has changed; what the disk refuses afterwards stays, with a warning.
    """
    decided = False
    for kind in kinds:
        here, there = kind / topic, kind / ASIDE / f"topic-{zlib.crc32(topic.encode()):08x}"
        try:
            if disk.exists(here):
                _remove(disk, there)
                disk.move_folder(here, there)
                decided = True
                disk.sync_folder(kind)
        except OSError as error:
            if not decided:
                raise
            _log.warning("of a deleted topic %s may come back: %s", here, error)


def remove_aside(disk: Disk, kinds: Sequence[Path]) -> None:
    """Remove what was set aside, now or before a crash; what the disk refuses stays for the next time."""
    for kind in kinds:
        try:
            if disk.exists(kind / ASIDE):
                _remove(disk, kind / ASIDE)
        except OSError as error:
            _log.warning("queue files of a deleted topic stay in %s: %s", kind / ASIDE, error)


def _remove(disk: Disk, folder: Path) -> None:
    for name, _, is_folder in disk.entries(folder):
        if is_folder:
            _remove(disk, folder / name)
        else:
            disk.delete(folder / name)
    disk.remove_folder(folder)
