"""Real Java clients get the same from ``storescope serve`` as from a real broker, and the store is whole.

``records/RELEASE-SCENARIO-SEED.jsonl.xz`` holds the answers of RocketMQ's own broker (``java/traffic`` without
``--namesrv``; for ``lmq``, whose queues no administrator can list, as it is asked from outside). In full form the
scenarios of other releases are compared with a real broker.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import real_cluster
import store_comparison
from other_clients import ServerPair
from served_stores import served_to_clients

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
MAX_TOPIC_BYTES = 127
RECORDS = Path(__file__).parent / "records"
SMALL = (
    "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"
    "cleanFileForciblyEnable=false\n"
)
"""The file sizes that a scenario's own broker has; on a disk that is nearly full no file goes before its time."""
PATIENT = "brokerClusterName=PeerCluster\nbrokerFastFailureEnable=false\nosPageCacheBusyTimeOutMills=600000\n"
"""A real broker on a machine with other work refuses what waits for 200 ms, or while its log is locked for a second."""
SCENARIOS = {
    "lmq": "enableLmq=true\nenableMultiDispatch=true\n",
    "orders": "",
    "pop": "",
    "retries": "timerRollWindowSlot=8\nrecallMessageEnable=true\n",
    "sqlfilter": "enableConsumeQueueExt=true\nenableCalcFilterBitMap=true\nenablePropertyFilter=true\n",
    "transactions": "transactionTimeOut=2000\ntransactionCheckInterval=4000\ntransactionCheckMax=3\n",
}
"""What each wants of the broker's configuration."""


def _of_time(differences: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the differences that only show how quick the machine was.

    A group whose name leaves no room for the name of its retry topic keeps failed messages in the client, which
    delivers them again every five seconds until the scenario ends: one side has a late delivery more, and so many more
    in its count.
    """
    of_long_names = [
        difference for difference in differences if len("%RETRY%" + difference.get("group", "")) > MAX_TOPIC_BYTES
    ]
    late_deliveries = [
        record
        for record in of_long_names
        if record["what"] == "received"
        and record["reconsumeTimes"] > 3
        and "absent" in {str(record["a"]), str(record["b"])}
    ]
    counted = [
        row
        for row in of_long_names
        if row["what"] == "consumed" and abs(row["a"] - row["b"]) == len(late_deliveries) > 0
    ]
    return late_deliveries + counted


def assert_same(theirs: Path, ours: Path) -> None:
    """Assert that clients were told the same by both brokers."""
    _, reported = real_cluster.same(theirs, ours)
    lines = [json.loads(line) for line in reported.splitlines()]
    assert lines[-1]["kind"] == "summary"
    differences = [record for record in lines if record["kind"] == "difference"]
    of_time = _of_time(differences)
    assert [difference for difference in differences if difference not in of_time] == []


KEPT = sorted(file.name.removesuffix(".jsonl.xz") for file in RECORDS.iterdir())
PLAYED = [item for item in KEPT if item.split("-")[1] in SCENARIOS]
SHORT = ("5.3.3-orders-2", "5.3.3-pop-2", "5.3.3-transactions-2")
"""Those that run without ``--clients-full``."""
AT_ONCE = 3
"""Scenarios that go on beside one another: they wait most of the time."""


def play(scenario: str, folder: Path) -> list[dict[str, Any]]:
    """Run the scenario with our broker over ``folder/store``; return the clients' record, also in ``folder/told``."""
    release, name, seed = scenario.split("-")
    served_release = "4.9" if release.startswith("4.9") else "5.3"
    with served_to_clients(folder / "store", SMALL + SCENARIOS[name], "--release", served_release) as namesrv:
        return real_cluster.traffic(name, int(seed), folder / "told", namesrv, release)


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Path, Future[list[dict[str, Any]]]]]]:
    """Return a dictionary: scenario → its folder, and the record of its clients. Scenarios needed here start in
    advance.
    """
    functions = [
        item for item in request.session.items if item.path == request.path and isinstance(item, pytest.Function)
    ]
    scenarios = [item.callspec.params["scenario"] for item in functions if "played" in item.fixturenames]
    pool = ThreadPoolExecutor(AT_ONCE)
    folders = {scenario: tmp_path_factory.mktemp(scenario) for scenario in scenarios}
    yield {scenario: (folder, pool.submit(play, scenario, folder)) for scenario, folder in folders.items()}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(item, marks=[pytest.mark.clients_full] * (item not in SHORT)) for item in PLAYED],
)
def test_clients_are_told_what_a_real_broker_told_them(scenario: str, played) -> None:
    """Sends of every kind, groups of every kind, admin questions; compared with a record of RocketMQ's own broker."""
    folder, telling = played[scenario]
    assert [record for record in telling.result() if record["kind"] == "failure"] == []
    assert_same(RECORDS / f"{scenario}.jsonl.xz", folder / "told")
    assert main(["check", str(folder / "store")]) == 0


