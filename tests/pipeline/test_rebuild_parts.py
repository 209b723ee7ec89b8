"""Parts of a rebuild: the entries of a split for queues and index are read back as they were written."""

from __future__ import annotations

import os

import numpy as np
import pytest
from dispatching import blocks
from raw_units import raw_log

from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.config import MessageStoreConfig
from engine.pipeline.rebuild_parts import (
    ITEM,
    ITEMS,
    KEY,
    PLAIN,
    ROWS_OF,
    RUN,
    PartWriter,
    StoreFacts,
    decode_group,
    groups_between,
    path_of,
    read_entries,
    read_part,
)
from engine.rules.dispatch_rules import KnownTopics

KNOWN = KnownTopics(frozenset(), frozenset(), 0, are_known=False)


def facts(min_offset=0, end=None, batch_topics=frozenset(), **config):
    message_store_config = MessageStoreConfig(**config), frozenset(batch_topics), KNOWN
    return StoreFacts("/s", "", min_offset, end, *message_store_config, tag_entries=False)


def unit(topic, queue_id, queue_offset, **options):
    return {"topic": topic, "queue_id": queue_id, "queue_offset": queue_offset, **options}


def write(folder, log, store_facts, *, damage=()):
    topics = TopicTable()
    with PartWriter(folder, 7, store_facts, topics) as writer:
        for columns in blocks(log, 64, topics):
            writer.take(columns)
        for item in damage:
            writer.damage(item)
        return writer.finish()


def entries(folder, group):
    descriptor = os.open(path_of(folder, 7, "entries"), os.O_RDONLY)
    try:
        return decode_group(group, read_entries(descriptor, [group]))
    finally:
        os.close(descriptor)


def test_a_part_is_read_as_it_was_written(tmp_path):
    log = raw_log(unit(b"B", 0, 4), unit(b"A", 1, 0), unit(b"B", 0, 5), unit(b"A", 1, 7))
    part = write(tmp_path, log, facts())
    assert read_part(tmp_path, 7) == part
    assert (part.units, part.keys) == (4, 4)
    (chunk,) = part.chunks
    assert [group.key for group in chunk] == [("A", 1), ("B", 0)]
    queue_of_a, queue_of_b = chunk
    assert (queue_of_b.shape, queue_of_b.first_entry, queue_of_b.rows) == (RUN, 4, 2)
    assert (queue_of_a.shape, queue_of_a.rows) == (ROWS_OF, 2)
    size = len(log) // 4
    record, offsets = entries(tmp_path, queue_of_b)
    assert record["physical_offset"].tolist() == [0, 2 * size]
    assert record["size"].tolist() == [size, size]
    assert offsets.tolist() == [4, 5]
    record, offsets = entries(tmp_path, queue_of_a)
    assert record["physical_offset"].tolist() == [size, 3 * size]
    assert offsets.tolist() == [0, 7]


def test_a_part_without_a_directory_is_none(tmp_path):
    """A killed run leaves entries; only the directory, written last, shows that they are complete."""
    with PartWriter(tmp_path, 7, facts(), TopicTable()), pytest.raises(FileNotFoundError):
        read_part(tmp_path, 7)
    assert path_of(tmp_path, 7, "entries").exists()


def test_units_outside_of_the_store_and_of_another_place_are_left_out(tmp_path):
    log = raw_log(unit(b"T", 0, 0), unit(b"T", 0, 1), unit(b"T", 0, 2))
    size = len(log) // 3
    assert write(tmp_path, log, facts(min_offset=size, end=2 * size)).units == 1
    moved = log[:size] + log[:size] + log[2 * size :]  # the second says that it is the first
    part = write(tmp_path, moved, facts())
    assert (part.units, part.stale) == (2, 1)


def test_damage_counts_up_to_the_end_of_the_store(tmp_path):
    damages = [Damage(10, 30, "no unit"), Damage(500, 40, "no unit")]
    part = write(tmp_path, b"", facts(end=100), damage=damages)
    assert (part.damaged, part.damaged_bytes) == (1, 30)


def test_keys_tell_whether_units_stand_behind_the_last_one(tmp_path):
    log = raw_log(unit(b"T", 0, 0), unit(b"T", 0, 1, properties=b""))
    part = write(tmp_path, log, facts())
    assert part.later_units
    keys = np.frombuffer(path_of(tmp_path, 7, "keys").read_bytes(), KEY)
    assert keys["phy_offset"].tolist() == [0]
    assert not write(tmp_path, log[: len(log) // 2], facts()).later_units
    assert write(tmp_path, log, facts(message_index_enable=False)).keys == 0


def test_entries_with_an_ext_are_kept_one_by_one(tmp_path):
    log = raw_log(unit(b"T", 0, 3), unit(b"T", 0, 4))
    ((group,),) = write(tmp_path, log, facts(enable_consume_queue_ext=True)).chunks
    assert (group.shape, group.rows, group.first_entry) == (ITEMS, 2, 3)
    items = np.frombuffer(path_of(tmp_path, 7, "entries").read_bytes(), ITEM)
    assert items["queue_offset"].tolist() == [3, 4]
    assert PLAIN not in items["kind"].tolist()


def test_groups_are_taken_between_two_queues(tmp_path):
    log = raw_log(unit(b"A", 0, 0), unit(b"A", 1, 0), unit(b"B", 0, 0))
    part = write(tmp_path, log, facts())
    expected_by_range = {
        (("A", 0), ("B", 0)): [("A", 0), ("A", 1)],
        (("A", 1), None): [("A", 1), ("B", 0)],
        (("C", 0), None): [],
    }
    for (begin, end), expected in expected_by_range.items():
        assert [group.key for group in groups_between(part, begin, end)[0]] == expected


def test_a_topic_that_can_be_no_folder_has_no_queue(tmp_path):
    part = write(tmp_path, raw_log(unit(b"a/b", 0, 0), unit(b"T", 0, 0)), facts())
    assert [group.topic for chunk in part.chunks for group in chunk] == ["T"]
