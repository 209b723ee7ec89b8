"""RocketMQ's own mqadmin prints the same about a store with its own broker and with ours."""

from __future__ import annotations

import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import agree
import mqadmin_texts
import pytest
import real_cluster
from served_stores import served

pytestmark = [pytest.mark.peer, pytest.mark.golden, pytest.mark.timeout(300)]
CONF = (
    "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
    "brokerClusterName=PeerCluster\n"
)
COMMANDS = """\
topicRoute -t OrderEvents
topicStatus -t OrderEvents
topicClusterList -t OrderEvents
allocateMQ -t OrderEvents -i a,b,c
consumerProgress
consumerProgress -g billing
consumerConnection -g billing
producerConnection -g shop -t OrderEvents
getConsumerConfig -g billing
updateTopic -b BROKER -t NewTopic -r 3 -w 3
topicRoute -t NewTopic
updateTopicPerm -b BROKER -t NewTopic -p 4
topicStatus -t NewTopic
updateSubGroup -b BROKER -g newgroup -r 5
getConsumerConfig -g newgroup
queryMsgByOffset -t OrderEvents -b broker-a -i 0 -o 1
queryCq -t OrderEvents -q 0 -i 1 -c 2 -b BROKER
updateTopicPerm -b BROKER -t NewTopic -p 6
resetOffsetByTime -g billing -t OrderEvents -s -1
consumerProgress -g billing
resetOffsetByTime -g billing -t OrderEvents -s now -q 0 -b broker-a -o 3
skipAccumulatedMessage -g billing -t OrderEvents
cloneGroupOffset -s billing -d newgroup -t OrderEvents
consumerProgress -g newgroup
setConsumeMode -b BROKER -t OrderEvents -g billing -m POP
setConsumeMode -b BROKER -t Nowhere -g billing -m POP
brokerConsumeStats -b BROKER
statsAll -t OrderEvents
getBrokerEpoch -b broker-a
consumeMessage -t OrderEvents -c 3
checkRocksdbCqWriteProgress -c PeerCluster -n NAMESRV
haStatus -b BROKER
cleanExpiredCQ -b BROKER
cleanUnusedTopic -b BROKER
deleteExpiredCommitLog -b BROKER
deleteTopic -c PeerCluster -t NewTopic
deleteSubGroup -b BROKER -g newgroup
updateBrokerConfig -b BROKER -k transactionCheckMax -v 7
"""
UNUSUAL = """\
topicRoute -t Nowhere
topicStatus -t Nowhere
topicStatus -t TBW102
topicClusterList -t Nowhere
topicList
topicList -c
consumerProgress -g Nowhere
consumerProgress -g billing -t Nowhere
consumerConnection -g Nowhere
producerConnection -g Nowhere -t OrderEvents
producer -b BROKER
getConsumerConfig -g Nowhere
updateTopic -b BROKER -t bad!name
updateTopic -b BROKER -t TBW102
updateTopic -b BROKER -t rmq_sys_x
updateTopic -b BROKER -t Odd -a +nope=1
updateTopic -b BROKER -t Odd -a +message.type=FIFO
updateTopicPerm -b BROKER -t Nowhere -p 4
updateTopicPerm -c PeerCluster -t OrderEvents -p 6
updateSubGroup -b BROKER -g a!b
updateSubGroup -b BROKER -g newgroup2 -s false -m false -d false -q 0 -r -1 -i 1 -w 2 -a true
getConsumerConfig -g newgroup2
setConsumeMode -b BROKER -t OrderEvents -g nowhere2 -m PULL
deleteSubGroup -b BROKER -g Nowhere2
deleteTopic -c PeerCluster -t Nowhere
deleteTopic -c PeerCluster -t TBW102
queryMsgById -i 7F00000100002A9F0000000000000000 -t OrderEvents
queryMsgById -i nonsense -t OrderEvents
queryMsgByKey -t OrderEvents -k nokey
queryMsgByKey -t Nowhere -k nokey
queryMsgByOffset -t OrderEvents -b broker-a -i 0 -o 999999
queryMsgByOffset -t OrderEvents -b broker-b -i 0 -o 0
queryMsgByOffset -t Nowhere -b broker-a -i 9 -o 0
queryCq -t OrderEvents -q 99 -i 1 -c 2 -b BROKER
queryCq -t OrderEvents -q 0 -i 99999 -c 2 -b BROKER
queryCq -t OrderEvents -q 0 -i 0 -c 2 -b BROKER -g billing
queryCq -t Nowhere -q 0 -i 1 -c 2 -b BROKER
resetOffsetByTime -g Nowhere -t OrderEvents -s -1
resetOffsetByTime -g billing -t Nowhere -s now
resetOffsetByTime -g billing -t OrderEvents -s nonsense
resetOffsetByTime -g billing -t OrderEvents -s now -q 99 -b broker-a -o 3
resetOffsetByTime -g billing -t OrderEvents -s now -q 0 -b broker-a -o 999999
resetOffsetByTimeOld -g billing -t OrderEvents -s 0 -f true
skipAccumulatedMessage -g Nowhere -t OrderEvents
skipAccumulatedMessage -g billing -t Nowhere
cloneGroupOffset -s Nowhere -d newgroup -t OrderEvents
cloneGroupOffset -s billing -d newgroup -t Nowhere
brokerConsumeStats -b BROKER -l 99999999
brokerConsumeStats -b BROKER -o true
statsAll -t Nowhere
cleanUnusedTopic -c PeerCluster
updateBrokerConfig -b BROKER -k nonsuch -v 7
sendMessage -t Nowhere2 -p hello -i 99 -b broker-a
sendMessage -t OrderEvents -p hello -i 99 -b broker-a
sendMessage -t OrderEvents -p hello -i 0 -b broker-b
updateOrderConf -t OrderEvents -m get
getColdDataFlowCtrInfo -b BROKER
updateColdDataFlowCtrGroupConfig -b BROKER -g g1 -v 100
getColdDataFlowCtrInfo -b BROKER
removeColdDataFlowCtrGroupConfig -b BROKER -g nope
setCommitLogReadAheadMode -b BROKER -m 1
setCommitLogReadAheadMode -b BROKER -m 0
setCommitLogReadAheadMode -b BROKER -m 9
listUser -b BROKER
getUser -b BROKER -u x
createUser -b BROKER -u x -p y
queryMsgByKey -t OrderEvents -k K1 -b 0 -e 1 -m 2
"""
"""What is not there, or no such thing: topics, groups, queues, keys, brokers, values."""
_CHANGING = re.compile(r"127\.0\.0\.1:\d+|\d{4}-\d\d-\d\d[ #][\d:,.]+|\d{13}")
"""Times."""
_LOGS = re.compile(r"\d\d:\d\d:\d\d,\d+ \|-")


