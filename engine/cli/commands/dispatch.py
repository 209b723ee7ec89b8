"""``dispatch``: consume queues and index built again from the log, into the store itself or into another directory."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.cli import consent
from engine.cli.options import common, open_given
from engine.cli.output import Output, Progress, size_text
from engine.cli.rebuilt_words import rebuilt_figures, say_rebuilt
from engine.cli.writing import refuse_used
from engine.errors import StoreError, UsageError
from engine.inspection.derived_config import derived_config
from engine.inspection.foreign import rocksdb_queues
from engine.inspection.recovery import without_log
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.store_lock import StoreLock

_SIZES = {"mappedFileSizeConsumeQueue": "the size of queue files", "maxHashSlotNum": "the slots of an index file"}


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "dispatch", parents=[common()], help="writes: consume queues and index built again from the log"
    )
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("--to", metavar="DIR", help="build them here, absent or empty, and leave the store alone")
    consent.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_given(args) as store:
        if store.kind != "store":
            raise UsageError("expected a store, found a part of one", file=args.store)
        if rocksdb_queues(store):
            raise StoreError("its consume queues are a RocksDB, which is not built here", file=str(store.path))
        target = refuse_used(args.to, store.path) if args.to is not None else None
        if target is not None:
            return _build(store, target, out)
        if store.lock_state == "held":
            StoreLock(store.path / "lock").release()  # raises, and names the holder
        if not consent.given(args, _deeds(store), "Build them again?", empty_log=without_log(store)):
            return 2
        with StoreLock(store.path / "lock"):
            return _build(store, None, out)


def _deeds(store: StoreSnapshot) -> Iterator[str]:
    """What it does to the store, in numbers."""
    assert store.paths is not None
    path = str(store.path)
    yield f"Advice first: storescope dispatch {shlex.quote(path)} --to DIR builds them elsewhere, to compare."
    queues = sum(len(queues) for queues in store.topics().values())
    trees = (store.paths.consumequeue, store.paths.consumequeue_ext, store.paths.batchconsumequeue)
    files, size = _count(*trees)
    index_files, index_size = _count(store.paths.index)
    length = store.log.max_offset - max(store.log.min_offset, 0)
    yield f"Consume queues and index of {path} are built again from {size_text(length)} of log:"
    yield f"  {queues:,} queues in {files:,} files ({size_text(size)}) are replaced"
    yield f"  {index_files:,} index files ({size_text(index_size)}) are replaced; the log is left alone"


def _count(*folders: Path) -> tuple[int, int]:
    """Files below the folders, and their bytes."""
    files = [path.stat() for folder in folders for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(status.st_size for status in files)


def _build(store: StoreSnapshot, target: Path | None, out: Output) -> int:
    from engine.cli.rebuilding import rebuild_beside, rebuild_in_place

    config = derived_config(store)
    for key, what in _SIZES.items():
        if key not in config.given:
            out.say(f"no file tells {what}: RocketMQ's default is taken, --config settles it ({key})")
    length = store.log.end_offset - max(store.log.min_offset, 0)
    with Progress("dispatch", length, out.quiet) as progress:
        if target is None:
            done = rebuild_in_place(store, config, progress.at)
        else:
            done = rebuild_beside(store, target, config, progress.at)
    out.record(
        {
            "type": "dispatched",
            "path": str(target or store.path),
            **rebuilt_figures(done),
        }
    )
    say_rebuilt(out, done, str(target or store.path))
    return 0
