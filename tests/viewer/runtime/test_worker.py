"""The worker process streams results and can be stopped, and its death is an error, not a hang."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import worker_tasks
from handmade_stores import healthy

from engine.lab import pipe_frames
from engine.lab.pipe_frames import Frame, NotSendable, pack
from engine.patching.patches import WriteBytes
from viewer.runtime import worker
from viewer.runtime.jobs import Cancelled, Jobs
from viewer.runtime.worker import PREPARING, WorkerControl, WorkerDied, _answer

Run = Callable[[Any], Any]


@pytest.fixture
def jobs(run: Run) -> Iterator[Jobs]:
    new_jobs = Jobs()
    yield new_jobs
    new_jobs.close()


def test_streams_items_and_gives_a_result(run: Run, jobs: Jobs) -> None:
    results: list[int] = []
    total = run(jobs.in_worker("Counting", f"{worker_tasks.__name__}:count", 5, on_items=results.extend))
    assert (results, total) == ([0, 1, 2, 3, 4], 10)


def test_runs_in_another_process_without_qt(run: Run, jobs: Jobs) -> None:
    assert run(jobs.in_worker("Looking", f"{worker_tasks.__name__}:has_qt")) is False


def test_error_of_the_work_reaches_the_caller(run: Run, jobs: Jobs) -> None:
    with pytest.raises(ValueError, match="what was wrong"):
        run(jobs.in_worker("Failing", f"{worker_tasks.__name__}:fail", "what was wrong"))


def test_can_be_stopped(run: Run, jobs: Jobs) -> None:
    async def stop() -> None:
        task = jobs.start(jobs.in_worker("Endless", f"{worker_tasks.__name__}:endless"))
        assert task is not None
        while not jobs.list or not jobs.list[0].done:
            await asyncio.sleep(0.01)
        jobs.list[0].cancel()
        await task

    with pytest.raises(Cancelled):
        run(stop())


def test_death_fails_the_work_and_the_next_request_starts_a_new_process(run: Run, jobs: Jobs) -> None:
    with pytest.raises(WorkerDied):
        run(jobs.in_worker("Dying", f"{worker_tasks.__name__}:die"))
    assert run(jobs.in_worker("Counting", f"{worker_tasks.__name__}:count", 3)) == 3


def test_a_window_that_is_gone_leaves_no_process() -> None:
    """A window was killed while it watched a cluster. Its worker kept running and read the cluster every second."""
    context = multiprocessing.get_context("spawn")
    pipe, other_end = context.Pipe()
    process = context.Process(target=worker.serve, args=(other_end,), daemon=True)
    process.start()
    other_end.close()
    try:
        pipe.send_bytes(pipe_frames.pack(1, "call", f"{worker_tasks.__name__}:wait_in_pool", ()))
        while pipe_frames.receive(pipe).kind != "items":
            pass
        pipe.close()
        process.join(60)
        assert process.exitcode == 0
    finally:
        process.kill()


def test_requests_wait_while_the_worker_is_held(run: Run, jobs: Jobs) -> None:
    """The process must not start between a click and the first rows."""
    jobs.worker.hold()

    async def ask() -> int:
        task = asyncio.ensure_future(jobs.in_worker("Counting", f"{worker_tasks.__name__}:count", 4))
        await asyncio.sleep(0.2)
        assert not jobs.worker.alive
        jobs.worker.release()
        return int(await task)

    assert run(ask()) == 6


TASKS = worker_tasks.__name__
LOST = {
    "a result that no pickle holds": ("unpackable", "no pickle"),
    "a result that cannot be unpacked": ("unpackable", "no way back"),
    "a find that no pickle holds": ("emit_unpackable", "no pickle"),
    "a find that cannot be unpacked": ("emit_unpackable", "no way back"),
    "an argument that no pickle holds": ("take", lambda: 1),
    "an argument that cannot be unpacked": ("take", worker_tasks.CannotUnpack()),
    "a function that leaves its thread": ("leave",),
}


@pytest.mark.parametrize("case", LOST.values(), ids=LOST.keys())
def test_an_unpicklable_result_is_an_error_of_its_job_only(run: Run, jobs: Jobs, case: tuple[Any, ...]) -> None:
    """A result that could not be pickled was never answered, and its job stayed in the status bar. A message that could
    not be unpickled ended the listening thread, and all later jobs hung.
    """
    name, *args = case

    async def work() -> int:
        beside = asyncio.ensure_future(jobs.in_worker("Beside", f"{TASKS}:endless"))
        await asyncio.sleep(0)
        with pytest.raises(NotSendable):
            await jobs.in_worker("Lost", f"{TASKS}:{name}", *args)
        assert [job.title for job in jobs.list] == ["Beside"]
        jobs.list[0].cancel()
        with pytest.raises(Cancelled):
            await beside
        return int(await jobs.in_worker("Counting", f"{TASKS}:count", 4))

    assert run(asyncio.wait_for(work(), 120)) == 6
    assert jobs.worker._requests == {}


def test_death_answers_every_waiting_request(run: Run, jobs: Jobs) -> None:
    """This includes requests that were delayed: they belonged to no process, so no process's end answered them."""
    jobs.worker.hold()

    async def ask() -> list[object]:
        waiting = [asyncio.ensure_future(jobs.in_worker("Endless", f"{TASKS}:endless")) for _ in range(3)]
        await asyncio.sleep(0)
        jobs.worker.release()
        while not all(job.done for job in jobs.list):
            await asyncio.sleep(0.01)
        dying = asyncio.ensure_future(jobs.in_worker("Dying", f"{TASKS}:die"))
        return list(await asyncio.wait_for(asyncio.gather(*waiting, dying, return_exceptions=True), 60))

    assert [type(error) for error in run(ask())] == [WorkerDied] * 4
    assert run(jobs.in_worker("Counting", f"{TASKS}:count", 3)) == 3


