"""The real RocketMQ opens a crashed store after our recovery was undone: it recovers it as if nothing had happened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import golden_stores
import peer
import pytest

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]


KINDS = {"load", "state", "queue", "unit", "query"}


def lasting(row: dict) -> dict:
    """Return a row without the parts that depend on the timing of the broker's threads."""
    return {key: row[key] for key in ("t", "when", "minPhy", "maxPhy")} if row["t"] == "state" else row


@pytest.mark.parametrize("name", ["crash-5.3.3", "crash-flip-5.3.3", "crash-4.9.8"])
def test_java_recovers_an_undone_store_like_an_untouched_one(golden, tmp_path: Path, name: str) -> None:
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    accounts = []
    for text in ("untouched", "undone"):
        place = tmp_path / text
        store = place / "store"
        shutil.copytree(golden(name), store)
        if text == "undone":
            assert main(["recover", str(store), "--apply", "--yes", "--like", plan["release"][:3]]) == 0
            (folder,) = place.glob("*.kept-*")
            assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
        accounts.append(peer.Peer(plan["release"], place).dump(plan, store))
    assert next(row for row in accounts[0] if row["t"] == "load")["ok"]
    reported = [[lasting(row) for row in account if row["t"] in KINDS] for account in accounts]
    assert len(reported[0]) > 50
    assert [pair for pair in zip(*reported, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize("name", ["crash-5.3.3", "crash-4.9.8"])
def test_a_store_opened_by_a_broker_since_is_not_undone(golden, tmp_path: Path, capsys, name: str) -> None:
    """A broker started between the recovery and its undo: its changes would be lost."""
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    assert main(["recover", str(store), "--apply", "--yes", "--like", plan["release"][:3]]) == 0
    (folder,) = tmp_path.glob("*.kept-*")
    recovered = golden_stores.fingerprint(store)
    assert next(
        row for row in peer.Peer(plan["release"], tmp_path).dump(plan, store, in_place=True) if row["t"] == "load"
    )["ok"]
    fingerprint_before = golden_stores.fingerprint(store)
    capsys.readouterr()
    # 4.9 writes the same bytes through its mappings, which a file system in memory does not note
    changed_files = {line.partition(":")[0] for line in golden_stores.changes(recovered, fingerprint_before)} - {
        ".",
        "lock",
    }
    assert changed_files or name == "crash-4.9.8"
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == (3 if changed_files else 0)
    if not changed_files:
        return
    assert "the store has changed since the command: this file " in capsys.readouterr().err
    changes = golden_stores.changes(fingerprint_before, golden_stores.fingerprint(store))
    assert [change for change in changes if not change.startswith("lock")] == []