def _play_scenario(
    names: str, broker: str, scenario: str, seed: int, folder: Path, servers: str, clients: str | None = None
) -> tuple[Path, Path]:
    """Run a scenario of clients with a name server and a broker; return their record and the store."""
    config = dict(line.split("=", 1) for line in (SMALL + PATIENT + SCENARIOS[scenario]).splitlines())
    with ServerPair(names, broker, folder, config, servers) as setting:
        traffic = real_cluster.traffic(scenario, seed, folder / "told", setting.namesrv, clients or servers)
    assert [record for record in traffic if record["kind"] == "failure"] == []
    return folder / "told", setting.store


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hook: one test for each seed on the command line."""
    if "seed" in metafunc.fixturenames:
        seeds = metafunc.config.getoption("--scenario-seeds")
        metafunc.parametrize("seed", [int(word) for word in str(seeds).split(",")])


@pytest.mark.clients_full
@pytest.mark.parametrize(
    ("release", "scenario"),
    [("5.3.3", scenario) for scenario in SCENARIOS]
    + [("4.9.7", scenario) for scenario in SCENARIOS if scenario not in ("lmq", "pop")],
)
def test_other_seeds_beside_a_real_broker(release: str, scenario: str, seed: int, tmp_path: Path) -> None:
    """The same with names and orders that no record has; both brokers leave the same in their stores."""
    with ThreadPoolExecutor(2) as executor:  # they wait most of the time
        (theirs, their_store), (ours, our_store) = executor.map(
            lambda kind: _play_scenario(kind, kind, scenario, seed, tmp_path / kind, release), ("real", "ours")
        )
    assert_same(theirs, ours)
    assert store_comparison.differences(their_store, our_store) == []
    assert main(["check", str(our_store)]) == 0


CLIENTS, SERVERS = "4.9.8", "4.9.7"
"""Clients whose broker nobody published, and the servers that they meet."""


@pytest.fixture(scope="module")
def by_real_servers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Return a function: scenario → the record of its clients with RocketMQ's own servers, run once."""

    def ask(scenario: str) -> tuple[Path, Path]:
        return _play_scenario(
            "real", "real", scenario, 733, tmp_path_factory.mktemp(scenario) / "servers", SERVERS, CLIENTS
        )

    return functools.cache(ask)


@pytest.mark.clients_full
@pytest.mark.parametrize(("names", "broker"), [("ours", "ours"), ("ours", "real"), ("real", "ours")])
@pytest.mark.parametrize("scenario", ["orders", "retries", "sqlfilter", "transactions"])
def test_clients_of_4_9_8_in_each_setting(
    scenario: str, names: str, broker: str, by_real_servers: Callable[[str], tuple[Path, Path]], tmp_path: Path
) -> None:
    """Ours and RocketMQ's servers in any mixture tell them the same, and leave the same in the store."""
    theirs, their_store = by_real_servers(scenario)
    ours, our_store = _play_scenario(names, broker, scenario, 733, tmp_path / "servers", SERVERS, CLIENTS)
    assert_same(theirs, ours)
    assert store_comparison.differences(their_store, our_store) == []
    assert main(["check", str(our_store)]) == 0
