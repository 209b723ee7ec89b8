"""Space of a store: its bytes, the next files to go, the files in memory, and the slots of an index."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import naive_space_count
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel
from walker import Run, Walker

from viewer.index.slot_map import ChainHistogram, SlotMap
from viewer.pane.exporting import write_rows
from viewer.space.pane import SpacePane
from viewer.space.space_line import SpaceLine
from viewer.widgets.facts import Facts
from viewer.widgets.skew_bars import SkewBars
from viewer.widgets.treemap import Treemap
from viewer.widgets.word_tabs import WordTabs

pytestmark = pytest.mark.journey
TABLE = "space.table"


async def counted(walker: Walker) -> SpacePane:
    """Return the view after the log was counted."""
    pane = walker.window.panes["space"]
    assert isinstance(pane, SpacePane)
    model = pane.model
    await walker.until(lambda: model.account is not None and model.account.method == "walked", "the log was walked")
    await walker.until(lambda: not model.running, "the count ends")
    return pane


def box_of(treemap: Treemap, path: tuple[str, ...]) -> QPoint:
    x, y = next(item.box for item in treemap.placed_areas() if item.path == path).middle
    return QPoint(round(x), round(y))


def test_the_sum_equals_the_files_and_topics_are_chosen_everywhere(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.act("view.space")
        pane = await counted(walker)
        rows = walker.rows(TABLE)
        total = sum(naive_space_count.bytes_by_folder(Path(str(walker.window.session.path))).values())
        assert rows[-1]["Commit log"] == f"{total:,}"
        assert "equal to the files ✓" in " ".join(rows[-1].values())
        assert f"{total:,} B accounted for to the byte" in walker.status_text
        treemap = walker.find(Treemap, "space.treemap")
        disk_bytes = sum(
            path.lstat().st_blocks * 512 for path in walker.window.session.path.rglob("*") if path.is_file()
        )
        assert sum(area.bytes for area in pane.model.root.children) == disk_bytes
        walker.find(WordTabs, "space.measure").choose("bytes")
        assert sum(area.bytes for area in pane.model.root.children) == total
        topics = [row["Topic"] for row in rows if row["Units"]]
        walker.click(treemap, box_of(treemap, (topics[1], treemap._root.child(topics[1]).children[0].key)))
        await walker.rest()
        assert walker.row(TABLE)["Topic"] == topics[1]
        assert walker.place.endswith(topics[1])
        facts = " ".join(walker.find(Facts, "space.facts").texts())
        assert "By tag" not in facts or "Producers" in facts
        await walker.choose(TABLE, 0)
        assert treemap.path == (topics[0],)
        assert topics[0] in " ".join(walker.find(Facts, "space.facts").texts())

    run(walk())


def test_every_grouping_and_measure_and_enter_goes_there(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "space")
        pane = await counted(walker)
        treemap = walker.find(Treemap, "space.treemap")
        tabs, measure = walker.find(WordTabs, "space.group"), walker.find(WordTabs, "space.measure")
        measure.choose("allocated")
        for key in ("tag", "producer", "day", "topic"):
            tabs.choose(key)
            assert treemap.placed_areas(), key
        treemap.setFocus()
        walker.press(treemap, Qt.Key.Key_Home)
        topic = next(area.key for area in pane.model.root.children if area.topic and area.target is not None)
        treemap.choose((topic,))
        walker.press(treemap, Qt.Key.Key_PageDown)
        number = treemap.path[1]
        await walker.key(treemap, Qt.Key.Key_Return)
        assert walker.window.view == "queue"
        assert topic in walker.place
        assert number in walker.place
        await walker.act("go.back")
        assert walker.window.view == "space"
        assert walker.row(TABLE)["Topic"] == topic

    run(walk())


def test_the_line_tells_what_goes_next_and_a_file_opens_its_map(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "space")
        pane = await counted(walker)
        line = walker.find(SpaceLine, "space.line")
        await walker.until(lambda: line.blocks, "the files are there")
        assert len(line.blocks) == len(walker.window.session.snapshot.log.files)
        assert "the newest file is never deleted" in line.blocks[-1].words
        text = walker.find(QLabel, "space.retention").text()
        assert "No disk is over" in text or "A disk is over" in text or "cannot be told" in text
        assert "No broker holds this store" in text
        walker.press(line, Qt.Key.Key_Home)
        await walker.until(lambda: pane.file.strip.map is not None, "the map of row 85 is drawn")
        assert pane.file.strip.map.units > 0
        walker.click(pane.file.strip, QPoint(pane.file.strip.width() // 3, 25))
        await walker.rest()
        assert walker.window.view == "log"
        offset = walker.value("units.table", "Physical offset")
        block = line.blocks[0]
        assert block.start <= offset < block.end

    run(walk())


def test_damage_is_marked_on_the_files_map_and_a_click_goes_to_it(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "space")
        pane = await counted(walker)
        await walker.until(lambda: pane.line.blocks, "the files are there")
        for number, block in enumerate(pane.line.blocks):
            pane.line._select(number)
            await walker.until(
                lambda name=block.name: pane.file.strip.map is not None and pane.file.strip.map.name == name, "the map"
            )
            results = pane.file.strip.map
            if results.bad:
                break
        assert results.bad, "the sample store has a flipped bit"
        cell = next(n for n, item in enumerate(results.cells) if item.bad)
        walker.click(pane.file.strip, QPoint(round(pane.file.strip._cell_left(cell)) + 1, 25))
        await walker.rest()
        assert walker.value("units.table", "Physical offset") == results.bad[0]
        rows = walker.rows(TABLE)
        assert "equal to the files ✓" in " ".join(rows[-1].values())

    run(walk())


def test_page_cache_and_queue_skew_stand_beside(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "space")
        await counted(walker)
        await walker.until(lambda: walker.find(QLabel, "space.cache").text() != "", "the pages are asked about")
        cache = walker.find(QLabel, "space.cache").text()
        assert cache.startswith("Not known") or "Commit log" in cache
        line = walker.find(SpaceLine, "space.line")
        assert cache.startswith("Not known") or any(block.shares for block in line.blocks)
        await walker.choose(TABLE, 0)
        skew = walker.find(SkewBars, "space.skew")
        topic = walker.row(TABLE)["Topic"]
        queues = walker.window.session.snapshot.topics()[topic]
        assert [name for name, _ in skew.bars] == [str(number) for number in queues]
        assert sum(count for _, count in skew.bars) == int(walker.row(TABLE)["Units"].replace(",", ""))
        await walker.go(f"queue:{topic}/{min(queues)}")
        beside = walker.find(SkewBars, "queue.skew")
        await walker.until(lambda: len(beside.bars) == len(queues), "the topic's queues stand beside the one in front")
        assert "filled" in beside.accessibleDescription() or len(queues) < 2

    run(walk())


def test_the_account_is_exported_and_grows_with_the_store(
    run: Run, walker: Walker, orders: Path, tmp_path: Path, copied: Callable[[Path], Path]
) -> None:
    class CountingControl:
        def check(self) -> None: ...

        def report(self, *_progress: object) -> None: ...

    async def walk() -> None:
        root = copied(orders)
        await walker.open(root, "space")
        pane = await counted(walker)
        target = tmp_path / "space.jsonl"
        count = write_rows(CountingControl(), pane.table.source, pane.table.kind, target)  # type: ignore[arg-type]
        lines = [json.loads(line) for line in target.read_text().splitlines()]
        assert count == len(lines)
        assert sum(line["bytes"] + (line["queueBytes"] or 0) * 0 for line in lines if line["what"] == "sum") > 0
        bytes_before = pane.model.account.bytes
        folder = Path(str(walker.window.session.path))
        (folder / "left-over.bin").write_bytes(b"x" * 12_345)
        await walker.act("view.refresh")
        await walker.until(lambda: pane.model.account.bytes == bytes_before + 12_345, "the new file is counted", 60)

    run(walk())


def test_the_slots_of_an_index_file_as_heat_map_and_chain_lengths(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "index")
        slots, bars = walker.find(SlotMap, "index.slots"), walker.find(ChainHistogram, "index.histogram")
        await walker.until(lambda: bars.accessibleDescription() != "", "the slots are counted")
        counts = re.findall(r"\d+: ([\d,]+?)(?=, \d+: |$)", bars.accessibleDescription())
        lengths = [int(count.replace(",", "")) for count in counts]
        session = walker.window.session
        name = walker.row("index.files")["Name"] if "Name" in walker.heads("index.files") else None
        reader = next(r for r in session.snapshot.index_files() if name is None or r.name == name)
        assert sum(lengths) == reader.geometry.slots
        walker.click(slots, QPoint(20, 12))
        await walker.rest()
        assert walker.window.view == "index"

    run(walk())
