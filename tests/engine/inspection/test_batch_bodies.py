"""Bodies inside a batch are replaced; keys, length and checksum stay."""

from __future__ import annotations

import zlib

from engine.codec import batch
from engine.inspection.batch_bodies import without_member_bodies


def test_keys_length_and_checksum_stay():
    body = batch.encode(0, b"secret one", {"KEYS": "K1"}) + batch.encode(0, b"two", {"KEYS": "K2"})
    changed = without_member_bodies(body)
    assert changed is not None
    assert b"secret" not in changed
    assert [member.keys for member in batch.walk(changed)] == [["K1"], ["K2"]]
    assert (len(changed), zlib.crc32(changed)) == (len(body), zlib.crc32(body))


def test_members_without_room_for_a_checksum_stay():
    body = batch.encode(0, b"two", {"KEYS": "K2"})
    assert without_member_bodies(body) == body


def test_what_is_no_batch_is_none():
    assert without_member_bodies(b"no batch at all, but some text") is None
