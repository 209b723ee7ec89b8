"""Keys and hosts are hidden in their length, and equal values stay equal."""

from __future__ import annotations

import pytest

from engine.codec.message import check_frame, decode
from engine.codec.properties import verify_crc
from engine.errors import UsageError
from engine.inspection.capsule_masking import CapsuleMasking

UNIQUE = b"7F0000010B2C18B4AAC20000002A0007"
OFFSET_ID = b"0A01020300002A9F0000000000001000"


def properties_of(masking: CapsuleMasking, **values: bytes) -> dict[str, bytes]:
    raw = b"".join(b"%s\x01%s\x02" % (name.encode(), value) for name, value in values.items())
    masked = masking.properties(raw)
    assert len(masked) == len(raw)
    pairs = (piece.split(b"\x01") for piece in masked.split(b"\x02") if piece)
    return {name.decode(): value for name, value in pairs}


def test_keys_are_hidden_word_by_word_and_equal_keys_stay_equal():
    masking = CapsuleMasking(keys=True)
    first = properties_of(masking, KEYS=b"O-1042 Customer7", TAGS=b"TagA", note=b"about O-1042, again")
    second = properties_of(masking, KEYS=b"Customer7")
    words = first["KEYS"].split(b" ")
    assert [len(word) for word in words] == [6, 9]
    assert b"O-1042" not in b"".join(first.values())
    assert words[1] == second["KEYS"]
    assert first["TAGS"] == b"TagA"
    assert first["note"] == b"about " + words[0] + b", again"


def test_an_id_keeps_time_and_counter():
    by_keys = properties_of(CapsuleMasking(keys=True), UNIQ_KEY=UNIQUE)["UNIQ_KEY"]
    assert by_keys[:8] == UNIQUE[:8]
    assert by_keys[20:] == UNIQUE[20:]
    assert by_keys[8:20] != UNIQUE[8:20]
    by_hosts = properties_of(CapsuleMasking(hosts=True), UNIQ_KEY=UNIQUE)["UNIQ_KEY"]
    assert by_hosts[:8] != UNIQUE[:8]
    assert by_hosts[8:] == UNIQUE[8:]


@pytest.mark.golden
def test_hosts_of_a_unit_and_its_message_id_fit_together(golden):
    masking = CapsuleMasking(hosts=True)
    data = min((golden("propcrc-5.3.3") / "commitlog").iterdir()).read_bytes()
    frame = check_frame(data, 0, len(data))
    assert not isinstance(frame, str)
    unit = decode(data[: frame.size])
    masked_bytes = masking.unit(data[: frame.size], frame)
    masked = decode(masked_bytes)
    assert masked.born_host.partition(":")[0] != unit.born_host.partition(":")[0]
    assert masked.born_host.partition(":")[2] == unit.born_host.partition(":")[2]
    original_id = unit.offset_msg_id.encode()
    value = properties_of(masking, ORIGIN_MESSAGE_ID=original_id)["ORIGIN_MESSAGE_ID"]
    assert value.decode() == masked.offset_msg_id
    assert verify_crc(masked_bytes) is verify_crc(data[: frame.size])


def test_an_offset_id_is_no_key():
    assert properties_of(CapsuleMasking(keys=True), ORIGIN_MESSAGE_ID=OFFSET_ID)["ORIGIN_MESSAGE_ID"] == OFFSET_ID


def test_nothing_changes_without_a_mask():
    values = {"KEYS": b"a b", "UNIQ_KEY": UNIQUE, "CLIENT_HOST": b"10.0.0.1"}
    assert properties_of(CapsuleMasking(tables=True), **values) == values


def test_two_capsules_cannot_be_compared():
    first, second = (properties_of(CapsuleMasking(keys=True), KEYS=b"O-1042-long-key") for _ in range(2))
    assert first != second


def test_other_words_are_refused():
    assert CapsuleMasking.of("keys, tables").parts == ["keys", "tables"]
    with pytest.raises(UsageError, match=r"expected keys, hosts, tables .* found 'bodies'"):
        CapsuleMasking.of("bodies")
