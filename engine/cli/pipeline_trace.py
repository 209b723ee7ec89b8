"""``pipeline trace``: where the messages of one key, or of a file of keys, are in a fleet, or why they are not there.

Spark finds the units (:mod:`engine.pipeline.trace`); then each store is asked for the verdicts, by the code of the
command ``where``, in tasks again: the executors have to see the stores as directories.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.options import add_job, add_masking
from engine.cli.output import Column, Output
from engine.cli.pipeline_jobs import add_split_option, job_options, run_job
from engine.errors import CannotRead, StoreError, Undecoded, UsageError
from engine.mapped.reading import Reading, gather_unread
from engine.sentences import object_hook, sentence, to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.cli.pipeline_jobs import Job
    from engine.pipeline.trace import KeyPlaces, Store

COLUMNS = (
    Column("Key", "key"),
    Column("Broker", "broker", spare=1),
    Column("Verdict", "verdict"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Next", "nextStep", "prose", spare=2),
)
KEYS_PER_QUESTION = (500, 20_000)
"""Keys that one task asks a store for, at least and at most: each opens the store and looks for the end of its log."""
MIN_WAVE_QUESTIONS = 16
"""Tasks whose answers are waited for together, at least."""
NOT_FOUND = ("neverSeen", "unknown", "expired", "truncated")
_LOST_ORDER = ("damaged", "truncated", "expired", "unknown", "neverSeen")
"""For a message in no store, the verdict of the store with the most evidence counts."""


def register(jobs: Any) -> None:
    """Add the parser of the job."""
    parser = add_job(
        jobs,
        "trace",
        "Find the messages of given keys in many stores, or explain why they are missing",
        "pipeline trace 'fleet/*/store' --key O-1042 --key O-1043 --group billing",
        parents=[job_options("+")],
    )
    parser.add_argument(
        "--key", action="append", default=[], metavar="KEY", help="a key or unique key; may be given several times"
    )
    parser.add_argument("--keys-file", metavar="FILE", help="a file of keys, one per line")
    parser.add_argument("--topic", metavar="T", help="only messages of this topic")
    parser.add_argument("--group", metavar="G", help="the consumer group that did not get the messages")
    add_masking(parser)
    add_split_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print one ``whereResult`` for each message of a key and each store that holds it, else one that says why none
    does.
    """
    keys = list(dict.fromkeys([*args.key, *_read_keys(args.keys_file)]))
    if not keys:
        raise UsageError(sentence("expected a key: --key KEY, or --keys-file FILE"))
    counts: dict[str, int] = {}
    missing = set(keys)
    with run_job(args, out, "trace") as job:
        splits = job.plan(args.stores, args.split_bytes)
        from engine.pipeline.trace import find_keys

        job.watch.step("looking for units", job.bytes)
        places_by_store = find_keys(job.spark, splits, keys, job.counter)
        for place in job.stores:  # a store whose log is empty has no splits, and may tell of what was there
            places_by_store.setdefault((place.path, place.broker), _no_places())
        job.watch.step("asking the stores")
        for row in _answers(job, places_by_store, keys, args.topic, args.group):
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
            if row["verdict"] not in NOT_FOUND:
                missing.discard(row["key"])
            out.record(row, COLUMNS)
        job.summary(keys=len(keys), keysMissing=len(missing), verdicts=dict(sorted(counts.items())))
    return 1 if len(missing) == len(keys) else 0


def _no_places() -> KeyPlaces:
    from engine.pipeline.trace import KeyPlaces

    return KeyPlaces()


def _read_keys(path: str | None) -> Iterator[str]:
    if path is None:
        return
    try:
        with Path(path).open(encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                if key := line.strip("\r\n"):
                    yield key
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=path) from error


@dataclass(frozen=True, slots=True)
class Question:
    """A question of one task to one store: keys with the offsets of their units and their places in damage."""

    store: str
    broker: str | None
    keys: tuple[tuple[str, tuple[int, ...], tuple[int, int] | None], ...]
    relatives: dict[str, list[int]]
    topic: str | None
    group: str | None


