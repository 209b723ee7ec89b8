"""What a start reads of the tables below ``config/``."""

from __future__ import annotations

from engine.store.recovery.source import GroupOffset
from engine.store.recovery.tables import Tables

LIGHT = b'{"lmqOffsetTable":{"%LMQ%t1@%LMQ%g1":5,"bad":1,"%LMQ%t@g":true},"offsetTable":{"t@g":{0:7}}}'


def test_light_groups_have_offsets_of_their_own():
    tables = Tables({"lmqConsumerOffset.json": LIGHT}.get, "config")
    assert list(tables.group_offsets()) == [GroupOffset("g", "t", 0, 7), GroupOffset("%LMQ%g1", "%LMQ%t1", 0, 5)]
