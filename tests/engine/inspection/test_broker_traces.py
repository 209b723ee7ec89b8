"""Traces that distinguish a whole broker's store from a message store used without a broker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.inspection.broker_traces import BrokerTraces, is_of_a_broker
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden


def test_a_broker_without_its_tables_is_recognised_by_other_traces(golden, tmp_path: Path):
    shutil.copytree(golden("broker-orders"), tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "config")
    with open_store(tmp_path / "store") as store:
        assert BrokerTraces(store).without_tables
        assert any("mark" in words for words in BrokerTraces(store).witnesses)
        assert is_of_a_broker(store)


def test_a_store_that_no_broker_wrote_has_no_traces(golden):
    with open_store(golden("clean-5.3.3")) as store:
        assert not is_of_a_broker(store)
