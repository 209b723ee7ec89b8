"""The store that ``salvage --to`` writes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from salvage_rounds import write_store

from engine.cli.main import main
from engine.codec.config_tables import consumer_offsets
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.inspection.tables import read_table


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


def salvaged_from_image(source: Path, tmp_path: Path, image: Callable[[bytes], bytes]) -> Path:
    """Return a new store with the messages in ``image(log)``, after all bytes of the log of a copy are zeroed."""
    copy, new = tmp_path / "copy", tmp_path / "new"
    shutil.copytree(source, copy)
    files = sorted((copy / "commitlog").iterdir())
    (tmp_path / "image").write_bytes(image(b"".join(file.read_bytes() for file in files)))
    for file in files:
        file.write_bytes(bytes(file.stat().st_size))
    assert main(["salvage", str(copy), "--image", str(tmp_path / "image"), "--to", str(new), "--json"]) == 0
    return new


@pytest.mark.parametrize("name", ["broker-orders-5.5.1", "rocksdb-orders-5.5.1"])
def test_topics_groups_and_their_offsets_come_along(
    golden: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """They were not written: a broker on the new store knew no topic, and `check` called its tables lost."""
    new = salvaged_from_image(golden(name), tmp_path, lambda log: log)
    capsys.readouterr()
    assert main(["check", str(new), "--fail-on", "warn", "--json"]) == 0, capsys.readouterr().out
    with open_store(golden(name)) as before, open_store(new) as after:
        for table in ("topics.json", "subscriptionGroup.json", "consumerOffset.json"):
            old_table, new_table = read_table(before, table), read_table(after, table)
            assert old_table is not None
            assert new_table is not None
            old_rows, new_rows = old_table.value, new_table.value
            key = next(key for key in old_rows if str(key).endswith("Table"))
            lost = [name for name, row in old_rows[key].items() if new_rows[key].get(name) != row]
            assert all(str(name).endswith("@broadcast") for name in lost)


def test_groups_go_on_at_the_message_at_which_they_were(
    golden: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the messages in front of it only some could be had, so it has another number."""
    source = golden("broker-orders-5.5.1")
    new = salvaged_from_image(source, tmp_path, lambda log: log[1_000_000:])
    capsys.readouterr()
    with open_store(source) as before, open_store(new) as after:
        old, table = read_table(before, "consumerOffset.json"), read_table(after, "consumerOffset.json")
        assert old is not None
        assert table is not None
        rows = {row.key: row for row in consumer_offsets(table.value).rows}
        moved = 0
        for row in consumer_offsets(old.value).rows:
            for queue_id, offset in row.offsets.items() if row.mode == "cluster" else ():
                entries = (before.queues.find(row.topic, queue_id), after.queues.find(row.topic, queue_id))
                if entries[0] is None or entries[1] is None:
                    continue
                kept = [
                    number
                    for number in range(entries[0].max_offset)
                    if (entry := entries[0].entry(number)) is not None and entry.physical_offset >= 1_000_000
                ]
                expected = sum(number < offset for number in kept)
                assert abs(rows[row.key].offsets[queue_id] - expected) <= 1  # a unit at the border is cut
                moved += expected != offset
    assert moved
