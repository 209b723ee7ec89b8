"""Queue files are mended from the log: only bytes that differ change, entries of messages that are gone stay."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import golden_stores
import pytest
import repair_rounds
from broken_stores import BROKEN
from handmade_stores import LOG_SIZE, HandmadeStore, healthy
from planted_faults import patch

from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList, WriteBytes
from engine.repair.queue_entries import repair_queues
from engine.repair.repair import Repair
from engine.repair.repair_plan import lost_by, plan_repairs
from engine.rules.findings import Finding


def mended(root: Path) -> Repair | None:
    with open_store(root) as store:
        repair = repair_queues(store, [item for item in check(store) if isinstance(item, Finding)])
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


@pytest.mark.parametrize("rule", ["CQ01", "CQ03", "CQ04", "CQ05", "CQ09", "CQ10", "CQ12", "RP01"])
def test_the_queues_become_what_they_were(tmp_path, rule):
    store = healthy()
    root = store.write(tmp_path / "store")
    before = golden_stores.fingerprint(root)
    BROKEN[rule](root, store)
    repair = mended(root)
    assert repair is not None
    changes = golden_stores.changes(before, golden_stores.fingerprint(root))
    queues = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in (root / "consumequeue").rglob("0" * 17 + "*")
    }
    whole = store.write(tmp_path / "whole")
    expected = {
        path.relative_to(whole).as_posix(): path.read_bytes() for path in (whole / "consumequeue").rglob("0" * 17 + "*")
    }
    assert {name: data for name, data in queues.items() if any(data)} == expected, changes


def test_queues_that_no_finding_names_are_left_alone(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    assert mended(root) is None


def test_only_bytes_that_differ_are_written(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CQ09"](root, store)
    repair = mended(root)
    assert repair is not None
    (change,) = repair.patches
    assert isinstance(change, WriteBytes)
    assert len(change.new) <= 8


def test_a_queue_file_that_is_gone_is_made_again_behind_prefilled_entries(tmp_path):
    store = HandmadeStore(next_offsets={("Orders", 0): 25})
    for number in range(40):
        store.put("Orders", 0, body=b"m%d" % number)
        store.put("Payments", 0, body=b"m%d" % number)
    root = store.write(tmp_path / "store", queues=False)
    folder = root / "consumequeue"
    for topic, first in (("Orders", 25), ("Payments", 0)):
        entries = store.queue_bytes(topic, 0)
        (folder / topic / "0").mkdir(parents=True)
        start = first * 20 // 400 * 400
        data = bytes.fromhex("00000000000000007fffffff0000000000000000") * (first - start // 20) + entries
        for position in range(0, len(data), 400):
            (folder / topic / "0" / f"{start + position:020d}").write_bytes(
                data[position : position + 400].ljust(400, b"\0")
            )
    whole = {path.name: path.read_bytes() for path in (folder / "Orders" / "0").iterdir()}
    (folder / "Orders" / "0" / f"{400:020d}").unlink()
    assert mended(root) is not None
    assert {path.name: path.read_bytes() for path in (folder / "Orders" / "0").iterdir()} == whole


def test_entries_of_messages_that_are_gone_stay(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    unit = store.units[20]
    name = unit.offset // 4096 * 4096
    patch(root / "commitlog" / f"{name:020d}", unit.offset - name, bytes(unit.size))
    BROKEN["CQ09"](root, store)
    queue = root / "consumequeue" / unit.topic / str(unit.queue_id) / f"{unit.queue_offset * 20 // 400 * 400:020d}"
    position = unit.queue_offset * 20 % 400
    before = queue.read_bytes()[position : position + 20]
    assert mended(root) is not None
    assert queue.read_bytes()[position : position + 20] == before


@pytest.mark.golden
def test_a_queue_that_lost_its_folder_gets_it_back(golden, tmp_path):
    """A start dispatches its newest 369 messages again, and leaves 132 out for good."""
    root = Path(shutil.copytree(golden("crash-late-5.3.3"), tmp_path / "store"))
    with open_store(root) as store:
        assert store.queue("TopicA", 2) is None
    assert mended(root) is not None
    with open_store(root) as store:
        queue = store.queue("TopicA", 2)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (0, 501)
        assert "CQ10" not in {item.id for item in check(store) if isinstance(item, Finding)}


@pytest.mark.golden
@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("seed", range(30))
def test_random_damage_of_queues_is_mended(golden, tmp_path, seed):
    """RocketMQ wrote the entries; what a repair writes is the same."""
    rng = random.Random(seed)
    root = Path(shutil.copytree(golden(rng.choice(["clean-5.3.3", "clean-4.9.8", "clean-5.5.1"])), tmp_path / "store"))

    def entries() -> dict[str, bytes]:
        files = (root / "consumequeue").rglob("0" * 16 + "*")
        return {str(path.relative_to(root)): data for path in files if any(data := path.read_bytes())}

    written = entries()
    repair_rounds.damage_queues(rng, root)
    mended(root)
    assert entries() == written


def test_a_queue_without_entries_begins_behind_the_messages_that_the_log_has_no_more(tmp_path):
    """The first files of the log and all queue entries were gone, the queue files not. Empty entries in front of the
    first message stayed empty: a start of any release ended the queue there, and gave its messages new queue offsets.
    """
    store = healthy(count=90)
    root = store.write(tmp_path / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    for file in (root / "consumequeue").glob("*/*/*"):
        file.write_bytes(bytes(file.stat().st_size))
    plan = plan_repairs(root, None, "5.5", only=["queues"])
    assert lost_by(plan.current.start) > 0
    assert [lost_by(start) for start in plan.mended.starts] == [0, 0]
    assert "RP03" in {finding.id for finding in plan.current.findings}
    assert not {"RP03", "CQ03", "CQ10"} & {finding.id for finding in plan.mended.findings}
    apply_patches(root, PatchList(plan.patches), RealDisk())
    in_log = [unit for unit in store.units if unit.offset >= LOG_SIZE]
    with open_store(root) as opened:
        for topic, by_id in opened.topics().items():
            for queue in by_id.values():
                numbers = [u.queue_offset for u in in_log if (u.topic, u.queue_id) == (topic, queue.queue_id)]
                assert (queue.min_offset, queue.max_offset) == (numbers[0], numbers[-1] + 1)


LIGHT = "consumequeue/%LMQ%user-1/0"


@pytest.fixture
def light_store(golden, tmp_path):
    return Path(shutil.copytree(golden("broker-lmq"), tmp_path / "store"))


def queue_files(root: Path) -> dict[str, bytes]:
    folder = root / "consumequeue"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["zeros", "a file", "the folder"])
def test_the_entries_of_a_light_queue_become_what_they_were(light_store, kind):
    root = light_store
    before = queue_files(root)
    (file,) = (root / LIGHT).iterdir()
    if kind == "zeros":
        file.write_bytes(file.read_bytes()[:100] + bytes(200) + file.read_bytes()[300:])
    elif kind == "a file":
        file.unlink()
    else:
        shutil.rmtree(root / LIGHT)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(root) == before


@pytest.mark.golden
@pytest.mark.parametrize("loses_own_queue", [False, True])
def test_a_placeholder_of_a_light_message_is_in_all_of_its_queues(light_store, loses_own_queue):
    """Without its own queue only the light queues said where the message was: it became a message of a light topic."""
    root = light_store
    units = repair_rounds.units_of(root).values()
    lost = [unit for unit in units if "INNER_MULTI_DISPATCH" in unit.properties and unit.topic == "OrderEvents"][60]
    repair_rounds.overwrite_with_zeros(root, lost.offset, lost.size)
    (root / "abort").touch()
    if loses_own_queue:
        shutil.rmtree(root / "consumequeue" / lost.topic / str(lost.queue_id))
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    with open_store(root) as store:
        unit = store.log.unit_at(lost.offset)
    assert isinstance(unit, Unit)
    assert (unit.topic, unit.queue_id, unit.queue_offset) == (lost.topic, lost.queue_id, lost.queue_offset)

    def numbers(message: Unit) -> dict[str, str]:
        names, offsets = (message.properties[f"INNER_MULTI_{name}"] for name in ("DISPATCH", "QUEUE_OFFSET"))
        return dict(zip(names.split(","), offsets.split(","), strict=True))

    assert numbers(unit) == numbers(lost)


@pytest.mark.golden
def test_entries_of_another_light_queue_are_replaced(light_store):
    """They led to messages of this queue by chance, at other places: that was taken for numbers of its own."""
    before = queue_files(light_store)
    (file,) = (light_store / LIGHT).iterdir()
    other = next(path for path in sorted((light_store / "consumequeue").glob("%LMQ%*/0/*")) if path != file)
    own = file.read_bytes()
    file.write_bytes(other.read_bytes()[:200] + own[200:])
    assert main(["repair", str(light_store), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(light_store) == before
    file.write_bytes((own[100:].rstrip(b"\0")).ljust(len(own), b"\0"))  # all with one shift, as of a later file
    assert main(["repair", str(light_store), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(light_store) == before


@pytest.mark.golden
def test_a_lost_light_message_without_entries_gets_the_numbers_that_its_light_queues_lack(light_store):
    """Later messages of the light queues were in no queue after the mend: nothing filled the gap in their numbers."""
    root = light_store
    units = repair_rounds.units_of(root).values()
    lost = [unit for unit in units if "INNER_MULTI_DISPATCH" in unit.properties and unit.topic == "OrderEvents"][60]
    repair_rounds.overwrite_with_zeros(root, lost.offset, lost.size)
    for path in sorted((root / "consumequeue").glob("*/*/*")):
        data = bytearray(path.read_bytes())
        for place in range(0, len(data), 20):
            if int.from_bytes(data[place : place + 8], "big") == lost.offset:
                data[place : place + 20] = bytes(20)
        path.write_bytes(data)
    (root / "abort").touch()
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    with open_store(root) as store:
        for name, number in zip(
            *(lost.properties[f"INNER_MULTI_{part}"].split(",") for part in ("DISPATCH", "QUEUE_OFFSET")), strict=True
        ):
            queue = store.queues.find(name, 0)
            assert queue is not None
            assert queue.entry(int(number)).physical_offset == lost.offset


@pytest.mark.golden
def test_all_light_queues_are_built_again_where_the_configuration_turns_them_on(light_store, tmp_path):
    """Without a light queue and without a group that reads one, nothing was offered. And the files of queues would have
    got the length of most files, which were those of batch queues: no broker would have started.
    """
    before = queue_files(light_store)
    for path in (light_store / "consumequeue").glob("%LMQ%*"):
        shutil.rmtree(path)
    for path in (light_store / "config").glob("lmqConsumerOffset.json*"):
        path.unlink()
    config = tmp_path / "broker.conf"
    config.write_text("enableLmq=true\nenableMultiDispatch=true\n")
    assert main(["repair", str(light_store), "--config", str(config), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(light_store) == before


@pytest.mark.golden
def test_a_queue_with_other_numbers_than_its_messages_say_is_left(golden, tmp_path):
    """A broker appends the entries of light queues one behind the other, whatever number a message names."""
    root = Path(shutil.copytree(golden("lmq-5.3.3"), tmp_path / "store"))
    (file,) = (root / "consumequeue" / "%LMQ%a" / "0").iterdir()
    file.write_bytes(file.read_bytes()[:100] + bytes(200) + file.read_bytes()[300:])
    before = queue_files(root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert queue_files(root) == before
