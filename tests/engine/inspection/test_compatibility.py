"""Answers about real stores: does a release start in a mode, what does it lose, what does it not read."""

from __future__ import annotations

import json
import shutil

import handmade_stores
import pytest

from engine.config import MessageStoreConfig
from engine.inspection.compatibility import CompatOptions, chosen_pair, compare, own_mode
from engine.inspection.snapshot import open_store
from engine.rules.compatibility import MODES

pytestmark = pytest.mark.golden


def answer(root, release, mode="files", configuration=None, config=None):
    options = CompatOptions(((release, MODES[mode]),), configuration)
    (result,) = compare(lambda: open_store(root, config), options)
    return result


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("clean-5.5.1", "files"),
        ("rocks-5.5.1", "rocksdb"),
        ("rocks-separate-5.5.1", "rocksdb"),
        ("combine-5.5.1", "combined"),
        ("rocksdb-tables-v2-5.5.1", "files-v2"),
    ],
)
def test_the_mode_of_a_store_is_seen(golden, name, mode):
    with open_store(golden(name)) as store:
        assert own_mode(store).name == mode
        assert chosen_pair(store, None) == ("5.5", MODES[mode])
        assert chosen_pair(store, {})[1].name == "files"


def test_a_clean_store_goes_on_and_loses_nothing(golden):
    result = answer(golden("clean-4.9.8"), "5.5")
    assert (result.verdict, result.exit_code, result.starts) == ("safe", 0, True)
    assert {setting.key for setting in result.settings} == {
        "mappedFileSizeCommitLog",
        "mappedFileSizeConsumeQueue",
        "maxHashSlotNum",
        "maxIndexNum",
    }


def test_the_ten_files_limit_is_a_loss_by_topic_and_a_setting(golden):
    """A start of 5.5.1 leaves 1,313 of 3,003 messages out of their queues; 5.3.3 builds all."""
    root = golden("queues-gone-past-ten-files-5.5.1")
    result = answer(root, "5.5")
    assert (result.verdict, result.messages_lost, result.exit_code) == ("loses", 1_313, 1)
    assert {topic.topic: topic.lost for topic in result.topics} == {
        "TopicA": 455,
        "orders": 437,
        "TopicB": 403,
        "SCHEDULE_TOPIC_XXXX": 18,
    }
    assert (result.settings[0].key, result.settings[0].value) == ("commitLogRecoverMaxNum", "17")
    assert answer(root, "5.3").verdict == "safe"
    config = MessageStoreConfig(commit_log_recover_max_num=17, given=frozenset({"commitLogRecoverMaxNum"}))
    assert answer(root, "5.5", config=config).verdict == "safe"


def test_a_new_rocksdb_lacks_the_message_at_offset_0_after_a_clean_stop(golden):
    """5.5.1 and 5.4.0 dispatch the units behind the end of dispatch, which is 0 in a new RocksDB."""
    result = answer(golden("clean-5.5.1"), "5.5", "rocksdb")
    assert (result.messages_lost, result.exit_code) == (1, 1)
    assert sum(topic.entries_added for topic in result.topics) == 2_933


def test_losses_of_queues_that_are_written_twice_are_not_known(golden):
    """5.5.1 looked further back for its RocksDB: a queue whose files were gone got 52 messages that nobody expected."""
    result = answer(golden("queues-gone-past-ten-files-5.5.1"), "5.5", "combined")
    assert result.verdict == "loses"
    assert any("how many messages are lost" in text for text in result.unknown)
    assert answer(golden("clean-5.5.1"), "5.5", "combined").unknown == ()
    preferred = {"rocksdbCQDoubleWriteEnable": "true", "combineCQPreferCQType": "defaultRocksDB"}
    unknown = answer(golden("clean-5.5.1"), "5.5", "combined", preferred).unknown
    assert any("combineCQPreferCQType" in sentence for sentence in unknown)
    assert answer(golden("clean-5.5.1"), "5.5", "files", preferred).unknown == ()


def test_offsets_of_version_0_are_not_taken_over_by_a_rocksdb(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("clean-5.5.1"), root)
    (root / "config").mkdir(exist_ok=True)
    for counter, kinds in ((0, {"offsets"}), (1, set())):
        table = {"offsetTable": {"Orders@billing": {"0": 5}}, "dataVersion": {"counter": counter}}
        (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
        assert {item.kind for item in answer(root, "5.5", "rocksdb").hidden} == kinds


def test_queues_of_a_rocksdb_are_built_again_in_files(golden):
    result = answer(golden("rocks-5.5.1"), "5.5")
    assert (result.verdict, sum(topic.entries_added for topic in result.topics)) == ("safe", 1_850)
    assert any("builds them again" in note for note in result.notes)
    assert answer(golden("rocks-5.5.1"), "5.5", "rocksdb").verdict == "safe"


def test_tables_in_a_rocksdb_are_not_read_by_a_broker_with_json_tables(golden):
    result = answer(golden("rocksdb-orders-5.5.1"), "5.5")
    assert {item.kind: item.count for item in result.hidden} == {"topics": 24, "groups": 13, "offsets": 5}
    assert answer(golden("rocksdb-orders-5.5.1"), "5.5", "rocksdb").verdict == "safe"


def test_rows_of_messages_are_counted_where_a_release_does_not_read_them(golden):
    counts = {item.kind: item.count for item in answer(golden("rocksdb-rows-5.5.1"), "4.9").hidden}
    assert (counts["timerRows"], counts["transactionRows"], counts["popRows"]) == (
        3,
        3,
        6,
    )  # two more timers are delivered already


def test_5_3_fills_a_new_rocksdb_as_later_releases_do(golden):
    """It was called unknown; the real 5.3.3 lacks the message at offset 0 after a clean stop, too."""
    result = answer(golden("clean-5.5.1"), "5.3", "rocksdb")
    assert (result.verdict, result.starts, result.messages_lost, result.exit_code) == ("loses", True, 1, 1)


def test_a_configuration_without_the_size_of_the_log_does_not_start(golden):
    result = answer(golden("clean-5.5.1"), "5.5", configuration={"brokerName": "a"})
    assert (result.verdict, result.exit_code) == ("refused", 3)
    assert "mappedFileSizeCommitLog=1048576" in result.message


def test_a_folder_in_the_log_stops_4_9_only(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("clean-4.9.8"), root)
    (root / "commitlog" / "lost+found").mkdir()
    assert answer(root, "4.9").verdict == "refused"
    assert answer(root, "5.5").verdict == "safe"


def test_index_entries_that_are_not_built_again_are_counted(golden, tmp_path):
    """After a crash without a checkpoint every index file goes; with a limit of one file the units of one are
    dispatched.
    """
    with open_store(golden("clean-5.5.1")) as store:
        removed = sum(reader.last_entry for reader in store.index_files())
    root = tmp_path / "store"
    shutil.copytree(golden("clean-5.5.1"), root)
    (root / "abort").write_text("4711")
    (root / "checkpoint").unlink()
    config = MessageStoreConfig(commit_log_recover_max_num=1, given=frozenset({"commitLogRecoverMaxNum"}))
    result = answer(root, "5.4", config=config)
    assert result.index_entries_removed == removed
    assert 0 < result.index_entries_lost < removed
    assert result.verdict == "loses"


def test_a_lost_log_is_a_loss(tmp_path):
    root = handmade_stores.healthy().write(tmp_path / "store")
    for file in (root / "commitlog").iterdir():
        file.unlink()
    result = answer(root, "5.5")
    assert result.verdict == "loses"
    assert result.plan.empty_log is not None
