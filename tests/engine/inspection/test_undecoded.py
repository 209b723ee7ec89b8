"""RocksDB folders and DLedger logs in a store are recognised by their contents, reported by ``info``, and never
decoded.
"""

from __future__ import annotations

import shutil
import struct

import agree
import pytest
from handmade_stores import healthy, unit_bytes

from engine.cli.main import main
from engine.codec.dledger import EntryHeader, encode_header
from engine.errors import UsageError
from engine.inspection import open_store, undecoded
from engine.inspection.undecoded import refuse_undecoded_modes, refused_by_releases, undecoded_modes
from engine.inspection.where.evidence import where
from engine.rules.undecoded import MODES


@pytest.fixture
def root(tmp_path):
    return healthy(4).write(tmp_path / "store")


def put(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        (folder / name.replace("_", "-", 1).replace("__", ".")).write_bytes(file)


def rocksdb_in(folder):
    put(folder, CURRENT=b"MANIFEST-000004\n", MANIFEST_000004=b"m" * 30)
    (folder / "000007.sst").write_bytes(b"s" * 700)
    (folder / "000008.log").write_bytes(b"l" * 80)


def test_a_store_without_undecoded_parts_has_no_notes(root):
    with open_store(root) as store:
        assert undecoded.notes(store) == []
        assert not undecoded.rocksdb_queues(store)


def test_rocksdb_queues_are_a_flavour_and_a_note(root):
    rocksdb_in(root / "consumequeue")
    info = agree.records_of("info", root)[0]
    assert "rocksdbCq" in info["flavour"]
    (note,) = [note for note in info["notes"] if "RocksDB" in note]
    assert note.startswith(
        "The folder consumequeue holds a RocksDB of consume queues: 1 table file with 700 bytes, 1 write-ahead"
    )


@pytest.mark.parametrize(
    ("folder", "purpose"),
    [("kvStore", "popped messages"), ("config/rdb", "topics, subscription groups, consumer offsets")],
)
def test_other_rocksdb_folders_are_notes_and_leave_the_queues_alone(root, folder, purpose):
    rocksdb_in(root / folder)
    with open_store(root) as store:
        assert [part.folder for part in store.undecoded] == [folder]
        assert purpose in undecoded.notes(store)[0]
        assert not undecoded.rocksdb_queues(store)


def test_a_rocksdb_of_unknown_content_may_hold_the_queues(tmp_path):
    """Without queue files CQ10 said that the next start dispatches all messages again, although the store has an unread
    RocksDB in a folder of an unknown name.
    """
    handmade = healthy(4)
    root = handmade.write(tmp_path / "store", queues=False)
    assert "CQ10" in [record.get("id") for record in agree.records_of("check", root)]
    rocksdb_in(root / "mycq")
    records = agree.records_of("check", root)
    ids = [record["id"] for record in records if record["type"] == "finding"]
    assert "DK02" in ids
    assert not [rule for rule in ids if rule.startswith("CQ")]
    assert records[-1]["complete"] is False
    assert "the queues may be in a RocksDB (mycq/)" in agree.records_of("info", root)[0]["unknown"]["queues"]
    with open_store(root) as store:
        (result,) = where(store, str(handmade.units[0].offset))
    assert result.verdict not in {"notInQueue", "notYetDispatched", "neverSeen"}
    assert "the queues may be in a RocksDB (mycq/)" in " ".join(evidence.holds for evidence in result.evidence)


def test_a_rocksdb_of_unknown_content_beside_queue_files_leaves_the_queues_alone(root):
    rocksdb_in(root / "mycq")
    with open_store(root) as store:
        assert store.undecoded_part("queues") is None
        assert store.topics()


def test_a_lone_file_called_current_is_no_rocksdb(root):
    put(root / "consumequeue", CURRENT=b"no manifest")
    info = agree.records_of("info", root)[0]
    assert "rocksdbCq" not in info["flavour"]


def test_a_dledger_log_is_sized_and_its_first_entry_named(root):
    body = unit_bytes("Orders", 0, 0, 0, 1_700_000_000_000)
    header = EntryHeader(1, 48 + len(body), 7, 3, 0, 0, 0, 0, len(body))
    data = encode_header(header) + body
    for part, file_bytes in (("data", data), ("index", struct.pack(">iqqii", 1, 0, 7, len(data), 3).ljust(32, b"\0"))):
        folder = root / "dledger-n0" / part
        folder.mkdir(parents=True)
        (folder / f"{0:020d}").write_bytes(file_bytes)
    info = agree.records_of("info", root)[0]
    assert "dledger" in info["flavour"]
    assert info["dledger"]["firstIndex"] == info["dledger"]["lastIndex"] == 7
    assert (info["dledger"]["member"], info["dledger"]["lastTerm"]) == ("n0", 3)
    assert info["maxOffset"] == len(data)
    shutil.copytree(root / "dledger-n0", root / "dledger-n1")
    notes = [note for note in agree.records_of("info", root)[0]["notes"] if "DLedger" in note]
    assert notes[0].startswith("DLedger log of member n0: 1 data file")
    assert "oldest entry 7 of term 3. There is another DLedger log: dLegerSelfId" in notes[0]


def test_a_recovery_plan_names_the_parts_it_leaves_out(root):
    (root / "dledger-n0").mkdir()
    plan = next(record for record in agree.records_of("recover", root, "--plan") if record["type"] == "recoveryPlan")
    (note,) = plan["notes"]
    assert note.endswith("This plan leaves it out.")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.key)
