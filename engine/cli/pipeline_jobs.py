"""Shared code of all ``pipeline`` jobs: options, session, progress and its end, Spark's errors in one line, the
summary.

A job is a module ``engine.cli.pipeline_NAME`` with ``register(jobs)``, which adds its parser, and a ``run`` that does
its work inside ``with run_job(args, out, NAME) as job``. Nothing of Spark is imported before that.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib.util
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.options import common_options, count
from engine.cli.output import Output, escape_controls, size_text
from engine.english import number_of
from engine.errors import CannotRead, StoreError, UsageError
from engine.files.temporary_folders import growing, take_old_logs
from engine.mapped.reading import Action, Reading
from engine.pipeline.defaults import NEEDED, SPLIT_BYTES
from engine.sentences import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.pipeline.files import StorePlace, Unread
    from engine.pipeline.progress import Progress, Watch
    from engine.pipeline.splits import Split
    from engine.pipeline.stats_report import FileSize
    from engine.pipeline.tasks import LocalRunner

INSTALL_SPARK = sentence(
    "pipeline jobs run on Spark, which is not installed here: pip install 'storescope[spark]', and Java 17 or 21"
)
_LAST_LINE = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Read|Unit|Size|Store|Filter|Cancelled)): (.+)$")
_UNREAD = re.compile(r"cannot be (listed|looked at|read): (.*)", re.DOTALL)
_ERRNO = re.compile(r"^\[Errno \d+\] ")
_WORKER_KILLED = re.compile(r"Python worker exited unexpectedly|Worker exited unexpectedly|ExecutorLostFailure")
_JAVA_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+\w*(?:Exception|Error)\b")
_JAVA_LINE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?:: (.+))?$")


def job_options(stores: str = "*") -> argparse.ArgumentParser:
    """The options of every job. ``stores`` is argparse's ``nargs`` of STORE."""
    parser = argparse.ArgumentParser(add_help=False, parents=[common_options(store=False)])
    if stores:
        parser.add_argument(
            "stores", metavar="STORE", nargs=stores, help="one or more stores, or patterns such as 'fleet/*/store'"
        )
    parser.add_argument("--master", metavar="URL", help="run on Spark with this master (default: run in this process)")
    parser.add_argument(
        "--spark",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run on Spark on this machine (local[*]); --no-spark never starts Spark",
    )
    parser.add_argument("--log-file", metavar="FILE", help="write Spark's own log into this file")
    return parser


def add_split_option(parser: argparse.ArgumentParser) -> None:
    """The option ``--split-bytes``."""
    parser.add_argument(
        "--split-bytes",
        type=count,
        default=SPLIT_BYTES,
        metavar="N",
        help="bytes of a log that one task reads (default: 134217728, 128 MiB)",
    )


