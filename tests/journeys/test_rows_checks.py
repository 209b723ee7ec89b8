"""Findings of the whole-store check in files, queues, index and configuration, each with its place."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from walker import Run, Walker

from engine.config import MessageStoreConfig, read_properties

pytestmark = pytest.mark.journey
LOG, QUEUE, FINDINGS, PLAN = "units.table", "queue.table", "findings.table", "recovery.plan"
TOPIC = "UserClicks"


async def checked(walker: Walker, store: Path, config: MessageStoreConfig | None = None) -> dict[str, str]:
    """Open the findings of ``store`` and return a dictionary: rule → text of the finding."""
    await walker.open(store, "findings", config)
    session = walker.window.session
    assert session is not None
    await walker.until(lambda: session.findings_complete, "the check ends")
    await walker.rest()
    return {finding.id: finding.message for finding in session.findings}


async def chosen(walker: Walker, rule: str) -> None:
    """Choose the finding of ``rule`` and go to its place."""
    await walker.choose(FINDINGS, [row["Rule"] for row in walker.rows(FINDINGS)].index(rule))
    walker.find(QPushButton, "finding.go").click()
    await walker.rest()


def patch(file: Path, position: int, data: bytes) -> None:
    raw = bytearray(file.read_bytes())
    raw[position : position + len(data)] = data
    file.write_bytes(raw)


def queue_file(store: Path, queue: int) -> Path:
    return min((store / "consumequeue" / TOPIC / str(queue)).iterdir())


def test_gaps_repeats_and_steps_back_in_a_queue_are_named_at_their_entry(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)
    content = queue_file(store, 0).read_bytes()
    patch(queue_file(store, 0), 7 * 20, content[6 * 20 : 7 * 20])  # the same unit twice
    two = queue_file(store, 1).read_bytes()
    patch(queue_file(store, 1), 9 * 20, two[2 * 20 : 3 * 20])  # back to an earlier unit
    patch(queue_file(store, 2), 5 * 20, bytes(20))  # a gap

    async def walk() -> None:
        results = await checked(walker, store)
        text = " | ".join(results.values())
        for place in (f"{TOPIC}/0, entry 7", f"{TOPIC}/1, entry 9", f"{TOPIC}/2, entry 5"):
            assert place in text, text
        for queue, entry in ((0, 7), (1, 9), (2, 5)):
            await walker.go(f"{TOPIC}/{queue}/{entry}")
            assert walker.value(QUEUE, "Queue offset") == entry
            await walker.until(lambda: walker.row(QUEUE)["Verdict"] not in {"", "ok"}, "the entry has its verdict")

    run(walk())


def test_the_header_of_an_index_file_is_decoded(run: Run, walker: Walker, orders: Path) -> None:
    name = min(file.name for file in (orders / "index").iterdir())
    begin, end, first_offset, last_offset, slots, count = struct.unpack(
        ">4q2i", (orders / "index" / name).read_bytes()[:40]
    )

    async def walk() -> None:
        await walker.open(orders, f"index:{name}")
        await walker.rest()
        values = [walker.values("index.files", head) for head in walker.heads("index.files")]
        row = next(n for n, row_values in enumerate(walker.rows("index.files")) if name in row_values.values())
        shown = {column[row] for column in values if isinstance(column[row], int)}
        assert {first_offset, last_offset, slots, count} <= shown, (shown, first_offset, last_offset, slots, count)
        assert {begin, end} <= shown

    run(walk())


def test_the_checkpoint_in_human_time_with_the_file_recovery_starts_from(
    run: Run, walker: Walker, damaged: Path
) -> None:
    async def walk() -> None:
        await walker.open(damaged, "checkpoint")
        assert walker.window.view == "positions"
        pane = walker.window.panes["positions"]
        await walker.until(lambda: pane.over_time.ready, "the plots are there")
        assert "Behind wrote" in walker.heads("positions.now"), "nobody writes: what lags stands there, not what moves"
        names = [row["Position"] for row in walker.rows("positions.now")]
        await walker.choose("positions.now", names.index("checkpoint, log"))
        texts = walker.texts(pane)
        assert re.search(r"checkpoint, log: .* · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", texts), texts
        await walker.act("recovery.preview")
        await walker.until(lambda: walker.table(PLAN).model().rowCount() > 5, "the plan is there")
        plan = [" ".join(row.values()) for row in walker.rows(PLAN)]
        start = next(line for line in plan if "00000000000001048576" in line)
        assert "checkpoint" in start

    run(walk())


def test_a_brokers_configuration_is_held_against_the_files(
    run: Run, walker: Walker, orders: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeCommitLog=4096000\nbrokerName=a\n", "utf-8")

    async def walk() -> None:
        await checked(walker, orders, read_properties(str(conf))[0])
        session = walker.window.session
        assert session is not None
        text = "mappedFileSizeCommitLog means files of 4,096,000 bytes, the store's have 1,048,576"
        assert [finding for finding in session.findings if finding.message.startswith(text)]
        await walker.choose(FINDINGS, [row["Rule"] for row in walker.rows(FINDINGS)].index("CF05"))
        detail = walker.texts(walker.window.panes["findings"])
        assert "Safe next steps" in detail

    run(walk())


@pytest.mark.parametrize(
    ("behind", "length", "reported"),
    [
        (
            1,
            0,
            "The last file has no bytes: it was created, and nothing was written into it; RocketMQ 4.9 does not start",
        ),
        (
            1,
            4096,
            (
                "Expected 1,048,576 bytes like the other files, found 4,096; it holds nothing but zeros, and the log "
                "ends before it; RocketMQ does not start"
            ),
        ),
        (3, 1_048_576, "No file holds the 2,097,152 bytes from 2,097,152 to 4,194,304"),
    ],
)
def test_missing_empty_and_short_files_of_the_log_are_found(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], behind: int, length: int, reported: str
) -> None:
    store = copied(orders)
    last = max((store / "commitlog").iterdir())
    (store / "commitlog" / f"{int(last.name) + behind * last.stat().st_size:020d}").write_bytes(bytes(length))

    async def walk() -> None:
        record = await checked(walker, store)
        assert record["CL07"] == reported
        await chosen(walker, "CL07")
        assert walker.window.view == "log"

    run(walk())


def test_the_log_and_its_queues_are_checked_both_ways(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)
    patch(queue_file(store, 3), 4 * 20, struct.pack(">q", 77))  # an entry that points at no unit
    for file in (store / "consumequeue" / TOPIC / "2").iterdir():
        file.unlink()
    (store / "consumequeue" / TOPIC / "2").rmdir()  # units without entries

    async def walk() -> None:
        results = await checked(walker, store)
        session = walker.window.session
        assert session is not None
        assert any(f"{TOPIC}/3" in finding.message and finding.group == "queue" for finding in session.findings), (
            results
        )
        without = next(item for item in session.findings if item.id == "CQ10")
        assert f"{TOPIC}" in without.message
        await chosen(walker, "CQ10")
        assert walker.window.view == "log"
        assert walker.row(LOG)["Topic"] == TOPIC
        assert walker.row(LOG)["Queue"] == "2"

    run(walk())
