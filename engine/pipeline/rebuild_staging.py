"""The folder beside an output in which a rebuild grows, and which is the output when it is whole.

A run that was killed leaves it behind; the next one with the same plan goes on with what is there. Only one run at a
time has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import StoreError
from engine.folders import sync_folder, take_away
from engine.whole_file import put_whole

PLAN, WORK, TREE, DONE = "plan.json", "work", "tree", "done"


@contextmanager
def staged(out: Path, plan: str, now: Callable[[], int]) -> Iterator[tuple[Path, int]]:
    """The folder beside ``out`` in which everything grows, and when (ms) the run began whose work it holds.

    It is taken away at the end of the block, however that ends. Raises :class:`StoreError` where another run has it.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = out.parent / f".{out.name}.rebuild"
    staging.mkdir(exist_ok=True)
    holder = os.open(staging, os.O_RDONLY)
    try:
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError("another rebuild is writing there", file=str(out)) from None
        try:
            yield staging, _begin(staging, plan, now)
        finally:
            take_away(staging)
    finally:
        os.close(holder)


def _begin(staging: Path, plan: str, now: Callable[[], int]) -> int:
    """Keep what an earlier run of the same plan left, else begin anew; gives when that run began (ms)."""
    try:
        found = json.loads((staging / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("plan") == plan:
        return int(found["begun"])
    for place in (WORK, TREE, DONE):
        shutil.rmtree(staging / place, ignore_errors=True)
        (staging / place).mkdir()
    begun = now()
    put_whole(staging / PLAN, json.dumps({"plan": plan, "begun": begun}))
    return begun


def put_in_place(staging: Path, out: Path) -> None:
    """Give what was built the name ``out`` (absent or an empty directory), for good. Raises ``OSError``."""
    tree = staging / TREE
    if out.is_dir():
        out.rmdir()
    tree.rename(out)
    sync_folder(out.parent)
