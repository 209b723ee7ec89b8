"""The command ``salvage``."""

from __future__ import annotations

import json
import random
from pathlib import Path

import golden_stores
import pytest
from planted_faults import patch
from salvage_rounds import WrittenStore, write_store

from engine.cli.main import main


@pytest.fixture
def written(tmp_path: Path) -> WrittenStore:
    store = write_store(random.Random(5), tmp_path / "store", 2)
    (tmp_path / "replica").write_bytes(store.log)
    offset = next(offset for offset in store.units if offset > 20_000)
    patch(store.files[0], offset, bytes(30))
    return store


def test_rows_and_a_summary_are_json(written: WrittenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = golden_stores.fingerprint(written.root)
    assert main(["salvage", str(written.root), "--image", str(tmp_path / "replica"), "--json"]) == 0
    row, summary = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["type"], row["verdict"], row["file"]) == ("salvaged", "whole", str(tmp_path / "replica"))
    assert (summary["counts"], summary["written"]) == ({"whole": 1}, None)
    assert summary["liveLeftOut"] == len(written.units) - 1
    assert golden_stores.changes(before, golden_stores.fingerprint(written.root)) == []


def test_the_table_ends_with_what_can_be_had(
    written: WrittenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["salvage", str(written.root), "--image", str(tmp_path / "replica"), "--to", str(tmp_path / "new")]) == 0
    )
    out = capsys.readouterr().out
    assert "1 message can be had whole" in out
    assert f"1 message, {len(written.units)}" not in out
    assert "queue offsets begin at 0 there" in out
    assert (tmp_path / "new" / "commitlog").is_dir()


def test_a_new_store_is_never_written_into_the_old_one(
    written: WrittenStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["salvage", str(written.root), "--to", str(written.root / "new")]) == 2
    assert main(["salvage", str(written.root), "--image", str(tmp_path / "none")]) == 3
    assert "none" in capsys.readouterr().err
