"""A broker over a store with tiered storage answers as the real broker did (``tests/golden/tiered-5.5.1``)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario
from tiered_stores import move_tiered_storage_out

from engine.codec.message import Unit, decode
from engine.config import MessageStoreConfig

pytestmark = pytest.mark.golden
STORE = "tiered-5.5.1"
SIZES = MessageStoreConfig(
    mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=6000, max_hash_slot_num=100, max_index_num=400
)


def units_of(body: bytes) -> list[Unit]:
    units, position = [], 0
    while position < len(body):
        units.append(decode(body, position, 0))
        position += units[-1].size
    return units


@pytest.fixture
def root(golden, tmp_path) -> Path:
    return shutil.copytree(golden(STORE), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))


def test_pulls_bounds_and_times_are_answered_as_the_real_broker_did(root, golden_account):
    """A consumer of deleted messages was sent on to the first one in the log: it lost them without a word."""
    lines = list(golden_account(STORE, "truth.jsonl.xz"))

    async def scenario() -> None:
        async with asking_broker(root, store_config=SIZES, release="5.5") as client:
            for line in lines:
                queue = {"topic": line["topic"], "queueId": line["queueId"]}
                if line["kind"] == "pull":
                    answer = await client.pull(line["topic"], line["offset"], line["queueId"])
                    ours = [(unit.queue_offset, unit.unique_key) for unit in units_of(answer.body)]
                    theirs = [(offset, key) for offset, key, _ in line["messages"]]
                    assert answer.code == (0 if theirs else 19), line
                    assert ours[: len(theirs)] == theirs
                    assert (int(answer.fields["minOffset"]), int(answer.fields["maxOffset"])) == (
                        line["min"],
                        line["max"],
                    )
                elif line["kind"] == "searchOffset":
                    times = {"timestamp": line["timestamp"], "boundaryType": line["boundary"]}
                    answer = await client.ask(29, **queue, **times)
                    assert int(answer.fields["offset"]) == line["offset"], line
                elif line["kind"] == "earliest":
                    answer = await client.ask(32, **queue)
                    assert int(answer.fields["timestamp"]) == line["timestamp"], line

    run_scenario(scenario)


def test_messages_are_found_by_key_and_filtered_by_tag(root, golden_account):
    sends = [line for line in golden_account(STORE, "truth.jsonl.xz") if line["kind"] == "send"]

    async def scenario() -> None:
        async with asking_broker(root, store_config=SIZES, release="5.5") as client:
            for send in sends[::90]:
                times = {"maxNum": 32, "beginTimestamp": 0, "endTimestamp": 1 << 62}
                answer = await client.ask(12, topic=send["topic"], key=send["key"], **times)
                (unit,) = units_of(answer.body)
                assert (unit.queue_id, unit.queue_offset) == (send["queueId"], send["offset"])
            matching = await client.pull("Orders", 0, subscription="B", expressionType="TAG")
            other = await client.pull("Orders", 0, subscription="A", expressionType="TAG")
            assert {unit.tags for unit in units_of(matching.body)} == {"B"}
            assert (other.code, other.fields["nextBeginOffset"]) == (20, "120")

    run_scenario(scenario)


def test_new_messages_follow_behind_those_in_tiered_storage(root):
    async def scenario() -> None:
        async with asking_broker(root, store_config=SIZES, release="5.5") as client:
            answer = await client.send("Orders", b"new", 0)
            assert answer.fields["queueOffset"] == "120"
            client.server.broker.store.wait_dispatched()
            old, new = await client.pull("Orders", 50), await client.pull("Orders", 120)
            assert units_of(old.body)[0].queue_offset == 50
            assert units_of(new.body)[0].body == b"new"

    run_scenario(scenario)


def test_files_of_tiered_storage_that_are_not_here_are_named(golden, tmp_path, caplog):
    root = move_tiered_storage_out(golden(STORE), tmp_path)

    async def scenario() -> None:
        async with asking_broker(root, store_config=SIZES, release="5.5") as client:
            answer = await client.pull("Orders", 0)
            assert (answer.code, answer.fields["nextBeginOffset"]) == (21, "111")

    run_scenario(scenario)
    assert "tieredStoreFilePath" in caplog.text
