"""The verdict on a message that the log has deleted and tiered storage has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import agree
import pytest
from tiered_stores import move_tiered_storage_out, options_for

from engine.codec import tiered as codec
from engine.store.tiered import TABLE

pytestmark = pytest.mark.golden
STORE = "tiered-5.5.1"


@pytest.fixture
def outside(golden, tmp_path) -> Path:
    """The store, with tiered storage outside of it."""
    return move_tiered_storage_out(golden(STORE), tmp_path)


@pytest.fixture
def without_table(golden, tmp_path) -> Path:
    """A copy of the store that has lost the table of tiered storage."""
    store = shutil.copytree(golden(STORE), tmp_path / "store")
    for name in (TABLE, f"{TABLE}.bak"):
        (store / "config" / name).unlink(missing_ok=True)
    return store


def results_of_where(store: Path, question: str) -> list[dict]:
    return [record for record in agree.records_of("where", store, question) if record["type"] == "whereResult"]


@pytest.mark.parametrize("question", ["Orders/1/2", "K17"])
def test_where_says_that_a_message_was_moved(question, golden):
    (result,) = results_of_where(golden(STORE), question)
    assert (result["verdict"], result["topic"], result["queueId"], result["queueOffset"]) == ("found", "Orders", 1, 2)
    assert "moved to tiered storage" in json.dumps(result)


def test_where_does_not_find_what_is_in_neither(golden):
    (result,) = results_of_where(golden(STORE), "K999")
    assert result["verdict"] == "neverSeen"


def test_without_its_files_where_says_that_a_message_was_moved(outside):
    """The table of segments is in the store, so this is known without the files."""
    status, out, _ = agree.command("where", outside, "Orders/1/2")
    assert status == 1
    assert "expired" in out
    assert "moved to tiered storage, whose files are not here" in out
    assert "--config FILE.conf, with tieredStoreFilePath" in out
    _, out, error = agree.command("get", outside, "Orders", 1, 2)
    assert "the files of tiered storage are not here" in error


def test_without_its_files_a_key_is_unknown(outside):
    """It was said that no message ever had it."""
    (result,) = results_of_where(outside, "K999")
    assert result["verdict"] == "unknown"


def test_a_message_in_a_lost_segment_is_unknown(outside):
    options = options_for(outside)
    (outside.parent / "elsewhere/a007e11b_PeerCluster/broker-a/Orders/1/COMMIT_LOG" / codec.segment_name(0)).unlink()
    _, out, _ = agree.command("where", outside, "Orders/1/2", *options)
    assert out.startswith("unknown")


@pytest.mark.parametrize("question", ["Orders/1/2", "K17", "K999"])
def test_without_its_table_where_does_not_say_that_a_message_is_gone(question, without_table):
    """It said "expired", although the files of tiered storage hold the message and only what leads to it is lost."""
    (result,) = results_of_where(without_table, question)
    assert result["verdict"] == "unknown"
    assert "may be in tiered storage" in json.dumps(result)
    assert "Restore the table" in result["nextStep"]


def test_without_its_table_a_topic_that_has_no_files_there_is_not_looked_for_there(without_table):
    (result,) = results_of_where(without_table, "NoSuchTopic/0/2")
    assert result["verdict"] == "neverSeen"
