"""``pipeline rebuild``: **writes** consume queues and index files built from the logs of stores, into a new place.

With several stores each has a folder of its own there, named after its broker, else after its own folder. What is
written has the bytes that ``dispatch --to`` writes. ``--compare`` then holds it against what the stores have:
``difference`` records, a queue or an index each that differs, ``store``, ``what`` (``queue`` or ``index``), ``topic``,
``queueId``, ``entries`` there, ``missing``, ``extra``, ``different``, ``expired`` (the log has their units no more),
``firstMissing``, ``firstExtra``, ``firstDifferent`` (queue offsets, for the index offsets into the log); the exit code
is 1 where there is any.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import releases
from engine.cli.options import add_config, add_job, add_release, read_config
from engine.cli.output import Column, Output
from engine.cli.pipeline_jobs import Job, add_split_option, job_options, run_job
from engine.cli.rebuilt_text import print_rebuilt, rebuilt_figures
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import StoreError, UsageError
from engine.files.store_folders import settle_folders
from engine.mapped.reading import Reading
from engine.releases import Release, parse
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.pipeline.files import StorePlace
    from engine.pipeline.rebuild import Rebuilt, SparkTasks
    from engine.pipeline.rebuild_parts import StoreFacts

DIFFERENCES = (
    Column("Store", "store", "path", spare=1),
    Column("What", "what"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Entries", "entries", "number", spare=2),
    Column("Missing", "missing", "number"),
    Column("Extra", "extra", "number"),
    Column("Different", "different", "number"),
    Column("Expired", "expired", "number", spare=1),
    Column("First missing", "firstMissing", "number"),
    Column("First extra", "firstExtra", "number"),
    Column("First different", "firstDifferent", "number"),
)


def register(jobs: Any) -> None:
    """Add the parser of the job."""
    parser = add_job(
        jobs,
        "rebuild",
        "Build consume queues and index files from the logs (writes DIR)",
        "pipeline rebuild ~/store --out /tmp/rebuilt --compare",
        parents=[job_options("+")],
    )
    parser.add_argument(
        "--out", metavar="DIR", help="a new or empty folder; the result appears there when it is complete"
    )
    parser.add_argument(
        "--compare", action="store_true", help="then list how the stores' own queues and index differ from the result"
    )
    add_config(parser, "the brokers' configuration file; it gives the file sizes")
    add_release(parser, "the release as which they are built (default: that of each store)")
    add_split_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Build, then compare where that is asked for."""
    if not args.out:
        raise UsageError(sentence("pipeline rebuild writes files: give the folder with --out DIR"))
    target = Path(args.out).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(sentence("expected a new or empty folder"), file=args.out)
    config = read_config(args)
    for store in args.stores:
        settle_folders(Path(store), config).refuse_outside()  # before Spark is started for nothing
    with run_job(args, out, "rebuild") as job:
        from engine.pipeline.rebuild import SparkTasks, rebuild

        splits = job.plan(args.stores, args.split_bytes, needs_all_files=True)
        stores = list(facts_of(job.stores, config, target, None if args.release is None else parse(args.release)))
        if not stores:
            raise StoreError(sentence("none of the stores can be built"), file=job.stores[0].path)
        on = SparkTasks(job.spark)
        done = rebuild(on, stores, splits, target, job.watch)
        for rebuilt in done:
            _report_rebuilt(rebuilt, target, out)
        differences = _compare(on, stores, target, job, out) if args.compare else 0
        job.summary(out=str(target), **({"differences": differences} if args.compare else {}))
    return 1 if differences else 0


def facts_of(
    places: Sequence[StorePlace],
    given_settings: MessageStoreConfig | None,
    target: Path,
    release: Release | None = None,
) -> Iterator[StoreFacts]:
    """Yield the facts of each store's files and tables before its log is read. ``release`` is the one as which they
    are built, by default that of each store.

    A store whose queues cannot be built is named as unreadable and left out, so that a fleet goes on; where it is the
    only one, raises :class:`StoreError`.
    """
    from engine.inspection.deleted_topics import topics_known
    from engine.inspection.derived_config import derived_config
    from engine.inspection.snapshot import open_store
    from engine.inspection.undecoded import rocksdb_queues
    from engine.inspection.written_release import require_release
    from engine.mapped.disk import RealDisk
    from engine.pipeline.rebuild_parts import StoreFacts
    from engine.rebuilding import batch_topics

    for place, label in zip(places, store_labels(places), strict=True):
        if not Path(place.path).is_dir():
            raise UsageError(sentence("expected a store on a disk that every worker sees"), file=place.path)
        with ExitStack() as stack:
            store = stack.enter_context(open_store(place.path, given_settings))
            if store.kind != "store":
                raise UsageError(sentence("expected a store, found a part of one"), file=place.path)
            settle_folders(store.path, given_settings).refuse_outside()
            if rocksdb_queues(store):
                why = "its consume queues are a RocksDB, which is not built here"
                if len(places) == 1:
                    raise StoreError(why, file=place.path)
                Reading().note(place.path, why, "read")
                continue
            if target == store.path or store.path in target.parents:
                raise UsageError(sentence("expected a folder outside the store"), file=str(target))
            disk = RealDisk()
            stack.callback(disk.close)
            yield StoreFacts(
                place.path,
                label,
                max(store.log.min_offset, 0),
                None if store.abort else store.log.max_offset,
                derived_config(store),
                batch_topics(store, disk),
                topics_known(store),
                tag_entries=releases.rules_of(release or require_release(store)).writes_tag_entries,
            )


def store_labels(places: Sequence[StorePlace]) -> list[str]:
    """Return the folder of each store below the output, all different; none where there is one store only."""
    if len(places) == 1:
        return [""]
    folder_labels: list[str] = []
    for place in places:
        path = Path(place.path)
        folder_name = path.parent.name if path.name == "store" else path.name
        name = (place.broker or folder_name or "store").replace("/", "-")
        number, label = 1, name
        while label in folder_labels:
            number += 1
            label = f"{name}-{number}"
        folder_labels.append(label)
    return folder_labels


def _report_rebuilt(done: Rebuilt, target: Path, out: Output) -> None:
    path = str(target / done.label) if done.label else str(target)
    out.record(
        {
            "type": "dispatched",
            "path": path,
            "store": done.path,
            **rebuilt_figures(done),
            "keptPieces": done.reused,
        }
    )
    if done.reused:
        out.say(f"{done.path}: {done.reused:,} pieces exist already from an earlier run that was stopped")
    print_rebuilt(out, done, path, prefix=f"{done.path}: ")


def _compare(on: SparkTasks, stores: Sequence[StoreFacts], target: Path, job: Job, out: Output) -> int:
    """Tell the differences, and give how many queues and indexes have any."""
    from engine.pipeline.rebuild_compare import SCHEMA, compare, compare_tasks

    job.watch.step("comparing")
    tasks = [[task] for facts in stores for task in compare_tasks(facts, target / facts.label, on.cores)]
    rows = on(tasks, compare, SCHEMA) if tasks else []
    rows.sort(key=lambda row: (row["store"], row["what"], row["topic"] or "", row["queueId"] or 0))
    differ = [row for row in rows if row["missing"] or row["extra"] or row["different"]]
    for row in differ:
        out.record({"type": "difference", **row}, DIFFERENCES)
    out.flush()
    out.line(
        f"compared {number_of(len(rows), 'queue', 'queues')} and indexes with those of the stores: "
        f"{len(differ):,} differ"
    )
    return len(differ)