@dataclass(slots=True)
class Job:
    """A running job: its session, its watch, and the figures of its summary."""

    name: str
    out: Output
    spark: SparkSession
    watch: Watch
    log_file: Path | None
    master: str | None
    session_seconds: float
    began: float
    stores: list[StorePlace] = field(default_factory=list)
    splits: int = 0
    bytes: int = 0
    files: list[FileSize] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    @property
    def counter(self) -> Any:
        """Return the counters of units and bytes in tasks."""
        return self.watch.counter

    @property
    def here(self) -> LocalRunner | None:
        """The local runner in place of Spark; None if Spark runs the job."""
        from engine.pipeline.tasks import LocalRunner

        session: Any = self.spark
        return session if isinstance(session, LocalRunner) else None

    def plan(
        self, stores: Sequence[str], split_bytes: int, wanted_ranges: Any = None, needs_all_files: bool = False
    ) -> tuple[Split, ...]:
        """Return the splits of the stores that the command names; skipped parts are reported.

        What cannot be read is noted, so that the command reports it and ends with its exit code; stores that cannot be
        are left out, and where a job ``needs_all_files`` those of which a file cannot be, too. Raises
        :class:`StoreError` if none is left.
        """
        from engine.pipeline.files import find_stores
        from engine.pipeline.splits import plan, unread_files
        from engine.pipeline.stats_report import files_of

        self.stores = self.stores or find_stores(stores)
        planned = plan(self.stores, split_bytes, wanted_ranges, without_unread=True)
        torn = list(unread_files(planned.splits))
        self.unread = [*planned.unread, *torn]
        for item in self.unread:
            note_unread(item.error)
        lost = {unread_part.store for unread_part in (*planned.unread, *(torn if needs_all_files else ()))}
        self.stores = [place for place in self.stores if place.path not in lost]
        if lost and not self.stores:
            raise (*planned.unread, *torn)[0].error
        splits = tuple(split for split in planned.splits if split.store not in lost)
        self.splits, self.bytes = len(splits), sum(max(s.stop - s.start, 0) for s in splits)
        for skipped in planned.skipped:
            self.out.say(f"{skipped.path}: skipped, {skipped.why}")
        self.files = files_of(self.stores, splits)
        return splits

    def _changed(self) -> int:
        """Report which files are gone, or have become shorter, since they were listed; return how many."""
        from engine.pipeline.stats_report import files_of

        if not self.files:
            return 0
        try:
            sizes_now = {(file.store, file.path): file.size for file in files_of(self.stores)}
        except CannotRead as error:
            note_unread(error)
            return 0
        changed = 0
        for file in self.files:
            size = sizes_now.get((file.store, file.path), -1)
            if size < file.size:
                change_words = "is gone now" if size < 0 else f"has {number_of(size, 'byte', 'bytes')} now"
                self.out.say(
                    f"{file.path}: had {number_of(file.size, 'byte', 'bytes')} when the job began, {change_words}"
                )
                changed += 1
        return changed

    def summary(self, **figures: Any) -> None:
        """Write the last record, and the line for people: the work done, the time, the number of retried tasks."""
        self.watch.end()
        seconds = time.monotonic() - self.began
        units = figures.pop("units", self.watch.units)
        rate = units / seconds if seconds > 0 else 0.0
        retried_tasks = self.watch.tried_again
        changed = self._changed()
        self.out.record(
            {
                "type": "jobSummary",
                "job": self.name,
                "stores": len(self.stores),
                "splits": self.splits,
                "tasks": self.watch.tasks,
                "triedAgain": retried_tasks,
                "units": units,
                "bytes": self.bytes,
                "seconds": round(seconds, 3),
                "unitsPerSecond": round(rate),
                "sessionSeconds": round(self.session_seconds, 3),
                "master": self.master,
                "logFile": str(self.log_file) if self.log_file is not None else None,
                "filesChanged": changed,
                **figures,
            }
        )
        if self.master is None:
            run_words = "answered in this process (--spark starts Spark)"
        else:
            run_words = (
                f"{number_of(retried_tasks, 'task', 'tasks')} tried again; Spark on {self.master} began "
                f"in {self.session_seconds:,.1f} s, "
                f"its log is {self.log_file}"
            )
        self.out.line(
            f"-- {number_of(units, 'unit', 'units')}, {size_text(self.bytes)} in {seconds:,.1f} s "
            f"({rate:,.0f} units/s); {self.splits:,} "
            f"splits; {run_words}"
        )


def note_unread(error: CannotRead) -> None:
    """Note what could not be read, so that the command line reports it, and ends with its exit code."""
    match = _UNREAD.match(error.what)
    read: Action = "open" if error.offset is None else "read"
    words: dict[str, Action] = {"listed": "list", "looked at": "look", "read": read}
    Reading().note(error.file or "", match[2] if match else error.what, words[match[1]] if match else "read")


