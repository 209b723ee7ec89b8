"""Folders that have to be safe on the disk, or gone."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

_TIMES, _PAUSE = 20, 0.1


def sync_folder(folder: Path) -> None:
    """Bring the names in ``folder`` to the disk. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_away(folder: Path) -> None:
    """Remove a folder and what it holds. Who is just being stopped may still be writing into it, so more than once."""
    for _ in range(_TIMES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)
