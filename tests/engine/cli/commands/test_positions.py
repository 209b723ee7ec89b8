"""``positions``: the written, flushed and dispatched offsets, each with its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_beside
from engine.cli.main import main
from engine.replication.source import Slave


def test_all_positions_of_a_closed_store_are_its_end(storescope):
    (record,) = storescope("positions")
    assert record["min"]["offset"] == 0
    for name in ("wrote", "committed", "flushed", "confirm"):
        assert record[name]["offset"] == storescope.store.end
        assert record[name]["how"], "the record names the source"


def test_a_broker_reports_its_slaves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original_enter = ListeningBroker.__aenter__

    async def with_a_slave(self: ListeningBroker) -> ListeningBroker:
        self.broker.followers = lambda: [Slave("127.0.0.1:5", sent=0, acknowledged=0)]
        return await original_enter(self)

    monkeypatch.setattr(ListeningBroker, "__aenter__", with_a_slave)
    with serving_beside(tmp_path) as addresses:
        assert main(["positions", str(tmp_path), "--broker", addresses.broker, "--json"]) == 0
        positions, slave = map(json.loads, capsys.readouterr().out.splitlines())
        assert positions["type"] == "positions"
        assert slave == {
            "type": "slave",
            "peer": "127.0.0.1:5",
            "wrote": 0,
            "sent": 0,
            "acknowledged": 0,
            "behind": 0,
        }
        assert main(["positions", str(tmp_path), "--broker", addresses.broker]) == 0
        assert "127.0.0.1:5: sent 0, behind 0" in capsys.readouterr().out
        assert main(["positions", str(tmp_path), "--broker", addresses.namesrv]) == 2
        assert "does not say who follows it" in capsys.readouterr().err
        assert main(["positions", str(tmp_path), "--broker", "nowhere"]) == 2