@contextlib.contextmanager
def run_job(
    args: argparse.Namespace, out: Output, name: str, *, small: Callable[[], bool] | None = None
) -> Iterator[Job]:
    """Run a job in a Spark session or in this process, and watch its progress. Errors of Spark become one line.

    Without ``--master`` and ``--spark`` the job runs in this process if its input is ``small`` enough for the memory.
    Invalid stores are reported before Spark starts. An interrupt ends the session, so that no task writes any more.
    Raises :class:`StoreError` if Spark or Java is missing.
    """
    stores_named = getattr(args, "stores", None) or ()
    if args.spark is False and args.master is not None:
        raise UsageError(sentence("--no-spark and --master contradict each other: leave one of them out"))
    if args.spark is False or (args.spark is None and args.master is None and _can_run_locally(small)):
        with _run_locally(out, name, stores_named) as job:
            yield job
        return
    check_spark_installed()
    args.master = args.master or "local[*]"
    from engine.pipeline import session, shipping
    from engine.pipeline.files import find_stores, seen_from_anywhere
    from engine.pipeline.java_session import names_this_process
    from engine.pipeline.progress import Cancelled, Watch
    from engine.pipeline.tasks import check_visible

    stores = find_stores(stores_named)
    if not names_this_process(args.master):
        stores = seen_from_anywhere(stores)
    if stores and all(place.unread is not None for place in stores):
        for place in stores:
            note_unread(place.unread or CannotRead("", file=place.path))
        raise stores[0].unread or CannotRead("", file=stores[0].path)
    log_file = Path(args.log_file) if args.log_file else default_log_file(name)
    bar = ProgressBar(out)
    begun = time.monotonic()
    interrupts = _Interrupts(session.abandon)
    try:
        spark = session.start(args.master, log_file=log_file)
        shipping.ship_engine(spark)
        if not names_this_process(args.master):
            check_visible(spark, stores)
        session_seconds = time.monotonic() - begun
        with interrupts, Watch(spark, name, bar.show) as watch:
            yield Job(name, out, spark, watch, log_file, args.master, session_seconds, time.monotonic(), stores)
    except BaseException as error:
        bar.clear()
        stopped = isinstance(error, KeyboardInterrupt) or interrupts.heard
        if stopped:
            session.abandon()
        if not args.log_file and (stopped or not log_file.stat().st_size):
            log_file.unlink()
        if interrupts.heard:
            raise KeyboardInterrupt from None
        if isinstance(error, Exception) and is_spark_error(error):
            line = error_line(error)
            if line == os.strerror(errno.ENOSPC) and getattr(args, "out", None):  # the message does not name the disk
                line += f" while {args.out} was written"
            raise StoreError(sentence("{line} (Spark's log: {log_file})", line=line, log_file=log_file)) from error
        raise
    bar.clear()
    if watch.cancelled:
        raise Cancelled("stopped; nothing was left behind")


@contextlib.contextmanager
def _run_locally(out: Output, name: str, stores: Sequence[str]) -> Iterator[Job]:
    """Run the job in this process: the functions of its tasks, one after the other."""
    from engine.pipeline.files import find_stores
    from engine.pipeline.progress import Cancelled, Watch
    from engine.pipeline.tasks import LocalRunner

    spark: Any = LocalRunner()
    bar = ProgressBar(out)
    try:
        with Watch(spark, name, bar.show) as watch:
            yield Job(name, out, spark, watch, None, None, 0.0, time.monotonic(), find_stores(stores))
    finally:
        bar.clear()
    if watch.cancelled:
        raise Cancelled("stopped; nothing was left behind")


def _can_run_locally(small: Callable[[], bool] | None) -> bool:
    """Return False where Arrow is missing (the way by Spark says what to install), or where too much is read."""
    return importlib.util.find_spec("pyarrow") is not None and (small is None or small())


class _Interrupts:
    """Within it SIGINT also ends the session: Spark's actions would otherwise wait for their end even then."""

    def __init__(self, abandon: Callable[[], None]) -> None:
        self._abandon = abandon
        self._ending: threading.Thread | None = None
        self._before: Any = None

    @property
    def heard(self) -> bool:
        """Return True if SIGINT came."""
        return self._ending is not None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._ending is not None:
            self._ending.join()

    def _hear(self, *_: object) -> None:
        if self._ending is None:
            self._ending = threading.Thread(target=self._abandon, name="end of the session")
            self._ending.start()
        raise KeyboardInterrupt


