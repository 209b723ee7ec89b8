"""``pipeline import``: **writes** a fresh store of what ``pipeline export`` wrote, in the order of physical offsets.

Spark (of a small export this process) reads and sorts the rows; the engine appends them in this process, one store has
one writer. A unit comes to the place it had where the export holds everything before it. Units with a wrong body CRC
are left behind, as by ``copy``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.cli.options import add_config, add_job, add_release, read_config
from engine.cli.output import Output
from engine.cli.pipeline_export import ABOUT_FILE
from engine.cli.pipeline_jobs import Job, job_options, run_job, staged_output
from engine.config import MessageStoreConfig, from_mapping
from engine.english import number_of
from engine.errors import CannotRead, StoreError, UsageError
from engine.files.store_folders import settle_folders
from engine.pipeline.defaults import IMPORT_MEMORY_BYTES
from engine.releases import NAMES, NEWEST, Release
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.message_store import MessageStore

MAX_EMPTY_FILES = 64
"""Log files without a unit that an import makes, to give units the place they had: a filter, or damage, took what was
there. More than that no log of a broker has between two units, and each costs 8 MiB of the disk.
"""
_MAX_INT64 = (1 << 63) - 1
_WAIT_MS = 1000.0


def register(jobs: Any) -> None:
    """Add the parser of the job."""
    parser = add_job(
        jobs,
        "import",
        "Make a new store from an export (writes DIR)",
        "pipeline import /tmp/messages --out /tmp/store",
        parents=[job_options("")],
    )
    parser.add_argument("source", metavar="EXPORT", help="a folder that 'pipeline export' wrote")
    parser.add_argument(
        "--out", metavar="DIR", help="the new store: a folder that does not exist yet; it appears when it is complete"
    )
    parser.add_argument("--store", metavar="PATH", help="the store to import, if the export contains several")
    add_config(parser, "a broker's configuration for the new store")
    add_release(parser, "the release as which the store is written (default: that of the store that was exported)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Append every row to a store beside its place, then give it its name."""
    about = _read_about(args.source)
    chosen = _plan(about, args)
    kind = about["format"]
    small = partial(_is_small, args.source, kind)
    with staged_output(args.out, "import") as folder, run_job(args, out, "import", small=small) as job:
        from engine.pipeline.imports import check_columns

        check_columns(args.source, kind)
        job.watch.step("sorting rows")
        done = _Writer(folder, chosen).run(_units(job, args.source, kind, chosen.store), job)
        job.bytes = done.size
        job.summary(
            units=done.units,
            out=args.out,
            unitBytes=done.size,
            maxOffset=done.end,
            leftBehind=done.left,
        )
    out.line(f"{args.out} is complete: {number_of(done.units, 'unit', 'units')}, its log ends at {done.end:,}")
    if done.left:
        out.say(f"not imported because of a wrong body CRC: {number_of(done.left, 'unit', 'units')}")
    return 0


def _units(job: Job, source: str, kind: str, store: str | None) -> Iterable[tuple[int, str, bytes]]:
    """Offset, CRC and bytes of the units of an export, in their order."""
    from engine.pipeline import imports
    from engine.pipeline.imports import read, units_of

    if job.here is not None:
        return imports.iter_units(source, kind, store, job.watch.check)
    rows = read(job.spark, str(Path(source).absolute()), kind)
    if store is not None:
        rows = rows.where(rows["store"] == store)
    sorted_units: Iterable[Any] = units_of(rows).toLocalIterator(prefetchPartitions=True)
    return sorted_units


def _is_small(source: str, kind: str) -> bool:
    """Return True if the rows fit into :data:`IMPORT_MEMORY_BYTES`, or are no rows: that needs no Spark either.

    False where Arrow is missing: the way by Spark says what to install.
    """
    if importlib.util.find_spec("pyarrow") is None:
        return False
    from pyarrow import ArrowException

    from engine.pipeline import imports

    try:
        return imports.export_size(source, kind) < IMPORT_MEMORY_BYTES
    except (OSError, ArrowException):
        return True


def _read_about(source: str) -> dict[str, Any]:
    path = Path(source) / ABOUT_FILE
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRead(
            sentence("expected a directory that 'pipeline export' wrote: {cause}", cause=error.strerror),
            file=str(path),
        ) from None
    except ValueError:
        raise StoreError(sentence("expected what 'pipeline export' writes, found no JSON"), file=str(path)) from None
    if not isinstance(about, dict) or about.get("format") not in {"parquet", "csv", "json"}:
        raise StoreError(sentence("expected what 'pipeline export' writes, found something else"), file=str(path))
    if about.get("masked"):
        raise UsageError(
            sentence("a masked export cannot be imported: {names} are gone", names=", ".join(about["masked"])),
            file=source,
        )
    return about


class ImportPlan(NamedTuple):
    """The plan of a new store: its configuration, its batch topics with their queues, the release as which it is
    written, and the store whose rows are imported, where the export holds several.
    """

    config: MessageStoreConfig
    batch_topics: dict[str, int]
    release: Release
    store: str | None