def test_memory_goes_back_once_after_the_last_of_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request did this separately, three seconds later: beside a broker that was several times a second."""
    semaphore = threading.Semaphore(0)
    monkeypatch.setattr(worker, "IDLE_AFTER_S", 1.0)
    monkeypatch.setattr(worker.memory, "give_back", semaphore.release)
    monkeypatch.setattr(worker.memory, "give_back_code", lambda: 0)
    idle_work = worker._IdleWork(lambda: None)
    for _ in range(20):
        idle_work.put_off()
        idle_work.begin()
    assert semaphore.acquire(timeout=60)
    assert not semaphore.acquire(timeout=1.5)


def test_the_search_is_prepared_before_the_first_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first text filter on a machine took 2.5 s instead of 0.35 s, because its code was compiled while the user
    waited.
    """
    prepared = []
    monkeypatch.setattr("engine.codec.machine_code_build.on_compiling", None)
    monkeypatch.setattr("engine.codec.block_texts.prepare", lambda: prepared.append("search"))
    worker._warm_up(lambda _begins: None)
    assert prepared == ["search"]


@pytest.mark.parametrize(("memory_bytes", "reports"), [(1 << 30, 1), (1 << 20, 0)])
def test_a_large_worker_reports_it_when_it_is_idle(
    monkeypatch: pytest.MonkeyPatch, memory_bytes: int, reports: int
) -> None:
    received = []
    monkeypatch.setattr(worker.system, "own_memory_bytes", lambda: memory_bytes)
    worker._IdleWork(lambda: received.append("large"))._report_size()
    assert len(received) == reports


def test_a_large_worker_is_replaced_while_nothing_runs(run: Run, jobs: Jobs) -> None:
    """DuckDB, pyarrow and the compiler of machine code stayed in the worker until the window was closed: 240 MiB."""

    async def ask() -> tuple[int, int, int]:
        first = await jobs.in_worker("Asking", f"{TASKS}:process_id")
        endless = asyncio.ensure_future(jobs.in_worker("Endless", f"{TASKS}:endless"))
        await asyncio.sleep(0)
        pipe = jobs.worker._pipe
        assert pipe is not None
        jobs.worker._renew(pipe)
        second = await jobs.in_worker("Asking", f"{TASKS}:process_id")
        jobs.list[0].cancel()
        with pytest.raises(Cancelled):
            await endless
        jobs.worker._renew(pipe)
        return first, second, await jobs.in_worker("Asking", f"{TASKS}:process_id")

    first, second, third = run(asyncio.wait_for(ask(), 120))
    assert first == second != third
    assert jobs.worker.alive


def test_work_that_gives_way_rests_while_other_work_runs(run: Run, jobs: Jobs) -> None:
    """The time histogram and the check read the log beside a filter, which took three times as long."""

    async def ask() -> None:
        counts: list[int] = []
        behind = asyncio.ensure_future(
            jobs.in_worker("Behind", f"{TASKS}:count_until_stopped", on_items=counts.append, gives_way=True)
        )
        while len(counts) < 3:
            await asyncio.sleep(0.01)
        front = asyncio.ensure_future(jobs.in_worker("Front", f"{TASKS}:endless"))
        while len(jobs.list) < 2 or not jobs.list[1].done:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        resting_count = len(counts)
        await asyncio.sleep(0.3)
        assert len(counts) == resting_count
        jobs.list[1].cancel()
        with pytest.raises(Cancelled):
            await front
        while len(counts) < resting_count + 3:
            await asyncio.sleep(0.01)
        jobs.list[0].cancel()
        await behind

    run(asyncio.wait_for(ask(), 120))


def test_work_that_rests_can_be_stopped() -> None:
    front_requests = worker.FrontRequests()
    control = WorkerControl(1, lambda _frame: None, front_requests)
    with front_requests.running():
        control.stop.set()
        assert control.cancelled


def test_callers_that_wait_for_compiling_are_notified(run: Run, jobs: Jobs) -> None:
    """The first filter on a machine stayed at 0 for seconds, without an explanation."""
    notes: list[str] = []

    async def ask() -> None:
        waiting = jobs.in_worker("Filtering", f"{TASKS}:compile_something", on_note=notes.append)
        task = asyncio.ensure_future(waiting)
        while PREPARING not in notes:
            await asyncio.sleep(0.01)
        assert [job.note for job in jobs.list] == [PREPARING]
        later = asyncio.ensure_future(jobs.in_worker("Filtering", f"{TASKS}:endless", on_note=notes.append))
        while notes.count(PREPARING) < 2:  # later callers during the compilation are notified, too
            await asyncio.sleep(0.01)
        for job in list(jobs.list):
            job.cancel()
        await asyncio.gather(task, later, return_exceptions=True)

    run(ask())
    assert notes[-1] == ""


def test_a_job_reads_the_store_as_patched(tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")
    old = (root / "checkpoint").read_bytes()[:8]
    patch = WriteBytes(file="checkpoint", offset=0, old=old, new=bytes(8), why="")
    control = WorkerControl(1, lambda _frame: None)
    for patched, expected in ((None, old), ((root, (patch,)), bytes(8))):
        packed = pack(1, "call", "worker_tasks:read_checkpoint", (root,), patched)
        frame = Frame(1, "call", packed[packed.index(b"call") + 4 :])
        answer = _answer(control, frame)
        assert Frame(1, "end", answer[answer.index(b"end") + 3 :]).content()[0][:8] == expected
