"""Spark jobs from the window: rows 74 and 82, findings that lead to the bytes, cancelling, missing parts.

One walk starts Spark; in the others a process replays lines that jobs on golden stores had printed.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import naive_space_count
import pipeline_lines as lines
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPushButton
from walker import Run, Walker

from viewer.pane.confirmation import Confirmation
from viewer.pipeline.pane import PipelinePane
from viewer.pipeline.stages import StageStrip
from viewer.pipeline.state import JobState
from viewer.shell.windows import windows
from viewer.widgets.treemap import Treemap

pytestmark = pytest.mark.journey
RESULTS, STATS = "pipeline.results.table", "pipeline.aside.table"


@pytest.fixture(autouse=True)
def none_left(walker: Walker, run: Run) -> Iterator[None]:
    """Stop all jobs after each walk."""
    yield
    room = walker.window.workspace.pipeline
    if room is not None:
        run(room.runs.end())
        run(walker.until(lambda: not room.runs.running, "the jobs are gone"))
        room.runs.command = None
        room.runs.forget_ended()


async def shown(walker: Walker, store: Path) -> PipelinePane:
    """Open the store and the view."""
    await walker.open(store)
    await walker.act("view.pipeline")
    pane = walker.window.panes["pipeline"]
    assert isinstance(pane, PipelinePane)
    await walker.until(lambda: "split" in walker.find(QLabel, "pipeline.reads").text(), "the store was looked at")
    return pane


async def filled(walker: Walker, job: str, **fields: str) -> None:
    """Fill the form like a person."""
    box = walker.find(QComboBox, "pipeline.job")
    box.setCurrentIndex(box.findData(job))
    for name, text in fields.items():
        walker.find(QLineEdit, f"pipeline.{name}").setText(text)
    button = walker.find(QPushButton, "pipeline.run.button")
    await walker.until(button.isEnabled, f"{job} can run: {walker.find(QLabel, 'pipeline.fault').text()}")
    await walker.until(
        lambda: not walker.find(PipelinePane, "pipeline.pane").form._later.isActive(), "it was looked at"
    )
    await walker.rest()


async def played(walker: Walker, folder: Path, job: str, events: list[dict[str, Any]], **options: Any) -> JobState:
    """Click Run; a process prints ``events`` in place of Spark."""
    pane = walker.find(PipelinePane, "pipeline.pane")
    assert pane.runs is not None
    pane.runs.command = lines.player(folder / f"{job}-{time.monotonic_ns()}", events, **options)
    walker.find(QPushButton, "pipeline.run.button").click()
    new_job = pane.runs.jobs[0]
    assert new_job.request.job == job
    if not options.get("hangs"):
        await walker.until(lambda: not new_job.running, f"{job} ends")
        await walker.rest()
    else:
        await walker.until(lambda: new_job.progress, f"{job} is under way")
    return new_job


@pytest.mark.spark
def test_statistics_are_made_by_spark_and_equal_the_store(run: Run, walker: Walker, orders: Path) -> None:
    async def begun() -> JobState:
        pane = await shown(walker, orders)
        await filled(walker, "stats")
        walker.action("pipeline.run").trigger()
        assert pane.runs is not None
        return pane.runs.jobs[0]

    async def looked() -> None:
        for _ in range(100):
            if not job.running:
                return
            await asyncio.sleep(0.5)
        assert walker.window.jobs.list, "the job is listed while it runs"

    job = run(begun())
    for _ in range(8):
        run(looked())
    assert job.status == "done", job.spark_lines

    async def compared() -> None:
        await walker.rest()
        session = walker.window.session
        assert session is not None
        root = Path(str(session.path))
        sizes, messages, _ = naive_space_count.units_by_queue(root / "commitlog")
        assert job.summary["units"] == sum(messages.values())
        assert job.rows["stats"][0]["bytes"] == naive_space_count.bytes_by_folder(root)["commitlog"]
        assert "sums equal the files" in walker.texts(walker.window.panes["pipeline"])
        topics = dict(zip(walker.values(RESULTS, "Topic"), walker.values(RESULTS, "Units"), strict=True))
        counted: Counter[str] = Counter()
        for (topic, _), count in messages.items():
            counted[topic] += count
        assert topics == counted
        treemap = walker.find(Treemap, "pipeline.treemap")
        assert treemap._root.bytes == sum(sizes.values())
        await walker.choose(RESULTS, 0)
        topic = walker.row(RESULTS)["Topic"]
        await walker.follow(RESULTS, "Topic")
        assert walker.window.view == "queue"
        assert topic in walker.place

    run(compared())


def test_parquet_by_topic_and_day_is_said_in_numbers_before_it_is_written(
    run: Run, walker: Walker, orders: Path, tmp_path: Path
) -> None:
    async def walk() -> None:
        await shown(walker, orders)
        target = tmp_path / "there"
        target.mkdir()
        box = walker.find(QComboBox, "pipeline.job")
        box.setCurrentIndex(box.findData("export"))
        out = walker.find(QLineEdit, "pipeline.out")
        out.setText(str(target))
        fault, button = walker.find(QLabel, "pipeline.fault"), walker.find(QPushButton, "pipeline.run.button")
        await walker.until(lambda: "at this place already" in fault.text(), "the place is taken")
        assert not button.isEnabled()
        out.setText(str(tmp_path / "parquet"))
        await walker.until(button.isEnabled, "the place is free")
        writes = walker.find(QLabel, "pipeline.writes").text()
        assert "is written as a row" in writes
        assert "Free there" in writes
        assert walker.find(QComboBox, "pipeline.format").currentText() == "Parquet, by topic and day"
        walker.find(QPushButton, "pipeline.command").click()
        path = walker.window.session.path
        assert walker.clipboard == shlex.join(
            ["storescope", "pipeline", "export", "--out", str(tmp_path / "parquet"), str(path)]
        )
        output = [
            lines.progress("export", "writing rows", [lines.stage(0, 4, 4)], 9000, 4 << 20, 4 << 20),
            lines.summary("export", units=9000, bytes=4 << 20, out=str(tmp_path / "parquet"), bytesWritten=1 << 20),
        ]
        job = await played(walker, tmp_path, "export", output)
        assert job.status == "done"
        assert "1.00 MiB written" in walker.status_text
        assert walker.find(QLabel, "pipeline.written").text().endswith("parquet")

    run(walk())


def test_findings_of_a_job_lead_to_the_bytes_in_this_store_and_in_another(
    run: Run, walker: Walker, damaged: Path, orders: Path, tmp_path: Path
) -> None:
    from engine.inspection import open_store
    from engine.inspection.findings import check
    from engine.rules.findings import Finding

    with open_store(damaged) as store:
        records = [finding.record() for finding in check(store) if isinstance(finding, Finding)]
    flipped = next(record for record in records if record["id"] == "CL03")

    async def walk() -> None:
        pane = await shown(walker, damaged)
        path = str(walker.window.session.path)
        await filled(walker, "verify")
        reported = [{**record, "store": path} for record in records] + [
            {**flipped, "id": "CL05", "store": str(orders), "offset": 0}
        ]
        await played(walker, tmp_path, "verify", lines.verify(reported))
        rules = {row["Rule"]: row for row in walker.rows(RESULTS)}
        assert set(rules) == {record["id"] for record in reported}
        assert sum(int(row["Count"].replace(",", "")) for row in rules.values()) == len(reported)
        order = [row.rule.severity for row in pane.results.table.source.read(0, 0, 99).rows]
        assert order == sorted(order, key=["error", "warn", "note", "chat"].index)
        await walker.choose(RESULTS, list(rules).index("CL03"))
        await walker.follow(RESULTS, "First place")
        assert walker.window.view == "log"
        assert walker.value("units.table", "Physical offset") == flipped["offset"]
        await walker.act("go.back")
        assert walker.window.view == "pipeline"
        pane.results.choose("each")
        await walker.rest()
        assert len(walker.rows(RESULTS)) == len(reported)
        pane.results.choose("rule")
        await walker.choose(RESULTS, [row["Rule"] for row in walker.rows(RESULTS)].index("CL05"))
        await walker.follow(RESULTS, "First place")
        await walker.until(lambda: windows() and windows()[0].session is not None, "the other store opens beside")
        assert str(windows()[0].session.path).startswith(str(orders))

    run(walk())


def test_a_job_that_is_cancelled_says_so_and_another_store_leaves_jobs_alone(
    run: Run, walker: Walker, orders: Path, damaged: Path, tmp_path: Path
) -> None:
    async def walk() -> None:
        pane = await shown(walker, orders)
        await filled(walker, "verify")
        job = await played(walker, tmp_path, "verify", lines.verify([], ended=False), hangs=True)
        strip = walker.find(StageStrip, "pipeline.stages")
        await walker.until(lambda: len(strip.cards) == 4, "all stages are known")
        assert [card.card.state for card in strip.cards] == ["done", "done", "running", "waits"]
        assert strip.cards[2].accessibleName().startswith("Check the stores: running, 58 of 96 tasks")
        assert any(entry.title == "verify" and entry.part for entry in walker.window.jobs.list)
        await walker.open(damaged, "pipeline")
        assert job.running
        assert any(entry.title == "verify" for entry in walker.window.jobs.list)
        assert "58 of 108 tasks" in pane.list.jobs.index(0).data(11)
        await walker.act("language.zh_CN")
        second_pipeline = walker.window.panes["pipeline"]
        assert isinstance(second_pipeline, PipelinePane)
        assert second_pipeline is not pane
        assert second_pipeline.job is job
        await walker.act("language.en")
        walker.find(QPushButton, "pipeline.cancel.button").click()
        await walker.until(lambda: not job.running, "it stops")
        await walker.rest()
        assert job.status == "cancelled"
        assert "cancelled" in walker.find(PipelinePane, "pipeline.pane").list.jobs.index(0).data(11)
        assert "nothing was left behind" in pane_words(walker)
        await walker.until(
            lambda: not walker.window.jobs.list, "nothing runs any more, the check of the other store neither"
        )

    run(walk())


def test_quitting_asks_while_a_job_runs(run: Run, walker: Walker, orders: Path, tmp_path: Path) -> None:
    async def walk() -> None:
        pane = await shown(walker, orders)
        await filled(walker, "verify")
        job = await played(walker, tmp_path, "verify", lines.verify([], ended=False), hangs=True)
        await walker.until(lambda: "58 of 108 tasks" in pane.list.jobs.index(0).data(11), "it is known how it stands")
        await walker.act("app.quit")
        box = walker.find(Confirmation, "window.end")
        assert "58 of 108 tasks" in walker.texts(box)
        await walker.act("app.quit")
        assert len(walker.window.findChildren(Confirmation, "window.end")) == 1
        box.cancel.click()
        await walker.rest()
        assert job.running
        assert not walker.window.closed
        assert walker.window.workspace.pipeline is not None
        walker.find(QPushButton, "pipeline.cancel.button").click()
        await walker.until(lambda: not job.running, "it stops")
        assert not walker.window.workspace.what_would_end()

    run(walk())


def pane_words(walker: Walker) -> str:
    """Return all texts of the results, including their states."""
    pane = walker.find(PipelinePane, "pipeline.pane")
    states = [pane.results.state.state, pane.results.table.strip.state]
    return walker.texts(pane) + " ".join(item.text for item in states if item is not None)


def test_a_failure_shows_its_clear_line_and_can_be_run_again(
    run: Run, walker: Walker, orders: Path, tmp_path: Path
) -> None:
    async def walk() -> None:
        pane = await shown(walker, orders)
        await filled(walker, "stats")
        line = "storescope: no Java 17 or 21 was found: set JAVA_HOME\n"
        job = await played(walker, tmp_path, "stats", [], code=3, words=line)
        assert job.status == "failed"
        words = walker.find(QLabel, "pipeline.results.failure.words").text()
        assert words == "no Java 17 or 21 was found: set JAVA_HOME"
        assert "pip install 'storescope[spark]'" in pane_words(walker)
        assert pane.runs is not None
        pane.runs.command = lines.player(tmp_path / "again", lines.stats())
        walker.find(QPushButton, "pipeline.results.failure.again").click()
        await walker.until(lambda: pane.runs.jobs[0].status == "done", "the second run ends")
        await walker.rest()
        assert len(pane.runs.jobs) == 2
        assert len(walker.rows(RESULTS)) == len(lines.TOPICS)
        assert not walker.find(QLabel, "pipeline.results.failure.words").isVisible()

    run(walk())


def test_without_spark_the_view_says_what_to_install(
    run: Run, walker: Walker, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewer.pipeline.form.missing", lambda: ("pyspark", "pandas"))

    async def walk() -> None:
        await shown(walker, orders)
        output = walker.find(QLabel, "pipeline.lacks")
        await walker.until(output.text, "it is said")
        assert "pyspark, pandas" in output.text()
        assert "pip install 'storescope[spark]'" in output.text()
        assert "Java 17 or 21" in output.text()
        assert not walker.find(QPushButton, "pipeline.run.button").isEnabled()
        assert walker.find(QPushButton, "pipeline.command").isEnabled()

    run(walk())


def test_statistics_stand_beside_what_other_jobs_found_and_rates_are_drawn_by_hour(
    run: Run, walker: Walker, orders: Path, tmp_path: Path
) -> None:
    async def walk() -> None:
        pane = await shown(walker, orders)
        await filled(walker, "stats")
        await played(walker, tmp_path, "stats", lines.stats())
        await walker.until(lambda: pane.rates._plot is not None, "the plot is drawn")
        spoken = pane.rates.accessibleDescription()
        assert all(topic in spoken for topic, *_ in lines.TOPICS)
        for key in ("statsQueue", "statsTag", "statsProducer", "statsHour", "statsFile", "statsTopic"):
            pane.results.choose(key)
            await walker.rest()
            assert len(walker.rows(RESULTS)) == len(pane.runs.jobs[0].rows[key]), key
        pane.rates.measure.choose("bytes")
        assert "/s" in pane.rates.accessibleDescription()
        await filled(walker, "trace", keys="SO-1 SO-2")
        path = Path(str(walker.window.session.path))
        reported = [
            lines.traced("SO-1", "found", path, 4096, "OrderPaid"),
            lines.traced("SO-2", "neverSeen", path),
            lines.summary("trace", keys=2, keysMissing=1),
        ]
        await played(walker, tmp_path, "trace", reported)
        assert [row["Verdict"] for row in walker.rows(RESULTS)] == ["Found", "Never seen"]
        assert walker.find(PipelinePane, "pipeline.pane").aside.isVisible()
        assert len(walker.rows(STATS)) == len(lines.TOPICS)
        target = tmp_path / "table.jsonl"
        from viewer.pane.exporting import export

        assert pane.session is not None
        export(pane.session, pane.statusMessage.emit, pane.aside.table, target)
        await walker.until(target.exists, "the table is exported")
        await walker.until(lambda: len(target.read_text().splitlines()) == len(lines.TOPICS), "all of it")
        assert json.loads(target.read_text().splitlines()[0])["topic"] == lines.TOPICS[0][0]

    run(walk())


def test_what_was_rebuilt_opens_beside_the_old_store(
    run: Run, walker: Walker, orders: Path, tmp_path: Path, copied: Callable[[Path], Path]
) -> None:
    async def walk() -> None:
        await shown(walker, orders)
        built = copied(orders)
        await filled(walker, "rebuild", out=str(tmp_path / "new"))
        different = {
            "type": "difference",
            "store": str(walker.window.session.path),
            "what": "queue",
            "topic": "OrderPaid",
            "queueId": 0,
            "entries": 9,
            "missing": 1,
            "extra": 0,
            "different": 2,
            "expired": 0,
            "firstMissing": 8,
            "firstExtra": None,
            "firstDifferent": 3,
        }
        await played(walker, tmp_path, "rebuild", lines.rebuild(built, [different]), code=1)
        assert "1 differ" in walker.status_text
        await walker.choose(RESULTS, 0)
        await walker.follow(RESULTS, "First place")
        assert walker.place.endswith("3")
        assert walker.value("queue.table", "Queue offset") == 3
        await walker.act("go.back")
        walker.find(QPushButton, "pipeline.beside").click()
        await walker.until(lambda: windows() and windows()[0].session is not None, "it stands beside")
        assert Path(str(windows()[0].session.path)).is_relative_to(built)
        await walker.rest()

    run(walk())


def test_everything_is_reached_by_keys_and_has_a_name(run: Run, walker: Walker, orders: Path, tmp_path: Path) -> None:
    async def walk() -> None:
        pane = await shown(walker, orders)
        await filled(walker, "verify")
        await played(walker, tmp_path, "verify", lines.verify([]))
        for name in ("job", "stores", "master", "run.button", "command", "jobs", "stages", "clear"):
            part = _part(pane, f"pipeline.{name}")
            assert part.accessibleName(), name
            assert part.focusPolicy() & Qt.FocusPolicy.TabFocus, name
        field = walker.find(QLineEdit, "pipeline.master")
        walker.press(field, Qt.Key.Key_Return)
        assert pane.runs is not None
        assert len(pane.runs.jobs) == 2
        await walker.until(lambda: not pane.runs.running, "it ends")

    run(walk())


def _part(pane: PipelinePane, name: str) -> Any:
    from PySide6.QtWidgets import QWidget

    widget = pane.findChild(QWidget, name)
    assert widget is not None, name
    return widget
