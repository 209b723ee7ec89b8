"""A directory that grows beside its place and gets its name when it is whole: nothing is left where that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.folders import sync_folder
from engine.scratch import growing


@contextmanager
def staged(target: Path, suffix: str) -> Iterator[Path]:
    """A new folder beside ``target`` (absent or an empty directory), hidden and named with ``suffix``; it is renamed to
    ``target`` at the end of the block, and removed where the block raises. What a killed run left of such a folder
    goes. Raises ``OSError``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with growing(target.parent, f".{target.name}.", suffix) as staging:
        staging.chmod(0o755)
        yield staging
        if target.is_dir():
            target.rmdir()
        staging.rename(target)
    sync_folder(target.parent)
