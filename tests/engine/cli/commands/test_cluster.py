"""``cluster``: a running cluster on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.broker.serving import serving_beside
from engine.cli.main import main


def test_brokers_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving_beside(tmp_path / "store") as addresses:
        assert main(["cluster", addresses.namesrv, "--json"]) == 0
        (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert record["type"] == "clusterBroker"
        assert (record["address"], record["release"]) == (addresses.broker, "V5_5_1")
        assert main(["cluster", addresses.namesrv]) == 0
        assert addresses.broker in capsys.readouterr().out


def test_an_unreachable_cluster_is_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "127.0.0.1:1"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("storescope: no name server answers: 127.0.0.1:1: ")
    assert len(err.splitlines()) == 1
