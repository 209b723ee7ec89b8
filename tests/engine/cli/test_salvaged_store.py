"""The store that ``salvage --to`` writes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from salvage_rounds import write_store

from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store


def test_the_messages_of_a_deleted_file_are_in_a_new_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = write_store(random.Random(5), tmp_path / "store", 3, topics=("Orders", "Payments"))
    image = tmp_path / "image"
    image.write_bytes(b"-" * 4096 + written.files[1].read_bytes())
    written.files[1].unlink()
    new = tmp_path / "new"
    assert main(["salvage", str(written.root), "--image", str(image), "--to", str(new), "--json"]) == 0
    capsys.readouterr()
    with open_store(new) as store:
        units = [item for item in store.units() if isinstance(item, Unit)]
    size = len(written.log) // 3
    bodies = [unit for offset, unit in sorted(written.units.items()) if size <= offset < 2 * size]
    assert len(units) == len(bodies)
    assert all(
        unit.body in raw and not unit.stale and unit.crc != "unchecked" for unit, raw in zip(units, bodies, strict=True)
    )
    assert main(["check", str(new), "--fail-on", "warn", "--json"]) == 0, capsys.readouterr().out
