"""A directory that grows beside its place and gets its name when it is whole: nothing is left where that fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def staged(target: Path, suffix: str) -> Iterator[Path]:
    """A new folder beside ``target`` (absent or an empty directory), hidden and named with ``suffix``; it is renamed to
    ``target`` at the end of the block, and removed where the block raises. Raises ``OSError``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=suffix, dir=target.parent))
    try:
        staging.chmod(0o755)
        yield staging
        if target.is_dir():
            target.rmdir()
        staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in ``folder`` to the disk. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
