"""Our servers give clients in Go, JavaScript, C++ and Java's of 4.9.8 the same answers as RocketMQ's own.

Each client runs all scenarios with RocketMQ's own servers and with three other pairs: both ours, our name server with a
real broker, a real name server with our broker; the stores are the same afterwards. All in full form; a missing
toolchain fails the test. Features that a client lacks are left out (:data:`other_traffic.LACKS`).
``bash packaging/test.sh tests/clients/test_other_languages.py --clients-full``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peer
import pytest
import store_comparison
from other_clients import OtherClient, ServerPair
from other_traffic import (
    CONFIG,
    LACKS,
    SCENARIOS,
    SERVERS,
    ClientTraffic,
    compared,
    differences,
    handed_out,
    has_places,
)

from engine.cli.main import main

pytestmark = [pytest.mark.clients_full, pytest.mark.timeout(1200)]
SEED = 7
NAMELESS = "group "
"""A group without a name, of which the C++ client tells: 5.3.3 declares it, ours does not."""
OFFSETS = "offsets of "
"""Rows of groups. Of which queues a client has told before its end is chance where a filter let nothing of them pass:
two real brokers held those of queues 2 and 3, and of 1, 2 and 3, behind the same consumer of JavaScript's.
"""
TOOLS = {"go": "go", "node": "npm", "python_cpp": "python3", "java": "mvn"}
Results = dict[str, dict[str, Any]]


def client_lines(language: str, names: str, broker: str, folder: Path) -> Results:
    """Return the results of one client in each scenario."""
    results: Results = {}
    with ServerPair(names, broker, folder, CONFIG, SERVERS[language]) as setting:
        for scenario, run in SCENARIOS.items():
            if scenario in LACKS[language]:
                continue
            client = OtherClient(language, setting.namesrv, folder / scenario)
            traffic = ClientTraffic(language, client, setting, SEED)
            try:
                run(traffic)
            finally:
                client.end()
            results[scenario] = compared(client.lines, traffic.facts, places=has_places(language, scenario))
            results[scenario]["deliveries"] = handed_out(client.lines)
    if broker == "ours":
        assert main(["check", str(setting.store)]) == 0
    account = store_comparison.account(setting.store)
    account.pop(NAMELESS, None)
    results["store"] = {name: bool(row) if name.startswith(OFFSETS) else row for name, row in account.items()}
    return results


@pytest.fixture(scope="module")
def by_real_servers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """Return a function: language → results of its client at RocketMQ's own servers, measured once."""
    saved: dict[str, Results] = {}

    def ask(language: str) -> Results:
        if language not in saved:
            saved[language] = client_lines(language, "real", "real", tmp_path_factory.mktemp("real") / "servers")
        return saved[language]

    return ask


@pytest.mark.parametrize(("names", "broker"), [("ours", "ours"), ("ours", "real"), ("real", "ours")])
@pytest.mark.parametrize("language", LACKS)
def test_clients_get_the_same_results(
    language: str, names: str, broker: str, by_real_servers: Callable[[str], Results], tmp_path: Path
) -> None:
    """Differences of the C++ client that occur at a real 5.3.3 too:

    - *unique ids of a batch*: members carry none; each batch of five was stored, and delivered, as one message without
    keys whose body nobody decodes; the sender is told an empty id.
    - *begin of a broadcast*: a group cannot set where it begins, and a broadcast's members begin at the end.
    - *limit of tries*: it cannot be set; a message that always fails came 17 times before it was a dead letter.
    - *one message at a time*: together with a failed message those come again that were pulled beside it.
    - *early heartbeat*: half messages of a producer that had sent nothing before its heartbeat were not checked
    within 90 s.
    - *stop behind a restart*: a consumer whose broker was restarted did not end within 90 s.

    Its Python package offers no asynchronous sends, SQL92 and administration.
    """
    assert peer.missing() is None
    assert shutil.which(TOOLS[language]), f"there is no {TOOLS[language]} on the path"
    real_results = by_real_servers(language)
    our_results = client_lines(language, names, broker, tmp_path / "servers")
    assert real_results.keys() == our_results.keys()
    for scenario, real in real_results.items():
        assert len(real) > 3
        found_differences = differences(real, our_results[scenario])
        assert not found_differences, f"{scenario}:\n" + "\n".join(found_differences[:20])
