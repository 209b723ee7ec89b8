"""``pipeline verify``: whole stores, or a fleet, against the rules: the findings of ``check``, with the same evidence.

Tasks prove splits of the logs in which nothing is wrong: units, and their queue entries. Then each store is checked by
the code of ``check``, which passes over what was proven and looks at the rest itself. With ``--json`` each ``finding``
and each ``summary`` has the ``store`` that it is about.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.commands.check import SEVERITIES
from engine.cli.finding_text import COLUMNS, print_findings
from engine.cli.options import add_config, add_job, add_masking, read_config
from engine.cli.output import Column, Output
from engine.cli.pipeline_jobs import add_split_option, job_options, run_job
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import StoreError, UsageError
from engine.files.store_folders import settle_folders
from engine.mapped.reading import Reading, gather_unread
from engine.sentences import object_hook, sentence, to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.pipeline.files import StorePlace
    from engine.pipeline.progress import Watch
    from engine.pipeline.rebuild import TaskRunner
    from engine.pipeline.splits import Split
    from engine.pipeline.verify import PackedProof, VerifyFacts

COLUMNS_OF_SEVERAL = (*COLUMNS[:2], Column("Store", "store", "path"), *COLUMNS[2:])
SCHEMA = "store int, number int, record string, units bigint"


@dataclass(frozen=True, slots=True)
class CheckTask:
    """A task that checks one store, the ``number``-th of its job; ``only`` names rules by id, None all."""

    number: int
    path: str
    config: MessageStoreConfig | None
    only: frozenset[str] | None
    proofs: tuple[PackedProof, ...]


@dataclass(slots=True)
class Verified:
    """Result of checking one store: the records of ``check``, the last one its summary. ``proven`` splits of
    ``splits`` were in order by themselves.
    """

    path: str
    records: list[dict[str, Any]]
    units: int
    splits: int
    proven: int


def register(jobs: Any) -> None:
    """Add the parser of the job."""
    parser = add_job(
        jobs,
        "verify",
        "Check stores: compare log, queues and index with each other",
        "pipeline verify 'fleet/*/store' --fail-on warn",
        parents=[job_options("+")],
    )
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="error",
        help="exit with 1 if a finding has at least this severity (default: %(default)s)",
    )
    parser.add_argument("--only", metavar="IDS", help="apply only these rules (separated by commas)")
    add_config(parser, "the brokers' configuration")
    add_masking(parser)
    add_split_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Check all stores; the exit code is that of ``check``."""
    only = frozenset(args.only.replace(" ", "").split(",")) if args.only else None
    config = read_config(args)
    counts: Counter[str] = Counter()
    with run_job(args, out, "verify") as job:
        from engine.pipeline.rebuild import SparkTasks

        splits = job.plan(args.stores, args.split_bytes)
        for place in job.stores if config is not None else ():
            for words in settle_folders(Path(place.path), config, reading=True).words:
                out.say(f"{args.config}: {words}")
        results = verify(SparkTasks(job.spark), job.stores, splits, config, only, job.watch)
        for result in results:
            counts.update(_report_store(result, len(results) > 1, out))
        proven = sum(result.proven for result in results)
        job.summary(
            units=sum(result.units for result in results), provenSplits=proven, **{s: counts[s] for s in SEVERITIES}
        )
    return int(any(counts[severity] for severity in SEVERITIES[SEVERITIES.index(args.fail_on) :]))


def verify(
    run: TaskRunner,
    places: Sequence[StorePlace],
    splits: Sequence[Split],
    config: MessageStoreConfig | None = None,
    only: frozenset[str] | None = None,
    watch: Watch | None = None,
) -> list[Verified]:
    """Check the stores at ``places``, in their order; ``run`` carries out tasks. Raises :class:`StoreError`."""
    from engine.pipeline.tasks import splits_by_store
    from engine.pipeline.verify import prove_stores

    facts, splits_to_prove = [], []
    for place, listed in zip(places, splits_by_store(splits, [place.path for place in places]), strict=True):
        store_facts, store_splits = _facts_of(place, listed, config)
        facts.append(store_facts)
        splits_to_prove += store_splits
    proofs = prove_stores(run, facts, splits_to_prove, watch)
    if watch is not None:
        watch.step("checking stores")
    sizes = Counter(split.store for split in splits)
    checks = [CheckTask(number, place.path, config, only, tuple(proofs[number])) for number, place in enumerate(places)]
    checks.sort(key=lambda task: -sizes[task.path])
    rows = run([[task] for task in checks], check_stores, SCHEMA)
    results = [Verified(each.path, [], 0, sizes[each.path], len(proofs[number])) for number, each in enumerate(places)]
    for row in sorted(rows, key=lambda row: (row["store"], row["number"])):
        record = json.loads(row["record"], object_hook=object_hook)
        if record["type"] == "unreadable":  # the worker's; this process reports it, and ends with its exit code
            Reading().note(record["file"], record["error"], record["action"])
            continue
        results[row["store"]].records.append(record)
        results[row["store"]].units += row["units"]
    return results