def mqadmin_outputs(namesrv: str, broker: str, commands: str) -> dict[str, list[str]]:
    """Return the output of each command by the command, without the parts that must differ."""
    words = commands.replace("BROKER", broker).replace("NAMESRV", namesrv)
    out = real_cluster.mqadmin(namesrv, words).replace(namesrv, "NAMESRV")
    lines_by_command: dict[str, list[str]] = {}
    for number, text in enumerate(out.split("### ")[1:]):
        lines = [line.rstrip() for line in text.replace(broker, "BROKER").splitlines() if not _LOGS.match(line)]
        lines_by_command[f"{number} {lines[0]}"] = [_CHANGING.sub("TIME", line) for line in lines[1:]]
        if lines[0].startswith(("brokerConsumeStats", "topicList")):
            lines_by_command[f"{number} {lines[0]}"].sort()  # in the order of a hash map
    return lines_by_command


@pytest.mark.parametrize(
    "commands",
    [pytest.param(COMMANDS, id="usual"), pytest.param(UNUSUAL, marks=pytest.mark.clients_full, id="unusual")],
)
def test_every_command_prints_the_same_as_with_a_real_broker(commands: str, golden, tmp_path: Path) -> None:
    """Both brokers are asked at once: each command waits for a second or more until its client ends."""
    store = golden("broker-orders")
    for side in ("real", "ours"):
        shutil.copytree(store, tmp_path / side / "store")
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    conf = tmp_path / "broker.conf"
    conf.write_text(CONF)
    with (
        real_cluster.real(tmp_path / "real", *ports, "--small") as real,
        served(tmp_path / "ours" / "store", "--no-backup", "--config", str(conf), "--release", "5.3") as (
            process,
            our_broker,
        ),
    ):
        with ThreadPoolExecutor(2) as executor:
            requests = [
                executor.submit(mqadmin_outputs, addresses["namesrv"], addresses["broker"], commands)
                for addresses in (real, our_broker)
            ]
            theirs, ours = (future.result() for future in requests)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert len(theirs) == len(commands.splitlines())
    assert ours == theirs


