"""The same filter gives the same rows in the table, as a colouring rule, in an export and on the command line."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QRadioButton
from walker import Run, Walker

from engine.cli.main import main
from engine.codec.message import Unit
from viewer.log.colour_rules import Rule, row_style_function

pytestmark = pytest.mark.journey
LOG = "units.table"
FILTERS = (
    'tags in ("paid", "shipped") and size between 400 and 900',
    "keys is null or queueOffset < 3",
    'body contains "crate" and not topic = "AuditTrail"',
    "reconsumeTimes > 0 or transaction is not null or delayed",
    'crc = "ok" and properties.UNIQ_KEY is not null and physicalOffset > 200000',
)
STORES = ("broker-transactions", "broker-retries", "clean-4.9.8")


async def ended(walker: Walker) -> None:
    pane = walker.window.pane("log")
    await walker.until(lambda: not pane.busy() and walker.window.jobs.quick_idle, "it ends")
    await walker.rest()


def command_line(store: Path, where: str) -> list[int]:
    string_io = io.StringIO()
    with redirect_stdout(string_io):
        main(["units", str(store), "--json", "--where", where])
    records = [json.loads(line) for line in string_io.getvalue().splitlines()]
    return [record["physicalOffset"] for record in records if record["type"] == "unit"]


async def exported(
    walker: Walker, target: Path, form: str = "jsonl", masks: tuple[str, ...] = (), keep: str = ""
) -> str:
    """Export the rows of the filter through the dialog; return the text of the status bar."""
    await walker.act("export.table")
    assert walker.find(QRadioButton, "export.scope.filter").isChecked()
    combo = walker.find(QComboBox, "export.form")
    combo.setCurrentIndex(combo.findData(form))
    for name in masks:
        walker.find(QCheckBox, f"export.mask.{name}").setChecked(True)
    assert walker.find(QLineEdit, "export.keep").isEnabled() == ("properties" in masks)
    walker.find(QLineEdit, "export.keep").setText(keep)
    walker.find(QLineEdit, "export.path").setText(str(target))
    walker.find(QPushButton, "export.go").click()
    await walker.until(lambda: str(target) in walker.status_text and target.exists(), "the file is written")
    return walker.status_text


@pytest.mark.full_form(keep=1)
@pytest.mark.golden
@pytest.mark.parametrize(("name", "filters"), list(zip(STORES, (FILTERS[:2], FILTERS[2:4], FILTERS[4:]), strict=True)))
def test_table_colour_export_and_command_line_give_the_same_rows(
    run: Run, walker: Walker, golden, name: str, filters: tuple[str, ...], tmp_path: Path
) -> None:
    async def walk() -> None:
        store = golden(name)
        await walker.open(store)
        for number, where in enumerate(filters):
            expected = command_line(store, where)
            await walker.go(f"filter:{where}")
            await ended(walker)
            pane = walker.window.pane("log")
            source = pane.table.source  # type: ignore[attr-defined]
            assert source.offsets == expected, (name, where)
            assert pane.table.total_rows() == len(expected)  # type: ignore[attr-defined]
            style_of = row_style_function([Rule("it", where)]) if expected else None
            log = walker.window.session.snapshot.log  # type: ignore[union-attr]
            if style_of is not None:
                coloured = [u.offset for u in log.walk() if isinstance(u, Unit) and style_of(u).rule]
                assert coloured == expected, (name, where)
                target = tmp_path / f"{number}.jsonl"
                await exported(walker, target)
                written = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
                assert [r["physicalOffset"] for r in written if r["type"] == "unit"] == expected
                assert written[-1]["type"] == "end"

    run(walk())


def test_exports_say_what_was_cut_and_row_77_mask(run: Run, walker: Walker, orders: Path, tmp_path: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, 'filter:topic = "OrderPaid"')
        await ended(walker)
        rows = walker.table(LOG).total_rows()
        output = await exported(walker, tmp_path / "a.md", "markdown")
        assert f"{rows:,} rows written" in output
        assert "cells were cut" in output
        lines = (tmp_path / "a.md").read_text("utf-8").splitlines()
        assert len(lines) == rows + 2
        await exported(walker, tmp_path / "a.csv", "csv")
        assert (tmp_path / "a.csv").read_text("utf-8").startswith("physicalOffset,size,file,topic")
        await exported(walker, tmp_path / "a.bin", "raw")
        raw = (tmp_path / "a.bin").read_bytes()
        assert raw[4:8] == bytes.fromhex("DAA320A7")
        await exported(walker, tmp_path / "masked.jsonl", "jsonl", ("bodies", "keys", "hosts"))
        text = (tmp_path / "masked.jsonl").read_text("utf-8")
        records = [json.loads(line) for line in text.splitlines()][:-1]
        assert all(key.startswith("key-") for record in records for key in record["keys"])
        assert all(record["bornHost"].startswith("host-") and record["bodySha256"] is None for record in records)
        assert "SO-0000" not in text
        await walker.go('filter:topic contains "RETRY"')
        await ended(walker)
        await exported(walker, tmp_path / "named.jsonl", "jsonl", ("groups", "lmq", "properties"), keep="region")
        text = (tmp_path / "named.jsonl").read_text("utf-8")
        records = [json.loads(line) for line in text.splitlines()][:-1]
        assert records
        assert all(record["topic"].startswith("%RETRY%group-") for record in records)
        inside = walker.window.session.path / "x.jsonl"  # type: ignore[union-attr]
        await walker.act("export.table")
        walker.find(QLineEdit, "export.path").setText(str(inside))
        walker.find(QPushButton, "export.go").click()
        await walker.rest()
        assert "Nothing is written into the store" in walker.status_text
        assert not inside.exists()

    run(walk())
