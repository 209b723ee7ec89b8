"""RocketMQ's own mqadmin says the same of a store whether its own broker serves it or ours."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import real_cluster

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
haStatus -b BROKER
cleanExpiredCQ -b BROKER
cleanUnusedTopic -b BROKER
deleteExpiredCommitLog -b BROKER
deleteTopic -c PeerCluster -t NewTopic
deleteSubGroup -b BROKER -g newgroup
updateBrokerConfig -b BROKER -k transactionCheckMax -v 7
"""
_CHANGING = re.compile(r"\d{4}-\d\d-\d\d[ #][\d:,.]+|\d{13}")
"""Times."""
_LOGS = re.compile(r"\d\d:\d\d:\d\d,\d+ \|-")


def said(namesrv: str, broker: str) -> dict[str, list[str]]:
    """What each command printed, by the command, without what must differ."""
    words = ["bash", str(real_cluster.JAVA / "mqadmin"), "5.3.3", namesrv]
    out = subprocess.run(
        words, input=COMMANDS.replace("BROKER", broker), capture_output=True, text=True, timeout=240,
        env=real_cluster.environment(), check=True,
    ).stdout  # fmt: skip
    found: dict[str, list[str]] = {}
    for number, text in enumerate(out.split("### ")[1:]):
        lines = [line.rstrip() for line in text.replace(broker, "BROKER").splitlines() if not _LOGS.match(line)]
        found[f"{number} {lines[0]}"] = [_CHANGING.sub("TIME", line) for line in lines[1:]]
        if lines[0].startswith("brokerConsumeStats"):
            found[f"{number} {lines[0]}"].sort()  # in the order of a hash map
    return found


def test_every_command_says_what_it_says_of_a_real_broker(golden, tmp_path: Path) -> None:
    store = golden("broker-orders")
    for side in ("real", "ours"):
        shutil.copytree(store, tmp_path / side / "store")
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    with real_cluster.real(tmp_path / "real", *ports, "--small") as at:
        theirs = said(at["namesrv"], at["broker"])
    conf = tmp_path / "broker.conf"
    conf.write_text(CONF)
    words = ["serve", tmp_path / "ours" / "store", "--port", "0", "--namesrv-port", "0", "--json", "--no-backup"]
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words, "--config", conf],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        assert process.stdout is not None
        at = json.loads(process.stdout.readline())
        ours = said(at["namesrv"], at["broker"])
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
    assert len(theirs) == len(COMMANDS.splitlines())
    assert ours == theirs
