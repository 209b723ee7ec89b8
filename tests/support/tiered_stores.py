"""A store whose tiered storage lies in another folder, and the options that name it."""

from __future__ import annotations

import shutil
from pathlib import Path


def move_tiered_storage_out(source: Path, folder: Path) -> Path:
    """Copy the store ``source`` into ``folder``, with its tiered storage beside it; return the copy."""
    root = folder / "store"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("timerwheel"))
    shutil.move(root / "tiered", folder / "elsewhere")
    return root


def options_for(root: Path) -> list[str]:
    """Return the options that name the folder of tiered storage."""
    file = root.parent / "broker.conf"
    file.write_text(f"tieredStoreFilePath={root.parent / 'elsewhere'}\n")
    return ["--config", str(file), "--paths-from-config"]


def drop_first_queue_files(source: Path, folder: Path, entries_per_file: int = 40) -> Path:
    """Copy the store ``source`` into ``folder``, with shorter queue files, of which the first ones are deleted."""
    root = folder / "store"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("timerwheel"))
    for queue in (root / "consumequeue").glob("*/*"):
        (file,) = queue.iterdir()
        entries = file.read_bytes().rstrip(b"\0")
        file.unlink()
        size = entries_per_file * 20
        for start in range(size, len(entries), size):
            (queue / f"{start:020d}").write_bytes(entries[start : start + size].ljust(size, b"\0"))
    return root