def _plan(about: dict[str, Any], args: argparse.Namespace) -> ImportPlan:
    from engine.cli.copying import target_config
    from engine.inspection.derived_config import quiet

    stores = {str(store_facts.get("store")): store_facts for store_facts in about.get("stores", ())}
    if args.store is None and len(stores) > 1:
        raise UsageError(
            sentence(
                "the export holds {stores}: choose one with --store",
                stores=number_of(len(stores), "store", "stores"),
            ),
            file=args.source,
        )
    if args.store is not None and args.store not in stores:
        raise UsageError(
            sentence(
                "expected --store with one of {names}, found '{store}'",
                names=", ".join(sorted(stores)),
                store=args.store,
            )
        )
    chosen = args.store if args.store is not None else next(iter(stores), None)
    facts = stores[chosen] if chosen is not None else {}
    config, _ = from_mapping(facts.get("config") or {})
    batches = facts.get("batchTopics") or {}
    if not isinstance(batches, dict) or not all(type(queues) is int for queues in batches.values()):
        raise StoreError(
            sentence("expected batchTopics with their numbers of queues"), file=str(Path(args.source) / ABOUT_FILE)
        )
    given_settings = read_config(args)
    if args.out is not None:
        settle_folders(Path(args.out), given_settings).refuse_outside()
    release = args.release or facts.get("release")
    known_release = release if release in NAMES else NEWEST
    return ImportPlan(quiet(target_config(config, given_settings)), batches, known_release, args.store)


class _Writer:
    """The fresh store, and what has gone into it."""

    def __init__(self, folder: Path, chosen: ImportPlan) -> None:
        self._folder, self._config, self._batch_topics = folder, chosen.config, chosen.batch_topics
        self._release = chosen.release
        self.units = self.size = self.left = self.end = 0
        self._read, self._empty = 0, 0

    def run(self, rows: Iterable[tuple[int, str, bytes]], job: Job) -> _Writer:
        """Append all of ``rows`` (offset, crc, unit), which are in order."""
        from engine.message_store import MessageStore

        store = MessageStore(self._folder, self._config, release=self._release)
        try:
            for name, queues in self._batch_topics.items():
                store.tables.create_topic(name, queues, attributes={"queue.type": "BatchCQ"})
            is_first = True
            for offset, crc, unit in rows:
                if self.units % 10_000 == 0:
                    job.watch.check()
                self._must_follow(offset, len(unit))
                if crc == "bad":
                    self.left += 1
                    continue
                if is_first:
                    size = self._config.mapped_file_size_commit_log
                    store.parts.commit_log.begin_at(offset)
                    self.end, is_first = offset - offset % size, False
                self._reach(store, offset)
                self.end = store.parts.commit_log.append_raw(bytes(unit)) + len(unit)
                self.units += 1
                self.size += len(unit)
            while not store.wait_dispatched(_WAIT_MS):
                if not store.flags.writeable:
                    raise StoreError(
                        sentence("the import could not be dispatched: {why}", why=store.flags.why),
                        file=str(self._folder),
                    )
            store.close()
        except BaseException:
            store.abandon()
            raise
        if store.paths.abort.exists():
            raise StoreError(
                sentence("the new store could not be closed: {why}", why=store.flags.why), file=str(self._folder)
            )
        return self

    def _must_follow(self, offset: int, size: int) -> None:
        """Raise :class:`StoreError` if a log cannot hold a unit of ``size`` bytes there behind those before it."""
        if not 0 <= offset <= _MAX_INT64 - 2 * self._config.mapped_file_size_commit_log:
            raise StoreError(
                sentence("expected an offset in a log, found a unit with the physicalOffset {offset:,}", offset=offset)
            )
        if offset < self._read:
            raise StoreError(
                sentence(
                    "the unit at {offset:,} begins in front of the end of the one before it, {previous_end:,}: "
                    "the rows are not those of one log",
                    offset=offset,
                    previous_end=self._read,
                )
            )
        self._read = offset + size

    def _reach(self, store: MessageStore, offset: int) -> None:
        """End files until ``offset`` lies in the one that is written, as blanks did that are no rows."""
        size = self._config.mapped_file_size_commit_log
        empty = max(offset // size - self.end // size - 1, 0)
        self._empty += empty
        if self._empty > MAX_EMPTY_FILES:
            raise StoreError(
                sentence(
                    "between the units up to {end:,} and the one at {offset:,} lie {files} of {span} without a "
                    "unit: at most {max_empty_files} such files are made in one import",
                    end=self.end,
                    offset=offset,
                    files=number_of(empty, "whole log file", "whole log files"),
                    span=number_of(size, "byte", "bytes"),
                    max_empty_files=MAX_EMPTY_FILES,
                )
            )
        while self.end // size < offset // size:
            store.parts.commit_log.begin_at(self.end)
            store.parts.commit_log.append_blank()
            self.end += size - self.end % size
