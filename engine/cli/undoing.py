"""``recover --undo``: what a command kept beside a store is put back, every byte of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.cli import consent
from engine.cli.output import Output, size_text
from engine.errors import NotAStore
from engine.inspection.opening import recognise
from engine.mapped import kept_undo
from engine.mapped.kept_folder import Kept, read
from engine.mapped.store_lock import StoreLock, holder_of


def undo(args: argparse.Namespace, out: Output) -> int:
    """Put back what is kept in ``args.undo``. Raises :class:`engine.mapped.kept_undo.CannotUndo` before anything is
    changed, :class:`engine.errors.StoreLocked` where somebody has the store open.
    """
    kept = read(Path(args.undo))
    root = _store(args.store, kept)
    files, size = kept.amount
    record: dict[str, Any] = {
        "type": "undone",
        "path": str(root),
        "folder": str(kept.folder),
        "command": kept.command,
        "files": files,
        "bytes": size,
        "filesRemoved": len(kept.made),
    }
    if not kept.undone and not kept.is_empty:
        if holder_of(root / "lock") is not None:
            StoreLock(root / "lock").release()  # raises, and names the holder
        kept_undo.check(kept, root)
        if not consent.given(args, _planned(kept, root), "Put it back?", empty_log=None):
            return 2
        with StoreLock(root / "lock"):
            kept_undo.check(kept, root)
            kept_undo.undo(kept, root)
        kept_undo.finish(kept, root)
    out.record({**record, "already": kept.undone})
    if not out.as_json:
        done = "was put back before" if kept.undone else "is as it was"
        out.line(f"{root} {done}: {files:,} files, {size_text(size)}. What is kept stays in {kept.folder}")
    return 0


def _store(given: str, kept: Kept) -> Path:
    """The store that ``given`` names; one that its command left without a sign of a store, too."""
    place = Path(given)
    if str(place.resolve()) == kept.store:
        return place
    try:
        return recognise(given).path
    except NotAStore:
        if place.is_dir():
            return place
        raise


def _planned(kept: Kept, root: Path) -> Iterator[str]:
    """What it does, in numbers."""
    files, size = kept.amount
    yield f"{root} gets back what {kept.command} changed, as it is kept in {kept.folder}:"
    yield f"  {files:,} files ({size_text(size)}) are as they were; {len(kept.made):,} that were made since go"
    for name, inode in kept.trees.items():
        what = "gets its place back" if inode is not None else "goes: there was none"
        yield f"  the folder {name} {what}"
    if kept.begun:
        yield "  an undo was begun before and not ended: this ends it"
    elif kept.after is None:
        yield "  the command was stopped on the way: the store is half changed now"