def _facts_of(
    place: StorePlace, splits: Sequence[Split], config: MessageStoreConfig | None
) -> tuple[VerifyFacts, list[Split]]:
    """Return facts of a store before its log is read, and those of its splits that are of the files the check sees."""
    from engine.codec.message import DEFAULT_DELAY_LEVELS
    from engine.inspection.snapshot import open_store
    from engine.pipeline.verify import VerifyFacts

    if not Path(place.path).is_dir():
        raise UsageError(sentence("expected a store on a disk that every worker sees"), file=place.path)
    try:
        with open_store(place.path, config) as store:
            seen_files = {(file.path, file.start_offset, file.size) for file in store.log.files}
            levels = store.config.delay_levels() if store.config is not None else DEFAULT_DELAY_LEVELS
            facts = VerifyFacts(place.path, levels, store.paths is not None and store.paths.index.is_dir())
    except StoreError:
        return VerifyFacts(place.path, DEFAULT_DELAY_LEVELS, index=False), []  # its check reports the error
    return facts, [split for split in splits if (split.path, split.file_start, split.file_size) in seen_files]


def check_stores(share: Sequence[CheckTask]) -> Iterator[pa.RecordBatch]:
    """Check stores as a task: a row of :data:`SCHEMA` for each record.

    A store that cannot be checked gives ``unreadable`` records and a summary that is not complete: the task goes on
    with the next one.
    """
    import pyarrow as pa

    for task in share:
        records, units = _check_store(task)
        columns = {
            "store": pa.array([task.number] * len(records), pa.int32()),
            "number": pa.array(range(len(records)), pa.int32()),
            "record": pa.array([json.dumps(to_json(record)) for record in records], pa.string()),
            "units": pa.array(units, pa.int64()),
        }
        yield pa.RecordBatch.from_pydict(columns)


def _check_store(task: CheckTask) -> tuple[list[dict[str, Any]], list[int]]:
    """The records of one store's check, and the number of units that each speaks for."""
    from engine.inspection.findings import check
    from engine.inspection.snapshot import open_store
    from engine.rules.findings import Finding, Summary, summarise

    results: list[Finding | Summary] = []
    unreadable: list[dict[str, Any]] = []
    with gather_unread() as unread:
        try:
            with open_store(task.path, task.config) as store:
                results += check(store, only=task.only, proofs=(proof.unpacked() for proof in task.proofs))
        except StoreError as error:
            if not unread:
                file = error.file or task.path
                unreadable.append({"type": "unreadable", "file": file, "error": error.what, "action": "read"})
            results.append(summarise([result for result in results if isinstance(result, Finding)], complete=False))
    unreadable[:0] = [item.record() for item in unread]
    units = [0] * len(unreadable) + [result.units if isinstance(result, Summary) else 0 for result in results]
    return [*unreadable, *(result.record() for result in results)], units


def _report_store(result: Verified, several: bool, out: Output) -> Counter[str]:
    """Print one store's findings, then its summary; return the number of findings of each severity."""
    if several:
        out.line(
            f"{result.path}: {number_of(result.units, 'unit', 'units')}, {result.proven:,} of "
            f"{number_of(result.splits, 'split', 'splits')} "
            "in order by themselves"
        )
    records = [{**record, "store": result.path} for record in result.records]
    print_findings(records, out, result.path, COLUMNS_OF_SEVERAL if several else COLUMNS)
    return Counter({severity: records[-1][severity] for severity in SEVERITIES})
