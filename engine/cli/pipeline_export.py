"""``pipeline export``: **writes** units as Parquet by topic and day, CSV or JSON lines, into a place that is not there.

Beside the rows stands ``_storescope.json``: what was exported, and the configuration and the batch topics with
which ``pipeline import`` makes a store of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.cli.options import add_job, add_masking, masking
from engine.cli.output import Output
from engine.cli.pipeline_jobs import add_split_option, job_options, run_job, staged_output
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import StoreError, UsageError
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.pipeline.files import Unread

ABOUT_FILE = "_storescope.json"
FACTS = ("config", "batchTopics", "release", "topicsTable")
"""Texts for a store whose name and place are masked."""


def register(jobs: Any) -> None:
    """Add the parser of the job."""
    parser = add_job(
        jobs,
        "export",
        "Export the messages as Parquet, CSV or JSON lines (writes DIR)",
        "pipeline export ~/store --out /tmp/messages --format csv --mask bodies,keys",
        parents=[job_options("+")],
    )
    parser.add_argument(
        "--out", metavar="DIR", help="a folder that does not exist yet; it appears when the export is complete"
    )
    parser.add_argument(
        "--format", choices=("parquet", "csv", "json"), default="parquet", help="the file format (default: %(default)s)"
    )
    parser.add_argument("--where", metavar="FILTER", help="export only units that match this filter")
    add_masking(parser)
    add_split_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the rows beside their place, then give them its name."""
    where = None
    if args.where:
        from engine.query import parse

        where = parse(args.where)  # a mistake in the filter is reported before anything is opened
        if where.body_fields:
            raise UsageError(
                sentence(
                    "{name}: jobs of the pipeline do not decode bodies; sql --decoded and units --decoded do",
                    name=min(where.body_fields),
                )
            )
    mask, out.mask = masking(args), None
    with staged_output(args.out, "export") as folder, run_job(args, out, "export") as job:
        from engine.pipeline import export_parquet, export_text
        from engine.pipeline.export import ExportOptions, exported_rows, write_text
        from engine.query.lexer import without_values

        splits = job.plan(args.stores, args.split_bytes)
        job.watch.step("writing rows", job.bytes)
        options = ExportOptions(where, mask)
        if args.format == "parquet":
            export_parquet.write(job.spark, splits, options, folder, job.counter)
        elif job.here is not None:
            export_text.write_texts(job.here, splits, options, folder, args.format, job.counter)
        else:
            write_text(exported_rows(job.spark, splits, options, job.counter), str(folder / "rows"), args.format)
            for path in (folder / "rows").iterdir():
                path.rename(folder / path.name)
            (folder / "rows").rmdir()
        job.watch.check()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        facts = [{"store": place.path, "broker": place.broker, **_store_facts(place.path)} for place in job.stores]
        about = {
            "storescope": __version__,
            "format": args.format,
            "where": without_values(args.where) if args.where and mask is not None and mask.any else args.where,
            "masked": list(mask.parts) if mask is not None else [],
            "keptProperties": sorted(mask.kept) if mask is not None else [],
            "stores": facts,
            "incomplete": incomplete_stores(job.unread),
            "unreadBytes": job.counter.unread.value,
        }
        if mask is not None and mask.hosts:
            about["incomplete"] = len(about["incomplete"])
            about["stores"] = [
                {name: store_facts[name] for name in store_facts if name in FACTS} for store_facts in about["stores"]
            ]
        (folder / ABOUT_FILE).write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        damaged, damage = job.counter.damaged.value, job.counter.damage.value
        unread = job.counter.unread.value
        job.summary(out=args.out, bytesWritten=size, damaged=damaged, damage=damage, unreadBytes=unread)
    out.line(f"{args.out} is complete: {number_of(size, 'byte', 'bytes')} of {args.format}")
    for store in facts:
        if "topicsTable" in store:
            out.say(
                f"{store['store']}: config/topics.json cannot be read ({store['topicsTable']}): the export knows only "
                "the batch topics that have queues; an import makes plain queues of the others"
            )
    if damaged:
        out.say(
            f"skipped because damaged: {number_of(damaged, 'place', 'places')}, {number_of(damage, 'byte', 'bytes')}"
        )
    if unread:
        out.say(
            f"left out because they could not be read: {number_of(unread, 'byte', 'bytes')}; "
            f"{ABOUT_FILE} names the stores"
        )
    return 0


def incomplete_stores(unread: Iterable[Unread]) -> list[dict[str, Any]]:
    """The stores of which units are missing from the rows: each with the files that could not be read, and why."""
    stores: dict[str, dict[str, Any]] = {}
    for item in unread:
        entry = stores.setdefault(item.store, {"store": item.store, "broker": item.broker, "unreadable": []})
        entry["unreadable"].append({"file": item.file, "error": item.why})
    return list(stores.values())


def _store_facts(path: str) -> dict[str, Any]:
    """Return facts of a store on this machine that rows do not hold: the sizes and kinds of its queues, in the words
    of a broker's file, the release that seems to have written it, and the topics whose queues are batch queues,
    with their number of queues.
    """
    from engine.inspection.derived_config import derived_config
    from engine.inspection.snapshot import open_store
    from engine.inspection.written_release import require_release

    if not Path(path).is_dir():
        return {"config": {}}
    try:
        with open_store(path) as store:
            config, release = derived_config(store), require_release(store)
            batches, wrong = _batch_topics(store)
    except StoreError:
        return {"config": {}}
    attributes = {item.metadata["java"]: item.name for item in fields(MessageStoreConfig) if "java" in item.metadata}
    settings = {key: getattr(config, attributes[key]) for key in sorted(config.given) if key in attributes}
    facts: dict[str, Any] = {"config": settings, "release": release}
    return facts | ({"batchTopics": batches} if batches else {}) | ({"topicsTable": wrong} if wrong else {})


def _batch_topics(store: StoreSnapshot) -> tuple[dict[str, int], str]:
    """Return topics whose queues are batch queues, with their number of queues; and why the topics table cannot be
    read, then those that have such queues.
    """
    from engine.mapped.disk import RealDisk
    from engine.rebuilding import batch_queue_topics, batch_topics

    if store.paths is None:
        return {}, ""
    queues_by_topic, wrong = store.topics(), ""
    with closing(RealDisk()) as disk:
        try:
            names = batch_topics(store, disk)
        except StoreError as error:
            names, wrong = batch_queue_topics(store), error.what
    return {name: max(queues_by_topic.get(name, ()), default=0) + 1 for name in sorted(names)}, wrong
