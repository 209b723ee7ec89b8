"""mqadmin's commands about a cluster say what mqadmin 5.5.0 said of a real 5.5.0 broker with the same store
(``mqadmin-5.5.0.txt.xz``).
"""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Iterator
from pathlib import Path

import agree
import golden_stores
import made_rocksdb
import mqadmin_texts
import pytest
from handmade_stores import healthy
from served_stores import responses_of, served

from engine.remoting.codes import RequestCode
from engine.remoting.frame import Command

STORE = "broker-orders-5.5.1"
CONF = (
    "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
    "brokerClusterName=PeerCluster\n"
)
with lzma.open(golden_stores.GOLDEN / STORE / "mqadmin-5.5.0.txt.xz", "rt", encoding="utf-8") as _file:
    REAL = mqadmin_texts.outputs_by_command(_file.read())


@pytest.fixture(scope="module")
def cluster(golden, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A broker of ours on a copy of the store, in controller mode, with epochs of two masters."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(golden(STORE), folder / "store")
    (folder / "store" / "epochFileCheckpoint").write_text("2\n0\n1-0\n3-50000\n")
    conf = folder / "broker.conf"
    conf.write_text(CONF + "enableControllerMode=true\n")
    with served(folder / "store", "--no-backup", "--config", str(conf), "--release", "5.5") as (_, addresses):
        yield addresses


def records_of(cluster: dict[str, str], *arguments: object) -> list[dict]:
    words = [cluster.get(str(word), word) for word in arguments]
    return [record for record in agree.records_of(*words) if record["type"] != "unread"]


def test_the_figures_of_a_broker_are_those_of_the_real_one(cluster) -> None:
    real = mqadmin_texts.figures(REAL["brokerStatus -b BROKER"])
    ours = mqadmin_texts.records_as_rows("brokerStatus", records_of(cluster, "brokerStatus", "-b", "broker"))
    assert ours.keys() - mqadmin_texts.OWN_FIGURES == real.keys() - mqadmin_texts.LEFT_OUT_FIGURES
    compared = [name for name in real.keys() & ours if not mqadmin_texts.FIGURES_THAT_DIFFER.fullmatch(name)]
    assert {name: ours[name] for name in compared} == {name: real[name] for name in compared}
    assert len(compared) > 30
    of_cluster = records_of(cluster, "brokerStatus", "-n", "namesrv", "-c", "PeerCluster")
    assert mqadmin_texts.records_as_rows("brokerStatus", of_cluster).keys() == ours.keys()


@pytest.mark.parametrize("options", [[], ["-a"], ["-t", "OrderEvents"]], ids=str)
def test_statistics_are_those_of_mqadmin(cluster, options: list[str]) -> None:
    real = mqadmin_texts.statistics(REAL[" ".join(["statsAll", *options])])
    records = records_of(cluster, "statsAll", "-n", "namesrv", *options)
    assert mqadmin_texts.records_as_rows("statsAll", records) == real
    assert bool(real) == (options != ["-a"])


def test_topics_are_those_of_mqadmin(cluster, golden) -> None:
    names = {record["topic"] for record in records_of(cluster, "topicList", "-n", "namesrv")}
    assert names - {"%RETRY%TOOLS_CONSUMER"} == set(REAL["topicList"])
    records = records_of(cluster, "topicList", "-n", "namesrv", "-c")
    rows = mqadmin_texts.topics_with_groups(REAL["topicList -c"])
    assert mqadmin_texts.records_as_rows("topicList", records) == rows
    of_store = records_of(cluster, "topicList", "-s", golden(STORE), "-c")
    assert {record["topic"] for record in of_store} <= names
    groups = {(record["topic"], record["group"]) for record in of_store if not record["topic"].startswith("%")}
    assert groups == {row[1:] for row in rows if row[1] in {topic for topic, _ in groups}}


CONSUMED = [line for line in REAL if line.startswith("consumeMessage") and mqadmin_texts.messages(REAL[line])]


@pytest.mark.parametrize("line", CONSUMED)
def test_messages_are_those_that_mqadmin_consumes(line: str, cluster, golden) -> None:
    real = mqadmin_texts.messages(REAL[line])
    name, *options = line.split()
    for source in (["-n", "namesrv"], ["--store", golden(STORE)]):
        records = records_of(cluster, name, *source, *options)
        assert mqadmin_texts.records_as_rows(name, records) == real
    assert real


def test_messages_are_chosen_by_time(cluster, golden) -> None:
    (_, _, _, _, begin, _), *_, (_, _, _, _, end, _) = mqadmin_texts.messages(REAL["consumeMessage -t AuditTrail"])[
        5:20
    ]
    for source in (["-n", "namesrv"], ["--store", golden(STORE)]):
        records = records_of(cluster, "consumeMessage", *source, "-t", "AuditTrail", "-s", begin, "-e", end)
        times = [record["storeTimestamp"] for record in records]
        assert min(times) == begin
        assert max(times) <= end


def test_a_question_for_nothing_is_refused(cluster, golden) -> None:
    for words, status, text in (
        (["consumeMessage", "-t", "Nowhere"], 2, "no such queue of topic Nowhere"),
        (["consumeMessage", "-t", "OrderEvents", "-o", "3"], 2, "needs the queue: -i"),
        (["consumeMessage", "-t", "OrderEvents", "-i", "0", "-o", "99999"], 1, "no message of OrderEvents"),
        (["statsAll", "-t", "Nowhere"], 2, "no topic Nowhere"),
        (["getBrokerEpoch", "-b", "broker-b"], 2, "no such broker; they know: PeerCluster/broker-a"),
    ):
        outcome = agree.command(*words, "-n", cluster["namesrv"])
        assert (outcome[0], text in outcome[2]) == (status, True), outcome
    status, _, error = agree.command("brokerStatus", "-b", "127.0.0.1:1")
    assert (status, error.count("\n")) == (3, 1)
    status, _, error = agree.command("getBrokerEpoch", "-s", golden(STORE))
    assert (status, "no epochs" in error) == (1, True)


def test_epochs_come_from_the_file_of_the_store(cluster) -> None:
    """The last epoch ends at the end of the log, as mqadmin shows it. Replicas do not see controller mode: they would
    refuse to follow our HA port, which has no terms.
    """
    records = records_of(cluster, "getBrokerEpoch", "-n", "namesrv", "-b", "broker-a")
    rows = [(record["epoch"], record["startOffset"], record["endOffset"]) for record in records]
    assert rows == [(1, 0, 50_000), (3, 50_000, 2_434_091)]
    assert (
        b"enableControllerMode" not in responses_of(cluster["broker"], Command(RequestCode.GET_BROKER_CONFIG))[0].body
    )
    of_store = records_of(cluster, "getBrokerEpoch", "-s", cluster["store"])
    assert [(record["epoch"], record["startOffset"], record["endOffset"]) for record in of_store] == rows


def test_a_broker_with_queues_of_one_kind_has_nothing_to_check(cluster) -> None:
    (record,) = records_of(cluster, "checkRocksdbCqWriteProgress", "-n", "namesrv", "-c", "PeerCluster")
    assert (record["checkStatus"], record["checkResult"]) == ("ok", "It is not CombineConsumeQueueStore, no need check")


def test_a_rocksdb_that_lacks_entries_is_named(tmp_path: Path) -> None:
    made_rocksdb.binding()
    made = healthy(60)
    root = made.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(made))
    command = ("checkRocksdbCqWriteProgress", "-s", root, "-cf", "0")
    (record,) = agree.records_of(*command)
    assert (record["type"], record["checkStatus"]) == ("cqWriteProgress", "ok")
    topic_count = record["checkResult"].rpartition(" ")[2]
    assert record["checkResult"].startswith("check all topic finish, all topic is ready, checkSize: ")
    rows = made_rocksdb.QueueRows(root / "consumequeue_rocksdb")
    rows.change_entry("Orders", 0, 3, size=7)
    rows.write()
    progress, difference = agree.records_of(*command)
    equal_count = int(topic_count) - 1
    assert progress["checkStatus"] == "notOk"
    assert f"success/all : {equal_count}/{topic_count}" in progress["checkResult"]
    assert (difference["topic"], difference["queueId"], difference["queueOffset"]) == ("Orders", 0, 3)
    (of_another_topic,) = agree.records_of(*command, "-t", "nowhere")
    assert of_another_topic["checkStatus"] == "ok"
    late = 1 << 60
    assert agree.records_of(*command[:-1], late)[0]["checkStatus"] == "ok"


def test_a_store_with_queues_of_one_kind_is_refused(golden) -> None:
    status, _, error = agree.command("checkRocksdbCqWriteProgress", "-s", golden(STORE))
    assert (status, "found only one of them" in error) == (3, True)
