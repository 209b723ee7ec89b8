"""Every job of the worker reports what it could not read, and no result with read errors counts as clean."""

from __future__ import annotations

import importlib
import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from failing_reads import FailingDisk

import viewer
from engine.errors import CannotRead
from engine.inspection.samples import sample
from engine.lab.pipe_frames import Frame, pack
from engine.mapped.reading import Unread, read_through
from viewer.conversation.conversation_work import ConversationQuery
from viewer.log.export_work import ExportPlan
from viewer.log.resend_work import ResendChoice
from viewer.queues.verdict_work import Verdicts
from viewer.runtime import worker
from viewer.runtime.jobs import Jobs
from viewer.runtime.worker import WorkerControl
from viewer.sql.answers import Question
from viewer.where.work import WhereQuery
from viewer.widgets.search_term import SearchTerm

END = 1 << 40
NOWHERE = SearchTerm("text", "nowhere to be found")
Args = Callable[[Path], tuple[Any, ...]]
JOBS: dict[str, tuple[str, Args]] = {
    "runtime.histogram_work:read": ("commitlog", lambda _tmp: ("", 0)),
    "log.count_work:count": ("commitlog", lambda tmp: (tmp / "cache",)),
    "log.export_work:export": ("commitlog", lambda tmp: (ExportPlan(tmp / "rows.jsonl"), 0, 0, END)),
    "log.resend_work:plan": ("commitlog", lambda tmp: (ResendChoice("127.0.0.1:1", tmp / "sent", where="false"), 0)),
    "log.filter_work:scan": ("commitlog", lambda _tmp: ("size > 1", 0, 0, END, 100_000)),
    "log.find_work:find": ("commitlog", lambda _tmp: (NOWHERE, "", 0, 0, 0, END, True)),
    "log.find_work:hits": ("commitlog", lambda _tmp: (NOWHERE, "", 0, 0, END)),
    "log.count_work:count_values": ("commitlog", lambda _tmp: ("topic", "", 0, 0, END)),
    "space.work:account": ("consumequeue", lambda _tmp: (False,)),
    "space.work:read_forecast": ("commitlog", lambda _tmp: ()),
    "space.work:map_of": ("commitlog", lambda _tmp: (f"{0:020d}", 100)),
    "compare.pair_work:compare_paths": ("commitlog", lambda tmp: (sample("orders", tmp / "other"),)),
    "sql.sql_work:ask": ("commitlog", lambda tmp: (Question("SELECT count(*) FROM units"), tmp / "rows.arrow")),
    "sql.sql_work:export": ("commitlog", lambda tmp: (Question("SELECT topic FROM units"), tmp / "rows.csv")),
    "timeline.timeline_work:find_events": ("commitlog", lambda _tmp: ()),
    "runtime.store_work:check": ("index", lambda _tmp: ()),
    "runtime.store_work:plan": ("consumequeue", lambda _tmp: ("5.3",)),
    "queues.verdict_work:count": ("commitlog", lambda _tmp: ([(("StockReserved", 0), Verdicts())], 100)),
    "conversation.conversation_work:read_rows": (
        "commitlog",
        lambda _tmp: (ConversationQuery("nowhere to be found"),),
    ),
    "where.work:where_of": ("commitlog", lambda _tmp: (WhereQuery("nowhere to be found"),)),
    "findings.repair_work:plan": ("commitlog", lambda _tmp: ((),)),
    "findings.repair_work:judge": ("commitlog", lambda _tmp: ((),)),
    "findings.repair_work:mend_copy": ("commitlog", lambda tmp: ((), tmp / "mended")),
}
"""Each function of the worker: a part of the store that it reads, and what it is asked beside the store."""
IN_A_THREAD = {
    "log.resend_work:send": "reads again what plan has read; test_resend_work",
    "findings.repair_work:mend": "changes the store itself; test_mend_in_place",
    "findings.repair_work:restore": "changes the store itself; test_undo",
    "compare.rebuild_work:rebuild": "runs as a thread's job, which gathers likewise; its copy is compared elsewhere",
}


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy store of two log files, thirteen topics and six index files."""
    return sample("orders", tmp_path_factory.mktemp("samples"))


def functions() -> set[str]:
    """Return the jobs of the worker: public functions of the work modules that open a store by its path."""
    names = set()
    root = Path(viewer.__path__[0])
    for file in root.rglob("*work.py"):
        name = ".".join(file.relative_to(root).with_suffix("").parts)
        for function, function_object in inspect.getmembers(
            importlib.import_module(f"viewer.{name}"), inspect.isfunction
        ):
            if not function.startswith("_") and list(inspect.signature(function_object).parameters)[:2] == [
                "control",
                "path",
            ]:
                names.add(f"{name}:{function}")
    return names


def test_no_job_is_forgotten() -> None:
    assert functions() == JOBS.keys() | IN_A_THREAD.keys()


@pytest.mark.full_form(keep=10)
@pytest.mark.parametrize("how", ["EACCES", "EIO", "vanish"])
@pytest.mark.parametrize("name", JOBS)
def test_a_job_reports_what_it_could_not_read(name: str, how: str, orders: Path, tmp_path: Path) -> None:
    """With unreadable log files, the window's jobs answered as for an empty store: no rows, no finding, a clean
    plan.
    """
    part, args = JOBS[name]
    store = tmp_path / "store"
    shutil.copytree(orders, store)
    disk = FailingDisk(store / part, "open", 0, how)
    control = WorkerControl(1, lambda _frame: None)
    requested_pack = pack(1, "call", f"viewer.{name}", (store, None, *args(tmp_path)))
    with read_through(disk):
        frame = worker._answer(control, Frame(1, "call", requested_pack[requested_pack.index(b"call") + 4 :]))
    value, error, unread = Frame(1, "end", frame[frame.index(b"end") + 3 :]).content()
    assert disk.hit, "the job never came to the place that fails"
    assert [item.file for item in unread] == [disk.hit]
    assert isinstance(error, CannotRead | None), error
    assert not (tmp_path / "mended").exists()
    if name in ("runtime.store_work:plan", "findings.repair_work:plan", "findings.repair_work:judge"):
        assert value is None, "no plan is made over what was not seen"


def test_the_window_gets_the_error_before_the_result(run: Any, tmp_path: Path) -> None:
    jobs, emitted = Jobs(), []
    jobs.unreadReported.connect(emitted.append)
    missing = str(tmp_path / "commitlog" / "00000000000000000000")

    async def work() -> None:
        with pytest.raises(CannotRead):
            await jobs.in_worker("Reading", "worker_tasks:read_listed", missing)
        assert emitted == [(Unread(missing, "No such file or directory", "open"),)]
        with pytest.raises(CannotRead):
            await jobs.run("Reading", lambda _control: worker_tasks.read_listed(_control, missing))
        assert len(emitted) == 2
        assert emitted[1] == emitted[0]

    import worker_tasks

    run(work())
    jobs.close()