READING = """\
statsAll
statsAll -a
topicList
topicList -c
consumeMessage -t OrderEvents -c 3
consumeMessage -t OrderEvents -b broker-a -i 1 -o 5 -c 40
checkRocksdbCqWriteProgress -c PeerCluster -n NAMESRV
getBrokerEpoch -b broker-a
"""


OWN_RETRY_TOPIC = {"%RETRY%TOOLS_CONSUMER"}
"""Made by mqadmin's consumer."""


@pytest.mark.clients_full
def test_our_commands_and_mqadmin_5_5_show_the_same_of_both_brokers(golden, tmp_path: Path) -> None:
    """A message is sent and consumed by mqadmin first, so that there is something in the statistics."""
    store = golden("broker-orders-5.5.1")
    for side in ("real", "ours"):
        shutil.copytree(store, tmp_path / side / "store")
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    conf = tmp_path / "broker.conf"
    conf.write_text(CONF)
    with (
        real_cluster.real(tmp_path / "real", *ports, "--small", release="5.5.0") as real,
        served(tmp_path / "ours" / "store", "--no-backup", "--config", str(conf), "--release", "5.5") as (_, ours),
    ):
        values = {side: _values(addresses) for side, addresses in (("real", real), ("ours", ours))}
    for side, shown in values.items():
        assert shown.of_ours.keys() == shown.of_mqadmin.keys()
        for line, of_mqadmin in shown.of_mqadmin.items():  # one by one: a failure names the figure
            assert shown.of_ours[line] == of_mqadmin, f"{side} {line}"
        before, of_ours, after = shown.figures
        assert before.keys() == of_ours.keys() == after.keys(), side
        for name, value in of_ours.items():
            assert _is_between(before[name], value, after[name]), f"{side} {name}: {value}"
    real_values, our_values = values["real"], values["ours"]
    assert real_values.of_mqadmin == our_values.of_mqadmin
    assert real_values.unchanged_figures() == our_values.unchanged_figures()


class _Shown(NamedTuple):
    """What mqadmin shows of a broker, and what our commands show, by command line, without what must differ.
    ``figures``: those of brokerStatus by mqadmin, by us, and once more by mqadmin: a broker that works by itself may
    change one between two askings.
    """

    of_mqadmin: dict[str, object]
    of_ours: dict[str, object]
    figures: tuple[dict[str, str], dict[str, str], dict[str, str]]

    def unchanged_figures(self) -> dict[str, str]:
        """The figures of brokerStatus, without the values that changed meanwhile."""
        before, _, after = self.figures
        return {name: value if after[name] == value else "" for name, value in before.items()}


def _is_between(before: str, value: str, after: str) -> bool:
    """Return True if a figure that was ``before`` and is ``after`` may have been ``value`` between the two."""
    if value in (before, after):
        return True
    try:
        return before != after and min(float(before), float(after)) <= float(value) <= max(float(before), float(after))
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("before", "value", "after", "may_be"),
    [
        ("0", "0", "0", True),
        ("1", "2", "3", True),
        ("false", "true", "true", True),
        ("0", "1", "0", False),
        ("1", "4", "3", False),
        ("false", "other", "true", False),
    ],
)
def test_a_figure_that_changes_meanwhile_is_compared_with_both_values(
    before: str, value: str, after: str, may_be: bool
) -> None:
    """A comparison failed once because a figure of the real broker changed between mqadmin's asking and ours."""
    assert _is_between(before, value, after) is may_be


