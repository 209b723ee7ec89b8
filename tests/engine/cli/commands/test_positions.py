"""``positions``: how far the store was written, flushed, dispatched, each with where that is known from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_beside
from engine.cli.main import main
from engine.replication.source import Slave


def test_a_store_that_was_closed_is_everywhere_at_its_end(asked):
    (record,) = asked("positions")
    assert record["min"]["offset"] == 0
    for name in ("wrote", "committed", "flushed", "confirm"):
        assert record[name]["offset"] == asked.made.end
        assert record[name]["how"], "where it is known from is said"


def test_a_broker_tells_of_its_slaves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = ListeningBroker.__aenter__

    async def with_a_slave(self: ListeningBroker) -> ListeningBroker:
        self.broker.followers = lambda: [Slave("127.0.0.1:5", sent=0, acknowledged=0)]
        return await sample(self)

    monkeypatch.setattr(ListeningBroker, "__aenter__", with_a_slave)
    with serving_beside(tmp_path) as addresses:
        assert main(["positions", str(tmp_path), "--broker", addresses.broker, "--json"]) == 0
        first, slave = map(json.loads, capsys.readouterr().out.splitlines())
        assert first["type"] == "positions"
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
