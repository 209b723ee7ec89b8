"""Clients in Go, JavaScript, C++ and Java's of 4.9.8 are told by our servers what RocketMQ's own tell them.

Each client goes through all scenarios against RocketMQ's own servers, and against ours beside each other's: both ours,
our name server with a real broker, a real name server with our broker; each leaves the same in the store. All in full
form; where a toolchain is missing, that fails. What a client does not have is not asked for
(:data:`other_traffic.LACKS`). ``bash packaging/test.sh tests/clients/test_other_languages.py --clients-full``.
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
Told = dict[str, dict[str, Any]]


def client_lines(language: str, names: str, broker: str, folder: Path) -> Told:
    """What one client was told in each scenario."""
    results: Told = {}
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
def by_real_servers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Told]:
    """What a client was told by RocketMQ's own servers, asked once."""
    saved: dict[str, Told] = {}

    def ask(language: str) -> Told:
        if language not in saved:
            saved[language] = client_lines(language, "real", "real", tmp_path_factory.mktemp("real") / "servers")
        return saved[language]

    return ask


@pytest.mark.parametrize(("names", "broker"), [("ours", "ours"), ("ours", "real"), ("real", "ours")])
@pytest.mark.parametrize("language", LACKS)
def test_told_the_same(
    language: str, names: str, broker: str, by_real_servers: Callable[[str], Told], tmp_path: Path
) -> None:
    """What of the C++ client does not work at a real 5.3.3 either, and what was seen there:

    - *unique ids of a batch*: members carry none; each batch of five was stored, and handed out, as one message without
      keys whose body nobody takes apart; the sender is told an empty id.
    - *begin of a broadcast*: a group cannot say where it begins, and a broadcast's members begin at the end.
    - *limit of tries*: it cannot be set; a message that always fails came 17 times before it was a dead letter.
    - *one message at a time*: with a message that fails those come again that were pulled beside it.
    - *early heartbeat*: no half of a producer was checked within 90 s that had not sent anything before its heartbeat.
    - *stop behind a restart*: a consumer whose broker was started anew did not end within 90 s.

    Asynchronous sends, SQL92 and administration are not bound by its Python package.
    """
    assert peer.missing() is None
    assert shutil.which(TOOLS[language]), f"there is no {TOOLS[language]} on the path"
    theirs = by_real_servers(language)
    ours = client_lines(language, names, broker, tmp_path / "servers")
    assert theirs.keys() == ours.keys()
    for scenario, real in theirs.items():
        assert len(real) > 3
        actual_differences = differences(real, ours[scenario])
        assert not actual_differences, f"{scenario}:\n" + "\n".join(actual_differences[:20])