def _values(addresses: dict[str, str]) -> _Shown:
    namesrv, broker = addresses["namesrv"], addresses["broker"]
    real_cluster.mqadmin(namesrv, "sendMessage -t OrderEvents -p hello -i 0 -b broker-a\n", "5.5.0")
    before = _figures_by_mqadmin(namesrv, broker)
    commands = READING.replace("NAMESRV", namesrv)
    outputs = mqadmin_texts.outputs_by_command(real_cluster.mqadmin(namesrv, commands, "5.5.0"))
    readers = {
        "statsAll": lambda lines: {row[:3] + row[5:] for row in mqadmin_texts.statistics(lines)},
        "topicList": lambda lines: (
            mqadmin_texts.topics_with_groups(lines) if lines[0][0] == "#" else set(lines) - OWN_RETRY_TOPIC
        ),
        "consumeMessage": mqadmin_texts.messages,
        "checkRocksdbCqWriteProgress": lambda lines: lines,
        "getBrokerEpoch": lambda lines: "this request only for controllerMode" in "".join(lines),
    }
    of_mqadmin, of_ours = {}, {}
    for line, output in outputs.items():
        name, *options = line.replace(namesrv, "NAMESRV").split()
        of_mqadmin[" ".join([name, *options])] = readers[name](output)
        source = [] if name == "checkRocksdbCqWriteProgress" else ["-n", namesrv]
        words = [namesrv if word == "NAMESRV" else word for word in (name, *source, *options)]
        of_ours[" ".join([name, *options])] = _shown_by_ours(name, options, words)
    our_figures = mqadmin_texts.records_as_rows("brokerStatus", agree.records_of("brokerStatus", "-b", broker))
    return _Shown(of_mqadmin, of_ours, (before, _steady(our_figures), _figures_by_mqadmin(namesrv, broker)))


def _figures_by_mqadmin(namesrv: str, broker: str) -> dict[str, str]:
    outputs = mqadmin_texts.outputs_by_command(real_cluster.mqadmin(namesrv, f"brokerStatus -b {broker}\n", "5.5.0"))
    return _steady(mqadmin_texts.figures(*outputs.values()))


def _shown_by_ours(name: str, options: list[str], words: list[str]) -> object:
    if name == "getBrokerEpoch":
        status, _, error = agree.command(*words)
        return status == 3 and "this request only for controllerMode" in error
    records = agree.records_of(*words)
    if name == "checkRocksdbCqWriteProgress":
        return [f"{record['brokerName']} check doing, please wait and get the result from log..." for record in records]
    if name == "topicList" and "-c" not in options:
        return {record["topic"] for record in records} - OWN_RETRY_TOPIC
    rows = mqadmin_texts.records_as_rows(name, records)
    return {row[:3] + row[5:] for row in rows} if name == "statsAll" else rows


STEADY_FIGURES = frozenset(
    {
        "brokerActive",
        "commitLogMaxOffset",
        "commitLogMinOffset",
        "dispatchBehindBytes",
        "msgPutTotalTodayNow",
        "putMessageAverageSize",
        "putMessageFailedTimes",
        "putMessageSizeTotal",
        "putMessageTimesTotal",
        "remainTransientStoreBufferNumbs",
        "startAcceptSendRequestTimeStamp",
    }
)


def _steady(figures: dict[str, str]) -> dict[str, str]:
    """Return the names of the figures that both brokers have, with the values that do not change by the second."""
    names = figures.keys() - mqadmin_texts.OWN_FIGURES - mqadmin_texts.LEFT_OUT_FIGURES
    return {name: figures[name] if name in STEADY_FIGURES else "" for name in names}
