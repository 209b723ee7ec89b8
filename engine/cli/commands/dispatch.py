"""``dispatch``: consume queues and index built again from the log, into the store itself or into another directory."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.backup import Backup, add_consent, ask_consent, backed_up
from engine.cli.options import add_command, add_release, add_store, common_options, open_to_write, stated_release
from engine.cli.output import Output, Progress, size_text
from engine.cli.rebuilt_text import print_rebuilt, rebuilt_figures
from engine.cli.writing import check_new_path
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.derived_config import derived_config
from engine.inspection.recovery import open_each, without_log
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.space.files import QUEUE_KINDS, StoreFile, list_files
from engine.mapped.disk import RealDisk
from engine.mapped.store_lock import StoreLock
from engine.releases import Release
from engine.sentences import sentence
from engine.services.opening import note_empty_log, refuse_undecoded

if TYPE_CHECKING:
    from engine.mapped.backup import BackupWriter
    from engine.rebuilding import Rebuilt

_SIZES = {"mappedFileSizeConsumeQueue": "the size of queue files", "maxHashSlotNum": "the slots of an index file"}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "dispatch",
        "dispatch ~/store --to /tmp/rebuilt",
        "dispatch ~/store",
        parents=[common_options()],
    )
    add_store(parser)
    parser.add_argument("--to", metavar="DIR", help="write into this new or empty folder and do not change the store")
    add_release(parser, "build them as this RocketMQ release does (default: the one that probably wrote the store)")
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_to_write(args, out) as store:
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one"), file=args.store)
        refuse_undecoded(store.path)
        open_each(store)
        store.refuse_unread("nothing is built over it")
        target = check_new_path(args.to, store.path) if args.to is not None else None
        if target is not None:
            config = _settled(store, out)
            _tell(_built(store, config, target, None, stated_release(args, store), out), str(target), out)
            _print_how_to_use(store, target.resolve(), out)
            return 0
        if store.lock_state == "held":
            StoreLock(store.path / "lock").release()  # raises, and names the holder
        if not ask_consent(args, _planned(store), "Build them again?", empty_log=without_log(store)):
            return 2
        store.refuse_unread("nothing is built over it")
        config = _settled(store, out)
        assert store.paths is not None
        with backed_up(args, store.path, config) as backup, backup.lock():
            release = stated_release(args, store)
            done = _built(store, config, None, backup.writer, release, out)
            note_empty_log(store.paths, config, backup.store_disk or RealDisk(), release)
        _tell(done, str(store.path), out, backup)
        return 0


def _print_how_to_use(snapshot: StoreSnapshot, target: Path, out: Output) -> None:
    """Print the shell commands that put the new folders in the place of the store's, which are kept."""
    store, reading = snapshot.path.resolve(), snapshot.reading
    names = sorted(entry.name for entry in reading.entries(target))
    old_count = sum(entry.name.startswith(f"{store.name}.old") for entry in reading.entries(store.parent))
    renamed_store = store.with_name(f"{store.name}.old{old_count or ''}")
    replaced = [store / name for name in names if reading.exists(store / name)]
    out.line("To use them, stop the broker and put them in the place of the store's folders, which are kept:")
    for command in (
        ["mkdir", renamed_store],
        *([["mv", *replaced, renamed_store]] if replaced else []),
        ["mv", *(target / name for name in names), store],
    ):
        out.line(f"  {shlex.join(map(str, command))}")


def _planned(store: StoreSnapshot) -> Iterator[str]:
    """Describe what the command does to the store, in numbers."""
    assert store.paths is not None
    path = str(store.path)
    yield (
        f"Before you go on: storescope dispatch {shlex.quote(path)} --to DIR builds them in another folder, to compare."
    )
    queues = sum(len(queues) for queues in store.topics().values())
    listed = list_files(store)
    files, size = _count(listed, *QUEUE_KINDS)
    index_files, index_size = _count(listed, "index")
    length = store.log.max_offset - max(store.log.min_offset, 0)
    yield f"Consume queues and index of {path} are built again from {size_text(length)} of log:"
    yield (
        f"  {number_of(queues, 'queue', 'queues')} in {number_of(files, 'file', 'files')} "
        f"({size_text(size)}) {'is' if queues == 1 else 'are'} replaced"
    )
    yield (
        f"  {number_of(index_files, 'file', 'files')} of the index ({size_text(index_size)}) "
        f"{'is' if index_files == 1 else 'are'} replaced; the log is left alone"
    )


def _count(files: list[StoreFile], *kinds: str) -> tuple[int, int]:
    """Return the number of files of these kinds, and their bytes."""
    sizes = [file.size for file in files if file.kind in kinds]
    return len(sizes), sum(sizes)


def _settled(store: StoreSnapshot, out: Output) -> MessageStoreConfig:
    config = derived_config(store)
    for key, description in _SIZES.items():
        if key not in config.given:
            out.say(f"no file tells {description}: RocketMQ's default is used; --config FILE.conf changes it ({key})")
    return config


def _built(
    store: StoreSnapshot,
    config: MessageStoreConfig,
    target: Path | None,
    backup: BackupWriter | None,
    release: Release,
    out: Output,
) -> Rebuilt:
    from engine.rebuilding import rebuild_beside, rebuild_in_place

    length = store.log.end_offset - max(store.log.min_offset, 0)
    with Progress("dispatch", length, out.quiet) as progress:
        if target is None:
            return rebuild_in_place(store, config, backup, progress.update, release)
        return rebuild_beside(store, target, config, progress.update, release)


def _tell(done: Rebuilt, path: str, out: Output, backup: Backup | None = None) -> None:
    record = backup.record if backup is not None else None
    out.record({"type": "dispatched", "path": path, **rebuilt_figures(done), "kept": record})
    print_rebuilt(out, done, path)
    if backup is not None:
        backup.say(out)
