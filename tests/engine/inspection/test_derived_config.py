"""Sizes derived from a store's files equal those with which it was written."""

from __future__ import annotations

import json

import golden_stores
import pytest

from engine.config import MessageStoreConfig, from_mapping
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store

SIZES = (
    "mapped_file_size_commit_log",
    "consume_queue_file_size",
    "max_hash_slot_num",
    "max_index_num",
    "enable_consume_queue_ext",
)


@pytest.mark.parametrize("name", ["clean-5.3.3", "multi-queue-ext-5.3.3", "lmq-5.3.3", "crash-4.9.8"])
def test_the_sizes_are_those_of_the_plan_that_wrote_the_store(golden, name):
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    written, _ = from_mapping(plan["config"])
    with open_store(golden(name)) as store:
        results = derived_config(store)
    assert {size: getattr(results, size) for size in SIZES} == {size: getattr(written, size) for size in SIZES}
    assert "mappedFileSizeCommitLog" in results.given


def test_configured_values_are_kept(golden):
    config = MessageStoreConfig(mapped_file_size_consume_queue=400, given=frozenset({"mappedFileSizeConsumeQueue"}))
    with open_store(golden("clean-5.3.3"), config) as store:
        assert derived_config(store).mapped_file_size_consume_queue == 400