def check_spark_installed() -> None:
    """Raise :class:`StoreError` with what to install, where something of it is missing."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        raise StoreError(INSTALL_SPARK)


def default_log_file(name: str) -> Path:
    """Return a new file in the system's folder for temporary files. Old ones are removed."""
    import tempfile

    take_old_logs(Path(tempfile.gettempdir()))
    descriptor, path = tempfile.mkstemp(prefix=f"storescope-{name}-", suffix=".log")
    os.close(descriptor)
    return Path(path)


# -- output places


@contextlib.contextmanager
def staged_output(out_path: str | None, job: str) -> Iterator[Path]:
    """Yield a hidden folder beside ``--out``, which gets that name at the end of the block and is removed where the
    block raises.

    What a killed run left beside the place goes too.

    Raises :class:`UsageError` without ``--out`` or where something is there already.
    """
    if not out_path:
        raise UsageError(sentence("pipeline {job} writes files: give the folder with --out DIR", job=job))
    target = Path(out_path).absolute()
    if target.exists():
        raise UsageError(sentence("expected a folder that does not exist yet, found something there"), file=out_path)
    above = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with growing(target.parent, f".{target.name}.", f".{job}") as staging:
            staging.chmod(0o755)
            yield staging
            if target.exists():
                raise UsageError(
                    sentence("expected a folder that does not exist yet, found something there"), file=out_path
                )
            staging.rename(target)
    except BaseException:
        for folder in above:
            with contextlib.suppress(OSError):  # somebody else has put something there meanwhile
                folder.rmdir()
        raise


# -- progress


class ProgressBar:
    """Progress as ``progress`` records with ``--json``, as a line on a terminal, or not at all with ``--quiet``."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._drawn = False
        self._terminal = sys.stderr.isatty()

    def show(self, now: Progress) -> None:
        """Show the progress; the watching thread calls it."""
        if self._out.quiet:
            return
        if self._out.as_json:
            self._out.record(now.record())
            self._out.flush()
        elif self._terminal:
            share = now.done / now.tasks if now.tasks else 0.0
            bar = "█" * int(share * 24)
            running = [f"{s.name} {s.done}/{s.tasks}" for s in now.stages if s.done < s.tasks] or ["…"]
            line = f"{now.job} {bar:<24} {share:4.0%}  {now.step}: {', '.join(running[:3])}"
            if now.units:
                line += f"  {now.units_per_second:,.0f} units/s"
            sys.stderr.write(f"\r\x1b[K{escape_controls(line)}")
            sys.stderr.flush()
            self._drawn = True

    def clear(self) -> None:
        """Leave an empty line behind."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


# -- errors


def is_spark_error(error: Exception) -> bool:
    """Return True if Spark, py4j or the connection to Java raised it."""
    lost = isinstance(error, ConnectionError) and not isinstance(error, BrokenPipeError)  # that is our own output
    return lost or type(error).__module__.startswith(("pyspark", "py4j"))


def error_line(error: Exception) -> str:
    """Describe an error without its stack: the last words of the Python worker, else Java's deepest cause in whole."""
    if _WORKER_KILLED.search(str(error)):
        return (
            "a Python worker was killed again and again, most often because memory ran out: give the job fewer cores "
            "(--master 'local[2]') or more memory"
        )
    lines = [line.strip() for line in str(error).splitlines()]
    python = [match for line in lines if (match := _LAST_LINE.match(line))]
    if python:
        last_match = python[-1]
        message = _ERRNO.sub("", last_match[2])
        return message if last_match[1] not in {"MemoryError", "KeyError"} else f"{last_match[1]}: {message}"
    java = [match[1] for line in lines if (match := _JAVA_LINE.match(line)) and match[1]]
    if java:
        return _cause_line(java)
    return next((line for line in lines if line), type(error).__name__)


def _cause_line(java: Sequence[str]) -> str:
    """Return the deepest cause, and what names it in the error around it: a bare "Permission denied" names no
    program.
    """
    message = java[-1]
    for outer in reversed(java[:-1]):
        if outer == message:
            continue
        if not outer.endswith(message) or _JAVA_CLASS.search(outer):
            break
        message = outer
    return message
