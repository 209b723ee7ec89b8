"""A directory that grows beside its place and gets its name when it is whole: nothing is left where that fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.folders import sync_folder, take_away


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
        take_away(staging)
        raise
    sync_folder(target.parent)