def questions(
    places_by_store: dict[Store, KeyPlaces],
    keys: Sequence[str],
    topic: str | None,
    group: str | None,
    tasks: int,
    sizes: tuple[int, int] = KEYS_PER_QUESTION,
) -> Iterator[Question]:
    """Yield questions: each store is asked for the keys that it holds, and every store for those that none holds;
    ``tasks`` questions keep all cores busy, each of ``sizes`` keys.
    """
    existing_keys = {key for places in places_by_store.values() for key in places.units}
    lost = [key for key in keys if key not in existing_keys]
    for (store, broker), places in places_by_store.items():
        store_keys = [key for key in keys if key in places.units] + lost
        together = min(max(len(store_keys) // tasks, sizes[0]), sizes[1])
        for start in range(0, len(store_keys), together):
            key_group = store_keys[start : start + together]
            listed = tuple((key, tuple(places.units.get(key, ())), places.damaged.get(key)) for key in key_group)
            yield Question(store, broker, listed, places.relatives_of(key_group), topic, group)


def _answers(
    job: Job, places_by_store: dict[Store, KeyPlaces], keys: Sequence[str], topic: str | None, group: str | None
) -> Iterator[dict[str, Any]]:
    from engine.pipeline import tasks

    lost: dict[str, tuple[int, str]] = {}
    wave = max(job.spark.sparkContext.defaultParallelism * 4, MIN_WAVE_QUESTIONS)
    for wave_questions in in_batches(questions(places_by_store, keys, topic, group, wave), wave):
        job.watch.check()
        frame = tasks.run_tasks(
            job.spark, [[pickle.dumps(question)] for question in wave_questions], _answer_all, "answer string"
        )
        for text in (text for batch in frame.toArrow().to_batches() for text in batch.column(0).to_pylist()):
            row = json.loads(text, object_hook=object_hook)
            if row["type"] == "unreadable":  # the worker's; this process reports it, and ends with its exit code
                Reading().note(row["file"], row["error"], row["action"])
                continue
            if row["verdict"] not in _LOST_ORDER or (row["physicalOffset"] is not None and row["topic"] is not None):
                yield row
                continue
            order = _LOST_ORDER.index(row["verdict"])
            if order < lost.get(row["key"], (len(_LOST_ORDER), ""))[0]:
                lost[row["key"]] = (order, text)
    for _, text in lost.values():
        yield json.loads(text, object_hook=object_hook)


def in_batches(items: Iterable[Question], count: int) -> Iterator[list[Question]]:
    """Yield ``items`` in their order, ``count`` at a time: the driver holds only these at once."""
    remaining = iter(items)
    while batch := list(itertools.islice(remaining, count)):
        yield batch


def _answer_all(packed: Sequence[bytes]) -> Iterable[pa.RecordBatch]:
    """Answer the questions of a task to one store, as JSON."""
    import pyarrow as pa

    for pickled in packed:
        question: Question = pickle.loads(pickled)  # noqa: S301  our own driver packed it
        with gather_unread() as unread:
            try:
                answers = list(answer_question(question))
            except StoreError as error:  # this store cannot be asked; the others of the fleet still are
                answers = list(_unknown_results(question, error))
                if not unread:
                    file = error.file or question.store
                    answers.append({"type": "unreadable", "file": file, "error": error.what, "action": "read"})
        rows = [json.dumps(to_json(row), ensure_ascii=True) for row in answers]
        rows += [json.dumps(to_json(item.record())) for item in unread]
        yield pa.RecordBatch.from_arrays([pa.array(rows, pa.string())], names=["answer"])


def _unknown_results(question: Question, error: StoreError) -> Iterator[dict[str, Any]]:
    """Yield one ``whereResult`` of the verdict ``unknown`` for each key: nothing is concluded from a store that is
    unread.
    """
    evidence = {"what": f"the store could not be asked: {error.what}", "file": error.file, "offset": error.offset}
    undecoded = isinstance(error, Undecoded)
    step = f"Ask a broker: {error.what}." if undecoded else "Make the store readable, then ask again."
    for key, offsets, _ in question.keys:
        yield {
            "type": "whereResult",
            "key": key,
            "store": question.store,
            "broker": question.broker,
            "verdict": "unknown",
            "physicalOffset": offsets[-1] if offsets else None,
            "topic": None,
            "queueId": None,
            "queueOffset": None,
            "evidence": [{**evidence, "holds": None}],
            "nextStep": step,
        }


def answer_question(question: Question) -> Iterator[dict[str, Any]]:
    """Yield ``whereResult`` records of one store, each with its ``key``, ``store`` and ``broker``."""
    from engine.inspection import records
    from engine.inspection.snapshot import open_store
    from engine.inspection.where.evidence import KnownPlaces

    with open_store(question.store) as store:
        store.commit_log.settle_end()
        places = KnownPlaces(store, question.relatives, question.topic, question.group)
        for key, offsets, damaged in question.keys:
            for result in places.ask(key, offsets, damaged):
                origin = {"key": key, "store": question.store, "broker": question.broker}
                yield {"type": "whereResult", **origin, **records.where_result(result)}
