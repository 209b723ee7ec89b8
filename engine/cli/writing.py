"""Shared code of commands that put messages into a store: its place and configuration, and the effects of opening it.

The sizes of an existing store are worked out from its files by the read-only snapshot, and passed to the store that is
opened for writing; the two do not know each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.capsule.recognition import refuse_capsule
from engine.cli.options import read_named_config
from engine.cli.output import Output
from engine.codec import compiled_cache
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import StoreError, UsageError
from engine.files.layout import StorePaths
from engine.files.store_folders import settle_folders
from engine.inspection.derived_config import derived_config, quiet
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.inspection.undecoded import refuse_undecoded_modes
from engine.inspection.written_release import require_release
from engine.mapped.disk import RealDisk
from engine.mapped.store_lock import StoreLock
from engine.releases import NEWEST, Release
from engine.sentences import sentence
from engine.services.opening import refuse_linked_files, refuse_undecoded, without_log
from engine.ssh.address import refuse_ssh_address
from engine.store.recovery.plan import EmptyLog, RecoveryPlan, file_limit_words, undispatched_words

_BESIDE_THE_LOG = frozenset(["abort", "abort.bak", "checkpoint", "config", "lock", "rocksdbstore"])


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The store that a command writes to. ``exists`` says that something of a store is there; ``recovery`` is what
    opening does to its log, None if it has none yet; ``empty_log`` names tables that know of messages which
    the log does not hold.
    """

    path: Path
    config: MessageStoreConfig
    release: Release
    exists: bool
    recovery: RecoveryPlan | None
    empty_log: EmptyLog | None = None

    def planned(self) -> Iterator[str]:
        """Describe what opening the store does, in numbers."""
        recovery = self.recovery
        if recovery is None:
            yield f"{self.path} has no commit log yet: a new one is created."
            return
        exit_words = "a crash" if recovery.exit == "abnormal" else "a clean stop"
        yield f"{self.path} is opened as a broker opens it after {exit_words}:"
        yield (
            f"  its log ends at {recovery.end_offset:,}; {number_of(recovery.units_dropped, 'unit', 'units')} and "
            f"{number_of(recovery.bytes_dropped, 'byte', 'bytes')} after it are removed, "
            f"{number_of(recovery.units, 'unit is', 'units are')} dispatched again"
        )
        deleted_count = len(recovery.files_deleted) + len(recovery.index_deleted)
        if deleted_count:
            yield f"  {number_of(deleted_count, 'file is', 'files are')} deleted"


def report_compilation(out: Output) -> None:
    """Report it in one line if this process has to compile machine code; measured: 5.5 to 12 s on an idle machine."""
    compiled_cache.on_first_compilation = lambda: out.say(
        "first start of this version on this machine: its machine code is compiled once, which takes about 5 to 12 "
        "seconds, more on a busy machine (`storescope doctor --compile` compiles everything beforehand)"
    )


def given_config(args: argparse.Namespace, out: Output) -> MessageStoreConfig | None:
    """The configuration that ``--config`` names, or None; keys that no broker knows are named on standard error."""
    config, unknown = read_named_config(args)
    for key in unknown:
        out.say(f"{args.config}: no broker knows {key}")
    return config


def target_release(path: str, given_release: Release | None) -> Release:
    """Return the release as which the store at ``path`` is written: ``given_release``, else the one that seems to
    have written it; a new store is of the newest.
    """
    place = Path(path)
    if given_release is not None or not place.is_dir() or not any(place.iterdir()) or _is_store_without_log(place):
        return given_release or NEWEST
    with open_store(path) as store:
        return require_release(store)


def find_target(path: str, config: MessageStoreConfig | None, given_release: Release | None = None) -> WriteTarget:
    """Return the store at ``path``, or a new one where nothing is there; nothing is changed. ``given_release`` is
    the release as which it is written, see :func:`target_release`.

    Raises :class:`NotAStore` where something else is there, :class:`StoreLocked` naming the holder where somebody has
    the store open, :class:`Undecoded` if a part of it is not decoded, :class:`LinkedFile` where another
    store shares a file of it, :class:`UsageError` if the configuration asks for a part that is not decoded,
    :class:`StoreError` if a broker would not start, or would leave messages in no queue,
    :class:`engine.files.store_folders.OutsidePath` where the configuration leads out of it.
    """
    place, release = Path(path), given_release or NEWEST
    refuse_capsule(place)
    refuse_ssh_address(place)
    refuse_undecoded(place)
    refuse_linked_files([place], RealDisk())
    refuse_undecoded_modes(config.file if config is not None else None)
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        settle_folders(place, config).refuse_outside()
        return WriteTarget(place, quiet(config or MessageStoreConfig()), release, exists=False, recovery=None)
    if place.is_dir() and _is_store_without_log(place):
        settle_folders(place, config).refuse_outside()
        settled = quiet(config or MessageStoreConfig())
        missed = without_log(StorePaths(place), settled, RealDisk(), release)
        return WriteTarget(place, settled, release, exists=True, recovery=None, empty_log=missed)
    with open_store(path, config) as store:
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one: it cannot be written"), file=path)
        settle_folders(store.path, config).refuse_outside()
        if store.lock_state == "held":
            StoreLock(store.path / "lock").release()  # raises, and names the holder
        release = given_release or require_release(store)
        recovery = plan(store, release, losses=False)
        if not recovery.will_start and recovery.empty_log is None:
            blocker = recovery.blockers[0]
            raise StoreError(
                sentence("nothing was changed: a broker would not start here: {message}", message=blocker.message),
                file=blocker.file,
            )
        if recovery.file_limit is not None:
            _refuse_to_leave_out(plan(store, release), path)
        return WriteTarget(
            store.path,
            quiet(derived_config(store)),
            release,
            exists=True,
            recovery=recovery,
            empty_log=recovery.empty_log,
        )


def _refuse_to_leave_out(recovery: RecoveryPlan, path: str) -> None:
    """Raise :class:`StoreError` where opening the store leaves messages in no queue: its start reads too few files."""
    loss = recovery.undispatched
    if loss is not None and loss.messages:
        raise StoreError(
            sentence(
                "nothing was changed: {undispatched_words}. {file_limit_words}. Or build the queues first: "
                "storescope dispatch STORE",
                undispatched_words=undispatched_words(loss),
                file_limit_words=file_limit_words(recovery),
            ),
            file=path,
        )


def _is_store_without_log(place: Path) -> bool:
    """Only what a store has beside its log is there: it was opened once, or a broker's tables were laid down."""
    return {path.name for path in place.iterdir()} <= _BESIDE_THE_LOG


def check_new_path(path: str, inside: Path) -> Path:
    """The place of a new store: absent or empty, and not within the store ``inside``. Raises :class:`UsageError`."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(sentence("expected a new or empty folder, found something there"), file=path)
    if target.resolve().is_relative_to(inside.resolve()):
        raise UsageError(sentence("expected a folder outside the store that is copied"), file=path)
    return target
