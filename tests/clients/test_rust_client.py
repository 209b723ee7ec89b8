"""The Rust client (``rocketmq-client-rust`` 1.0.0) gets the same from our broker as from a real 5.5.0: sends, queries,
pulls, pushes with a retry, pops, transactions with a check, timers, and requests of administrators.

Building the client takes long. ``bash packaging/test.sh tests/clients/test_rust_client.py --clients-full``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import mqadmin_texts
import pytest
import real_cluster
from other_clients import CLIENTS, ServerPair
from other_traffic import CONFIG

pytestmark = [pytest.mark.clients_full, pytest.mark.timeout(3600)]
OF_TIME = frozenset(
    {
        "1ST_POP_TIME",
        "BORN_TIMESTAMP",
        "CLIENT_SEND_TIME",
        "CONSUME_START_TIME",
        "DELAY",
        "MAX_OFFSET",
        "MIN_OFFSET",
        "ORIGIN_MESSAGE_ID",
        "POP_CK",
        "TIMER_DEQUEUE_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_OUT_MS",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "UNIQ_KEY",
        "__transactionId__",
    }
)
"""Properties whose values differ from run to run."""


def records(names: str, broker: str, folder: Path) -> dict[str, list[Any]]:
    """Return what the client printed, by kind and subject."""
    with ServerPair(names, broker, folder, CONFIG, "5.5.0") as servers:
        for topic in ("RustEvents", "RustTransactions"):
            servers.topic(topic, 4)
        for group in ("rust-all", "rust-pops", "rust-transactions"):
            servers.topic(f"%RETRY%{group}", 1)
        output = subprocess.run(
            ["bash", str(CLIENTS / "rust" / "run_client"), servers.namesrv, servers.address],
            capture_output=True,
            text=True,
            timeout=3000,
            env={**real_cluster.environment(), "CLIENT_HOME": str(folder)},
            check=True,
        ).stdout
        text = output.replace(servers.address, "BROKER").replace(servers.namesrv, "NAMESRV")
    lines: defaultdict[str, list[Any]] = defaultdict(list)
    for line in text.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            value = _steady(row["value"])
            if row["about"].startswith("rust-transactions"):  # the client chooses a queue by chance
                value = {name: field for name, field in value.items() if name not in {"queue", "queueOffset"}}
            lines[f"{row['kind']} {row['about']}"].append(value)
    for name in lines:
        if name.startswith("received"):
            lines[name].sort(key=str)
    lines.pop("admin check of queues in a RocksDB", None)  # a real broker answers in its log, ours at once
    for groups in lines.get("admin groups", ()):
        groups["groupList"].sort()
    figures = lines.get("admin figures")
    if figures:
        own = mqadmin_texts.OWN_FIGURES | mqadmin_texts.LEFT_OUT_FIGURES
        figures[0] = [name for name in figures[0] if name not in own and "DiskRatio_" not in name]
    return dict(lines)


def _steady(value: Any) -> Any:
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if not isinstance(value, dict):
        return value
    steady = {name: _steady(item) for name, item in value.items()}
    if isinstance(value.get("properties"), dict):
        steady["properties"] = {name: "" if name in OF_TIME else text for name, text in value["properties"].items()}
        steady.pop("storeSize", None)  # with the numbers above
    return steady


@pytest.mark.parametrize("names", ["ours", "real"])
def test_the_rust_client_gets_the_same(names: str, tmp_path: Path) -> None:
    assert shutil.which("cargo"), "there is no cargo on the path"
    real, ours = records("real", "real", tmp_path / "real"), records(names, "ours", tmp_path / "ours")
    assert {name for name in real if name.startswith("done")} == {
        f"done {part}" for part in ("sends", "pulls", "push", "pops", "transactions", "admin")
    }
    differing = [
        f"{name}:\n  real {real.get(name)}\n  ours {ours.get(name)}"
        for name in sorted(real.keys() | ours.keys())
        if real.get(name) != ours.get(name)
    ]
    assert not differing, "\n".join(differing)[:6000]
