"""Bloom filter bits of SQL groups, compared with positions and maps of a real broker."""

from __future__ import annotations

import pytest

from engine.codec.bloom import BITS, HASHES, bit_map, murmur3_64, positions


@pytest.mark.parametrize(
    ("group", "topic", "bits"),
    [
        ("billing", "OrderEvents", (15, 11, 6)),
        ("warehouse", "OrderEvents", (25, 79, 21)),
        ("dashboard", "OrderEvents", (53, 86, 7)),
        ("GID_A", "TopicTest", (15, 11, 6)),
    ],
)
def test_positions_match_a_brokers(group: str, topic: str, bits: tuple[int, ...]) -> None:
    assert positions(group, topic) == bits


def test_a_map_has_the_bits_of_all_groups() -> None:
    assert bit_map([]) == bytes(14)
    assert bit_map([(15, 11, 6)]).hex() == "4088" + "00" * 12
    assert bit_map([(15, 11, 6), (0, 111, 6)]).hex() == "4188" + "00" * 11 + "80"


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("hello", 0xCBD8A7B341BD9B02),
        ("hello, world", 0x342FAC623A5EBC8E),
        ("The quick brown fox jumps over the lazy dog.", 0xCD99481F9EE902C9),
    ],
)
def test_murmur(text: str, hashed: int) -> None:
    """Known values of the hash, with tails of every length."""
    assert murmur3_64(text.encode()) == hashed


def test_every_group_has_its_bits_within_the_map() -> None:
    for number in range(200):
        actual_positions = positions(f"group-{number}", "数量")
        assert len(actual_positions) == HASHES
        assert all(0 <= bit < BITS for bit in actual_positions)
