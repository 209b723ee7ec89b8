"""The command that copies one message out of a store, and of which answers of ``where`` it is told."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.where.evidence import WhereResult


def copy_one(store: str, offset: int, *, readable: bool) -> str:
    """The command that copies one message out: into a new store, or what is left of it as JSON with its body."""
    path = shlex.quote(store)
    if readable:
        return f"storescope copy {path} NEW --where 'physicalOffset == {offset}'"
    return f"storescope message {path} {offset} --json --body"


def copy_found(store: StoreSnapshot, found: WhereResult) -> str:
    """The command for what was found; "" where no byte of it is left, or a log by itself cannot be copied from."""
    was = any(one.what == "was" for one in found.evidence)  # told of what stood in unreadable bytes
    if store.kind != "store" or found.physical_offset is None or not (found.life or was):
        return ""
    return copy_one(str(store.path), found.physical_offset, readable=bool(found.life))
