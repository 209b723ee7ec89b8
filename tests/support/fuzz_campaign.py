"""The fuzz campaign's machinery: cases run one after another in worker processes that are watched from outside.

A *case* is one small golden store, one to four faults planted in it by the case's number, and one reading command. Its
number alone determines the store, the faults and the question. Every :data:`WHOLE_EVERY`-th case takes a golden store
at its full size.

The campaign watches: an answer within :data:`SECONDS` (more for a process that a busy machine keeps waiting); no
escaped exception, no traceback, a known exit code, one line on standard error if a command gives up; valid JSON lines,
text without control codes; every byte, length, time and identity of every file of the store; the memory of the process.
A worker that dies or hangs below Python loses only one case, which is named, and another worker continues after it.
"""

from __future__ import annotations

import faulthandler
import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import agree
import mutations
import small_stores
from fuzz_commands import CommandLine, KnownNames, question

from engine.cli import main as command_line
from engine.codec import compiled_cache

SECONDS = 20
"""No command may take longer, if it was working for :data:`BUSY` of that time."""
BUSY = 0.5
BLOCKED = 15
"""Times the limit: no command may take longer, working or not."""
STARTING = 10
"""Seconds more than twice that, for a process that begins."""
DEAF = 3
"""Times the limit: a process that has worked so long and hears no alarm is ended with a dump of where it stands."""
GROWTH = 160 * 1024
"""KiB that a worker may grow once everything is loaded."""
LEAP = 96 * 1024
"""KiB that one case may add to the most that the process ever held."""
WHOLE_EVERY = 40
WARM_UP = 40
StoreState = dict[str, tuple[object, ...]]


class CommandHang(BaseException):
    """A command took too long; no handler for ordinary errors catches this."""


