"""Entries of batch queues are mended from the log; a placeholder keeps the numbers of a lost batch."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import repair_rounds

from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.repair.repair_plan import plan_repairs

pytestmark = pytest.mark.golden
QUEUE = "batchconsumequeue/bcq1/0"
ENTRY = 46


@pytest.fixture
def root(golden, tmp_path):
    return Path(shutil.copytree(golden("batchcq-5.3.3"), tmp_path / "store"))


def queue_files(root: Path) -> dict[str, bytes]:
    folder = root / "batchconsumequeue"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["zeros", "random bytes", "the first file", "the last file", "the folder"])
def test_the_entries_become_what_they_were(root, kind):
    before = queue_files(root)
    files = sorted((root / QUEUE).iterdir())
    data = bytearray(files[0].read_bytes())
    match kind:
        case "zeros":
            data[ENTRY * 5 : ENTRY * 15] = bytes(ENTRY * 10)
            files[0].write_bytes(data)
        case "random bytes":
            data[ENTRY * 5 : ENTRY * 8] = random.Random(1).randbytes(ENTRY * 3)
            files[0].write_bytes(data)
        case "the first file":
            files[0].unlink()
        case "the last file":
            files[-1].unlink()
        case "the folder":
            shutil.rmtree(root / QUEUE)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(root) == before


def test_entries_that_do_not_tell_their_places_are_written_one_behind_the_other(root):
    """A broker finds an entry by its queue offset, wherever in the queue it stands."""
    before = queue_files(root)
    (file, *_) = sorted((root / QUEUE).iterdir())
    data = file.read_bytes()
    shifted = data[: ENTRY * 5] + data[ENTRY * 5 : ENTRY * 6] * 2 + bytes(ENTRY) + data[ENTRY * 6 : -ENTRY * 2]
    file.write_bytes(shifted)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(root) == before


def test_all_batch_queues_are_built_again_where_the_configuration_says_their_length(root, tmp_path):
    """Nothing was offered: the length of their files was taken from other batch queues only."""
    before = queue_files(root)
    shutil.rmtree(root / "batchconsumequeue")
    rows = {
        name: {"topicName": name, "attributes": {"queue.type": "BatchCQ"}, "readQueueNums": 2, "writeQueueNums": 2}
        for name in ("bcq1", "bcq2")
    }
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": rows}), "utf-8")
    config = tmp_path / "broker.conf"
    config.write_text("mapperFileSizeBatchConsumeQueue=4600\n")
    assert main(["repair", str(root), "--config", str(config), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(root) == before


def test_a_batch_without_an_entry_gets_a_placeholder_with_its_numbers(root):
    """Its numbers are those that its queue lacks; the messages behind it were in no queue any more."""
    lost = [unit for unit in repair_rounds.units_of(root).values() if unit.topic == "bcq1" and unit.batch_size > 2][3]
    number = int(lost.properties["INNER_BASE"])
    repair_rounds.overwrite_with_zeros(root, lost.offset, lost.size)
    shutil.rmtree(root / "batchconsumequeue" / "bcq1" / str(lost.queue_id))
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    with open_store(root) as store:
        unit = store.log.unit_at(lost.offset)
        queue = store.queues.find("bcq1", lost.queue_id)
        assert isinstance(unit, Unit)
        assert (unit.properties["INNER_BASE"], unit.batch_size) == (str(number), lost.batch_size)
        assert queue is not None
        assert (queue.entry(number).physical_offset, queue.entry(number).queue_offset) == (lost.offset, number)


def test_a_placeholder_of_a_batch_has_its_numbers(root):
    units = repair_rounds.units_of(root).values()
    lost = [unit for unit in units if unit.topic == "bcq1" and unit.properties.get("INNER_NUM") == "7"][3]
    repair_rounds.overwrite_with_zeros(root, lost.offset, lost.size)
    before = queue_files(root)
    (repair,) = plan_repairs(root, None, "5.3").repairs
    assert f"bcq1/{lost.queue_id}/{lost.queue_offset}–{lost.queue_offset + 6}" in repair.costs
    assert repair.costs.startswith("7 messages stay lost")
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    with open_store(root) as store:
        unit = store.log.unit_at(lost.offset)
    assert isinstance(unit, Unit)
    place = (unit.topic, unit.queue_id, unit.queue_offset, unit.properties["INNER_BASE"], unit.properties["INNER_NUM"])
    assert place == (lost.topic, lost.queue_id, lost.queue_offset, str(lost.queue_offset), "7")
    assert queue_files(root) == before
