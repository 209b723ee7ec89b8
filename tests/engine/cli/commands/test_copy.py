"""``copy``: filters, sizes, units that are not copied, and that no incomplete copy remains."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from explicit_plans import account, write_conf

from engine.cli import copying
from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

CLEAN = "clean-5.3.3"


def copied(capsys, *arguments):
    assert main(["copy", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_record_counts_the_copied_units(golden, unchanged, tmp_path, capsys):
    done = copied(capsys, unchanged(golden("propcrc-5.3.3")), tmp_path / "copy")
    units = account(tmp_path / "copy")["units"]
    assert (done["type"], done["units"], done["bytes"]) == ("copied", len(units), sum(unit[1] for unit in units))
    with open_store(tmp_path / "copy") as store:
        assert done["maxOffset"] == store.log.max_offset


def test_a_filter_chooses_units_and_keeps_their_queue_offsets(golden, tmp_path, capsys):
    source = golden(CLEAN)
    done = copied(capsys, source, tmp_path / "copy", "--where", "topic = 'TopicA' and queueId = 1")
    with open_store(source) as source_store, open_store(tmp_path / "copy") as copied_store:
        expected = [u for u in source_store.units() if isinstance(u, Unit) and (u.topic, u.queue_id) == ("TopicA", 1)]
        units = [u for u in copied_store.units() if isinstance(u, Unit)]
    assert done["units"] == len(expected) == len(units)
    assert [(u.queue_offset, u.body, u.properties_raw) for u in units] == [
        (u.queue_offset, u.body, u.properties_raw) for u in expected
    ]


@pytest.mark.parametrize("name", ["ipv6-and-unicode-5.3.3", "batchcq-5.3.3", "lmq-5.3.3", "multi-queue-ext-5.3.3"])
def test_a_copy_with_other_file_sizes_has_the_same_contents(golden, tmp_path, capsys, name):
    sizes = {
        "mappedFileSizeCommitLog": 50_000,
        "mappedFileSizeConsumeQueue": 420,
        "maxHashSlotNum": 17,
        "maxIndexNum": 90,
    }
    source = golden(name)
    copied(capsys, source, tmp_path / "small", "--config", write_conf(tmp_path / "small.conf", sizes))
    with open_store(source) as source_store, open_store(tmp_path / "small") as small_store:
        assert small_store.log.sequence.file_size == 50_000
        for topic, queues in source_store.topics().items():
            for number, queue in queues.items():
                copied_queue = small_store.queue(topic, number)
                assert (copied_queue.min_offset, copied_queue.max_offset) == (queue.min_offset, queue.max_offset)
                assert [
                    (e.queue_offset, e.size, e.real_tags_code, e.ext and e.ext.bit_map) for e in copied_queue.entries()
                ] == [(e.queue_offset, e.size, e.real_tags_code, e.ext and e.ext.bit_map) for e in queue.entries()]
        units = [
            [(u.topic, u.queue_offset, u.store_timestamp, u.body) for u in store.units() if isinstance(u, Unit)]
            for store in (source_store, small_store)
        ]
    assert units[0] == units[1]


def test_damage_is_not_copied_and_units_before_it_keep_their_offsets(golden, tmp_path, capsys):
    source = tmp_path / "source"
    shutil.copytree(golden(CLEAN), source)
    with open_store(source) as store:
        units = [unit for unit in store.units() if isinstance(unit, Unit)]
        torn, flipped = units[100], units[2000]
        torn_file = store.log.sequence.find(torn.offset)
        flipped_file = store.log.sequence.find(flipped.offset)
    with open(torn_file.path, "r+b") as log:
        log.seek(torn.offset - torn_file.start_offset)
        log.write(bytes(20))
    with open(flipped_file.path, "r+b") as log:
        log.seek(flipped.offset - flipped_file.start_offset + 90)
        byte = log.read(1)[0]
        log.seek(flipped.offset - flipped_file.start_offset + 90)
        log.write(bytes([byte ^ 1]))
    done = copied(capsys, source, tmp_path / "copy")
    assert (done["leftBehind"], done["bytesLeftBehind"]) == (2, torn.size + flipped.size)
    with open_store(tmp_path / "copy") as store:
        saved_units = [unit for unit in store.units() if isinstance(unit, Unit)]
    remaining_units = [unit for unit in units if unit.offset not in {torn.offset, flipped.offset}]
    assert [unit.body for unit in saved_units] == [unit.body for unit in remaining_units]
    assert [unit.offset for unit in saved_units[:100]] == [unit.offset for unit in units[:100]]
    assert saved_units[100].offset == torn.offset


def test_units_that_a_recovery_cut_off_stay_cut_off(golden, tmp_path, capsys):
    """Whole units remain after the end of a recovered log. A store that has been closed since ignores them."""
    source = tmp_path / "source"
    shutil.copytree(golden(CLEAN), source)
    with open_store(source) as store:
        units = [unit for unit in store.units() if isinstance(unit, Unit)]
        torn, file = units[-50], store.log.files[-1]
    data, position = bytearray(Path(file.path).read_bytes()), torn.offset - file.start_offset
    data[position : position + 20] = bytes(20)
    Path(file.path).write_bytes(data)
    (source / "abort").touch()
    assert main(["recover", str(source), "--apply", "--yes", "--quiet"]) == 0
    Path(file.path).write_bytes(data)  # RocketMQ's recovery leaves the bytes where they are
    capsys.readouterr()
    done = copied(capsys, source, tmp_path / "copy")
    assert (done["units"], done["maxOffset"]) == (len(units) - 50, torn.offset)
    with open_store(source) as store:
        assert sum(isinstance(item, Unit) for item in store.units()) == len(units) - 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_copy_leaves_no_files(golden, tmp_path, capsys, monkeypatch, error):
    calls = []

    def append_units(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise error
        return appended(*arguments)

    appended = copying.append_units
    monkeypatch.setattr(copying, "append_units", append_units)
    target = tmp_path / "copy"
    target.mkdir()
    assert main(["copy", str(golden(CLEAN)), str(target)]) == (130 if error is KeyboardInterrupt else 3)
    assert list(tmp_path.iterdir()) == [target]
    assert list(target.iterdir()) == []
    assert len(calls) == 3


def test_a_target_in_use_or_inside_the_source_is_refused(golden, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    assert main(["copy", str(golden(CLEAN)), str(tmp_path)]) == 2
    source = tmp_path / "source"
    shutil.copytree(golden("propcrc-5.3.3"), source)
    assert main(["copy", str(source), str(source / "inside")]) == 2
    assert main(["copy", str(source), str(tmp_path / "new"), "--where", "nonsense >"]) == 2
    assert main(["copy", str(source / "commitlog"), str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()


def test_the_copys_own_folders_are_never_the_sources(golden, tmp_path, capsys):
    """A broker.conf names the source's folders. The copy still uses folders below DST."""
    source = tmp_path / "source"
    shutil.copytree(golden("propcrc-5.3.3"), source)
    conf = write_conf(
        tmp_path / "broker.conf", {"storePathRootDir": source, "storePathCommitLog": source / "commitlog"}
    )
    copied(capsys, source, tmp_path / "copy", "--config", conf)
    assert list((tmp_path / "copy" / "commitlog").iterdir())


def test_lost_queues_are_distinguished_from_deleted_topics(golden, tmp_path, capsys):
    source = tmp_path / "source"
    shutil.copytree(golden(CLEAN), source)
    shutil.rmtree(source / "consumequeue" / "orders")
    assert copied(capsys, source, tmp_path / "one")["deletedTopics"] == ["orders"]
    (source / "abort").touch()
    assert copied(capsys, source, tmp_path / "two")["deletedTopics"] == []
    (source / "abort").unlink()
    shutil.rmtree(source / "consumequeue")
    assert copied(capsys, source, tmp_path / "three")["deletedTopics"] == []