def test_writing_commands_refuse_each_undecoded_mode(mode, tmp_path, capsys):
    """``serve --config`` printed "without effect here", and served a store without the broker's tables."""
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerName=a\n{mode.key}={mode.value}\n")
    assert [undecoded_mode.key for undecoded_mode in undecoded_modes(conf)] == [mode.key]
    with pytest.raises(UsageError, match=f"{mode.key}={mode.value} means {mode.content}"):
        refuse_undecoded_modes(conf)
    for words in (
        ["serve", "STORE", "--port", "0", "--namesrv-port", "0"],
        ["put", "STORE", "--topic", "Orders", "--body", "tea", "--yes"],
    ):
        requested_words = [str(tmp_path / "new") if word == "STORE" else word for word in words]
        assert main([*requested_words, "--config", str(conf)]) in (2, 3)
        assert mode.key in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_rocksdb_of_pops_that_is_only_opened_is_no_reason_to_refuse(tmp_path):
    """``serve`` did not start with the settings of RocketMQ's own tests; the other key alone stores rows there."""
    conf = tmp_path / "broker.conf"
    conf.write_text("popConsumerKVServiceInit=true\n")
    refuse_undecoded_modes(conf)
    conf.write_text("popConsumerKVServiceInit=true\npopConsumerKVServiceEnable=true\n")
    with pytest.raises(UsageError, match="popConsumerKVServiceEnable=true"):
        refuse_undecoded_modes(conf)


def test_a_configuration_of_file_queues_is_accepted(tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("storeType=default\nindexFileWriteEnable=true\nconfigManagerVersion=v1\n")
    assert undecoded_modes(conf) == []
    assert undecoded_modes(None) == []
    refuse_undecoded_modes(conf)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("rocksdbCQDoubleWriteEnable=true\n", True),
        ("rocksdbCQDoubleWriteEnable=true\ncombineCQUseRocksdbForLmq=true\n", False),
        ("rocksdbCQDoubleWriteEnable=false\n", False),
        ("", False),
    ],
)
def test_settings_with_which_5_5_does_not_start_are_reported(text, refused, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text(text)
    assert (refused_by_releases(conf) is not None) is refused
    assert refused_by_releases(None) is None


@pytest.mark.golden
def test_the_note_on_queues_in_a_rocksdb_beside_files_names_the_command_that_compares_them(golden):
    """It said that the queues in the RocksDB are not listed."""
    pytest.importorskip("rocksdict")
    with open_store(golden("combine-5.5.1")) as store:
        (note,) = (note for note in undecoded.notes(store) if "file queues" in note)
    assert "not decoded" not in note
    assert note.endswith("The command queue --both compares the two.")
