"""The card and the tree get their facts from the heads and tails of files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.info import FLAVOURS
from viewer.look.assets import catalogue
from viewer.runtime.survey import survey

Golden = Callable[..., Path]


def test_the_survey_has_topics_queues_and_times(golden: Golden) -> None:
    with open_store(golden("broker-orders")) as store:
        facts = survey(store)
        assert facts.topics_by_bytes[0] == "OrderEvents"
        orders = next(topic for topic in facts.topics if topic.name == "OrderEvents")
        assert orders.count == sum(q.max_offset - q.min_offset for q in store.topics()["OrderEvents"].values())
        assert facts.max_offset == store.log.max_offset
        assert facts.first_time is not None
        assert facts.last_time is not None
        assert facts.first_time < facts.last_time
        assert len(facts.index) == len(store.index_files())
        assert facts.groups > 0
    assert facts.state == ("ok", "closed")


def test_special_features_of_a_store_have_texts_in_both_languages(golden: Golden) -> None:
    with open_store(golden("broker-lmq")) as store:
        facts = survey(store)
    assert "lmq" in facts.flavour
    assert facts.kinds.endswith("light queues")
    assert [flavour for flavour in FLAVOURS.values() if flavour and flavour not in catalogue("zh_CN").texts] == []


@pytest.mark.parametrize(
    ("name", "release"),
    [("clean-4.9.8", "4.9"), ("clean-5.3.3", "5.3"), ("broker-transactions-5.4.0", "5.4"), ("clean-5.5.1", "5.5")],
)
def test_the_release_that_seems_to_have_written_the_store_is_named(golden: Golden, name: str, release: str) -> None:
    """The status bar said "RocketMQ 5.x" for each store with a timer wheel, and nothing for the others."""
    with open_store(golden(name)) as store:
        facts = survey(store)
    assert facts.kinds.startswith(f"RocketMQ {release}")
    assert facts.written_by.startswith(f"RocketMQ {release} probably wrote this store: it")


def test_the_survey_shows_how_a_store_was_closed(golden: Golden) -> None:
    with open_store(golden("broker-crash")) as store:
        assert survey(store).state == ("warn", "not closed")


def test_log_by_itself_is_a_part(golden: Golden) -> None:
    with open_store(golden("broker-orders")) as store:
        folder = store.paths.commitlog
    with open_store(folder) as part:
        facts = survey(part)
    assert facts.state[1] == "log only"
    assert facts.topics == ()
    assert facts.log_bytes > 0


def test_empty_store_has_no_times(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with open_store(tmp_path) as store:
        facts = survey(store)
    assert (facts.messages, facts.first_time, facts.last_time, facts.log_bytes) == (0, None, None, 0)


def test_groups_stay_where_only_the_bak_of_their_table_is_left(golden: Golden, tmp_path: Path) -> None:
    """consumerOffset.json was missing and the check used its .bak, but the tree showed no groups."""
    store_copy = tmp_path / "store"
    shutil.copytree(golden("broker-retries"), store_copy)
    table = store_copy / "config" / "consumerOffset.json"
    with open_store(store_copy) as store:
        groups = survey(store).groups
    table.replace(table.with_name("consumerOffset.json.bak"))
    with open_store(store_copy) as store:
        assert survey(store).groups == groups > 0


@pytest.mark.golden
def test_queues_in_a_rocksdb_have_the_same_facts_as_queues_in_files(golden: Golden) -> None:
    """The card said that not everything was readable, and the tree had no topics. This store has its queues twice."""
    pytest.importorskip("rocksdict")
    facts = []
    for store_type in ("default", "defaultRocksDB"):
        config = from_mapping({"storeType": store_type})[0]
        with open_store(golden("combine-5.5.1"), config) as store:
            facts.append(survey(store))
    in_files, in_rocksdb = facts
    assert in_rocksdb.state == ("ok", "closed")
    assert in_files.topics
    assert in_rocksdb.topics == in_files.topics