@dataclass
class Account:
    """Results of a campaign: cases by command, errors, the slowest answer (s), growth (KiB)."""

    cases_by_command: dict[str, int] = field(default_factory=dict)
    exits: dict[int, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    growth: int = 0
    seconds: float = 0.0
    died: int = 0

    @property
    def cases(self) -> int:
        return sum(self.cases_by_command.values())

    def lines(self) -> list[str]:
        """Return the results as text."""
        kinds = ", ".join(f"{name} {count:,}" for name, count in sorted(self.cases_by_command.items()))
        rate = self.cases / self.seconds if self.seconds else 0.0
        exits = ", ".join(f"{code}: {count:,}" for code, count in sorted(self.exits.items()))
        return [
            f"{self.cases:,} command cases, {rate:.0f} a second: {kinds}",
            f"exit codes {exits}; growth {self.growth // 1024} MiB; {self.died} workers died",
            f"slowest {self.slowest[0]:.2f} s: {self.slowest[1]}",
        ]


def run(
    folder: Path, sources: dict[str, Path], numbers: range, workers: int = 1, spoiler: str = "", seconds: int = SECONDS
) -> Account:
    """Run the cases ``numbers`` on copies of ``sources`` below ``folder``, divided among worker processes.

    ``spoiler`` (``module:function``) is called in each worker before it begins: the campaign's own tests plant bugs.
    """
    account, began = Account(), time.monotonic()
    per = -(-len(numbers) // workers)
    shares = [numbers[position : position + per] for position in range(0, len(numbers), per)]
    busy = [_Worker(folder / f"worker{index}", sources, share, spoiler, seconds) for index, share in enumerate(shares)]
    while busy:
        for connection in wait([worker.receiver for worker in busy], timeout=1):
            worker = next(item for item in busy if item.receiver is connection)
            worker.hear(account)
        for worker in busy:
            worker.end_if_silent()
        busy = [worker for worker in busy if not worker.done]
    account.seconds = time.monotonic() - began
    return account


class _Worker:
    """A process and its remaining cases; started again after a case that ended it."""

    def __init__(self, folder: Path, sources: dict[str, Path], numbers: range, spoiler: str, seconds: int) -> None:
        self._arguments = (folder, sources, spoiler, seconds)
        self._left = numbers
        self._limit = 2 * BLOCKED * seconds + STARTING
        self.done = False
        self._start()

    def _start(self) -> None:
        folder, sources, spoiler, seconds = self._arguments
        context = multiprocessing.get_context("spawn")
        self.receiver, sender = context.Pipe(duplex=False)
        self._case: tuple[int, str] | None = None
        self._heard = time.monotonic()
        self._process = context.Process(target=work, args=(sender, folder, sources, self._left, spoiler, seconds))
        self._process.start()
        sender.close()

    def hear(self, account: Account) -> None:
        """Take one message, or the end."""
        self._heard = time.monotonic()
        try:
            kind, *output = self.receiver.recv()
        except EOFError:
            self._ended(account)
            return
        match kind:
            case "case":
                self._case = (output[0], output[1])
            case "answer":
                name, status, elapsed, line = output
                account.cases_by_command[name] = account.cases_by_command.get(name, 0) + 1
                account.exits[status] = account.exits.get(status, 0) + 1
                account.slowest = max(account.slowest, (elapsed, line))
            case "wrong":
                account.wrong.append(output[0])
            case "growth":
                account.growth = max(account.growth, output[0])
            case "done":
                self.done = True
                self._process.join()
                self.receiver.close()

    def end_if_silent(self) -> None:
        """Stop a process that has been silent for longer than its own watchdog waits."""
        if not self.done and time.monotonic() - self._heard > self._limit:
            self._process.kill()

    def _ended(self, account: Account) -> None:
        self._process.join()
        self.receiver.close()
        account.died += 1
        number, line = self._case or (self._left[0], "before its first case")
        account.wrong.append(f"case {number} {line}: the process ended with {self._process.exitcode}")
        self._left = self._left[self._left.index(number) + 1 :] if self._case else range(0)
        shutil.rmtree(self._arguments[0], ignore_errors=True)
        if self._left and account.died < 20:
            self._start()
        else:
            self.done = True


def work(
    sender: Connection, folder: Path, sources: dict[str, Path], numbers: range, spoiler: str, seconds: int
) -> None:
    """Worker process: lay out the stores, warm up, then run case after case."""
    compiled_cache.prepare()
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # says where it stands, then the process ends
    command_line.build_parser = functools.cache(command_line.build_parser)  # type: ignore[assignment]
    bench = WorkerStores(folder, sources, seconds)
    for store in bench.stores:
        for name in ("check", "units", "recover"):
            agree.command(name, store.known.store, *(["--plan"] if name == "recover" else []))
    if spoiler:
        module, _, function = spoiler.partition(":")
        getattr(importlib.import_module(module), function)()
    memory_after_warm_up = 0
    for done, number in enumerate(numbers):
        if done == WARM_UP:
            memory_after_warm_up = peak()
        memory_before, line = peak(), ""
        for message in bench.case(number):
            line = message[2] if message[0] == "case" else line
            sender.send(message)
        if peak() - memory_before > LEAP:
            sender.send(("wrong", f"case {number} {line}: {(peak() - memory_before) // 1024} MiB more memory held"))
    for complaint in bench.final_look():
        sender.send(("wrong", complaint))
    if memory_after_warm_up:
        sender.send(("growth", peak() - memory_after_warm_up))
        if peak() - memory_after_warm_up > GROWTH:
            sender.send(
                (
                    "wrong",
                    f"the process has grown by {(peak() - memory_after_warm_up) // 1024} MiB over {len(numbers)} cases",
                )
            )
    sender.send(("done",))
    sender.close()


class CpuAlarm:
    """Alarm in this process after ``seconds`` of work, or after many more seconds of waiting.

    A process that receives no signal is ended from below Python: by the timer of working time, or by faulthandler's
    thread.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._began, self._worked = time.monotonic(), time.process_time()
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, 1)
        signal.setitimer(signal.ITIMER_PROF, DEAF * self._seconds)
        faulthandler.dump_traceback_later((BLOCKED + DEAF) * self._seconds, exit=True)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()

    def _ring(self, _signal: int, _frame: object) -> None:
        elapsed, worked = time.monotonic() - self._began, time.process_time() - self._worked
        if worked > BUSY * self._seconds or elapsed > BLOCKED * self._seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise CommandHang(f"no answer within {elapsed:.0f} s, {worked:.0f} of them at work")


@dataclass
class FuzzStore:
    """A store for planted faults: its known names, and its original state."""

    name: str
    known: KnownNames
    faults: mutations.Mutations
    before: StoreState


class WorkerStores:
    """A worker's stores, small and whole. ``number`` is the current case, ``now`` the stores of this process."""

    now: WorkerStores | None = None

    def __init__(self, folder: Path, sources: dict[str, Path], seconds: int) -> None:
        self.seconds = seconds
        self.number = -1
        WorkerStores.now = self
        self.small = [_bed(f"small {name}", folder / "small" / name, path) for name, path in sources.items()]
        self.whole = [_bed(name, folder / "whole" / name, path) for name, path in sources.items()]

    @property
    def stores(self) -> list[FuzzStore]:
        return [*self.small, *self.whole]

    def bed(self, number: int) -> FuzzStore:
        """Return the store of a case."""
        if number % WHOLE_EVERY == WHOLE_EVERY - 1:
            return self.whole[number // WHOLE_EVERY % len(self.whole)]
        return self.small[number % len(self.small)]

    def case(self, number: int) -> Iterator[tuple[Any, ...]]:
        """Plant faults, run the command, look, restore; yield messages for the account."""
        pick, bed, self.number = random.Random(number), self.bed(number), number
        planted = bed.faults.plant(pick)
        command_line = question(bed.known, pick)
        line = f"{bed.name}: {' '.join(map(str, command_line)).replace(str(bed.known.store.parent), '')}"
        yield "case", number, line
        state_before = look(bed.known.store)
        began = time.monotonic()
        status, complaint = run_command(command_line, self.seconds)
        elapsed = time.monotonic() - began
        changed = changes(state_before, look(bed.known.store))
        if changed:
            complaint = f"{complaint or ''} changed: {changed}"
        if complaint:
            yield "wrong", f"case {number} {line} on {planted}: {complaint}"
        yield "answer", str(command_line[0]), status, elapsed, f"case {number} {line}"
        shutil.rmtree(bed.known.elsewhere / "copy", ignore_errors=True)
        bed.faults.undo()

    def final_look(self) -> Iterator[str]:
        """Yield an error for each store that is not as it was before the first fault: then the campaign tested
        something else.
        """
        for bed in self.stores:
            if {name: _without_time(value) for name, value in files(bed.before)} != {
                name: _without_time(value) for name, value in files(look(bed.known.store))
            }:
                yield f"{bed.name}: the faults were not taken back"


def _without_time(value: tuple[object, ...]) -> tuple[object, ...]:
    mode, size, _, _, content = value
    return mode, size, content


def files(state: StoreState) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield everything but folders."""
    return ((name, value) for name, value in state.items() if value[-1] is not None)


def _bed(name: str, folder: Path, source: Path) -> FuzzStore:
    store, elsewhere = folder / "store", folder / "elsewhere"
    elsewhere.mkdir(parents=True)
    if name.startswith("small "):
        small_stores.make_small(source, store)
    else:
        small_stores.copy_sparse(source, store)
    return FuzzStore(name, KnownNames.of(store, elsewhere), mutations.Mutations(store), look(store))


def run_command(line: CommandLine, seconds: int = SECONDS) -> tuple[int, str | None]:
    """Return the exit status, and the error in the answer or None."""
    try:
        with CpuAlarm(seconds):
            status, out, err = agree.command(*line)
    except CommandHang as hang:
        return -1, str(hang)
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what is looked for
        return -1, f"escaped: {error!r}"
    return status, judge(status, out, err, as_json="--json" in line)


MAX_LINES = 4
"""Lines on standard error: remarks on a configuration and damaged files, then the error."""


def judge(status: int, out: str, err: str, *, as_json: bool) -> str | None:
    """Return the error in an answer, or None."""
    if status not in {0, 1, 2, 3}:
        return f"exit {status}"
    if "Traceback" in err:
        return err[-600:]
    lines = err.splitlines()
    if status in {2, 3} and not (lines and all(line.startswith("storescope: ") for line in lines)):
        return f"exit {status} without its line: {err[:300]!r}"
    if (status == 2 and len(lines) > 1) or len(lines) > MAX_LINES:
        return f"exit {status} with {len(lines)} lines: {err[:300]!r}"
    if not err.replace("\n", "").isprintable():
        return f"something that steers a terminal on standard error: {err[:300]!r}"
    if not as_json:
        steers = next((line for line in out.split("\n") if not line.isprintable()), None)
        return None if steers is None else f"something that steers a terminal: {steers[:300]!r}"
    try:
        records = [json.loads(line, parse_constant=_no_json) for line in out.splitlines()]
    except ValueError as error:
        return f"no JSON line: {error}"
    return None if all(next(iter(record)) == "type" for record in records) else "a record without its type"


def _no_json(word: str) -> object:
    raise ValueError(f"{word} is no JSON")


def changes(state_before: StoreState, state_after: StoreState) -> list[str]:
    """Return the names of the differences."""
    return sorted(name for name in {*state_before, *state_after} if state_before.get(name) != state_after.get(name))


def look(store: Path) -> StoreState:
    """Return kind and mode, length, time, identity and digest of everything in the store; the digest leaves holes
    out.
    """
    state: StoreState = {}
    pending, root = [str(store)], len(str(store)) + 1
    while pending:
        folder = pending.pop()
        status = os.lstat(folder)
        state[folder[root:]] = (status.st_mode, 0, status.st_mtime_ns, status.st_ino, None)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                info = entry.stat(follow_symlinks=False)
                content = _content_of(entry.path, info)
                state[entry.path[root:]] = (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ino, content)
    return state


def _content_of(path: str, info: os.stat_result) -> bytes:
    """Return the bytes of a file, or their digest; the target of a link."""
    if stat.S_ISLNK(info.st_mode):
        return os.fsencode(os.readlink(path))  # noqa: PTH115 - thousands of times a second
    if not stat.S_ISREG(info.st_mode):
        return b""
    if info.st_size > small_stores.SPARSE_FROM:
        spans = small_stores.spans(Path(path))
        return hashlib.blake2b(b"".join(b"%d " % position + data for position, data in spans)).digest()
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOATIME", 0))
    try:
        return os.pread(descriptor, small_stores.SPARSE_FROM, 0)
    finally:
        os.close(descriptor)


def peak() -> int:
    """Return the largest memory of this process so far, KiB; the value of ``getrusage`` begins with that of the
    parent.
    """
    try:
        words = Path("/proc/self/status").read_text(encoding="ascii").split()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(words[words.index("VmHWM:") + 1])
