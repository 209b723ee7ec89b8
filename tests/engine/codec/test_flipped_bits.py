"""A wrong body CRC names the bits that would explain it."""

from __future__ import annotations

import random
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import flipped_bits
from engine.codec.crc import crc31
from engine.codec.flipped_bits import FlippedBits, explain
from engine.codec.java import i32
from engine.codec.message import Unit
from engine.codec.unit_scan import walk


def _damaged(body: bytes, position: int, bit: int) -> bytes:
    return _inverted(body, position, 1 << bit)


def _inverted(body: bytes, position: int, mask: int) -> bytes:
    hurt = bytearray(body)
    hurt[position] ^= mask
    return bytes(hurt)


@given(body=st.binary(min_size=1, max_size=3000), data=st.data())
def test_any_flipped_bit_is_among_the_candidates(body, data):
    position, bit = data.draw(st.integers(0, len(body) - 1)), data.draw(st.integers(0, 7))
    answer = explain(_damaged(body, position, bit), crc31(body))
    assert FlippedBits(position, 1 << bit) in answer.flips
    assert len(answer.flips) <= 2


@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 512, 513, 65_536])
def test_first_and_last_bits_at_the_edges_of_a_stride(size):
    body = random.Random(size).randbytes(size)
    for position in {0, 1 % size, size // 2, size - 1}:
        for bit in (0, 7):
            assert FlippedBits(position, 1 << bit) in explain(_damaged(body, position, bit), crc31(body)).flips


@given(seed=st.integers(0, 1 << 32), position=st.integers(0, 65_535), bit=st.integers(0, 7))
def test_bodies_of_64_kib(seed, position, bit):
    body = random.Random(seed).randbytes(65_536)
    assert FlippedBits(position, 1 << bit) in explain(_damaged(body, position, bit), crc31(body)).flips


@given(body=st.binary(min_size=1, max_size=3000), data=st.data())
def test_several_bits_of_one_byte_are_among_the_candidates(body, data):
    position, mask = data.draw(st.integers(0, len(body) - 1)), data.draw(st.integers(1, 255))
    answer = explain(_inverted(body, position, mask), crc31(body))
    single_bit = mask & (mask - 1) == 0
    assert FlippedBits(position, mask) in answer.flips or (not single_bit and len(answer.flips[0].bits) == 1)


@given(st.binary(min_size=1, max_size=400), st.integers(0, 31))
def test_a_flipped_bit_of_the_stored_field_is_named(body, bit):
    answer = explain(body, i32(crc31(body) ^ 1 << bit))
    assert answer.field_bit == bit
    assert f"bit {bit} of the stored CRC" in answer.words
    if bit == 31:
        assert answer.flips == ()


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_every_candidate_repairs_the_body(body, original_body):
    stored = crc31(original_body)
    answer = explain(body, stored)
    for flip in answer.flips:
        assert crc31(_inverted(body, flip.position, flip.mask)) == stored


@given(st.binary(max_size=300), st.integers(-(1 << 31), (1 << 31) - 1))
def test_any_difference_gives_an_answer(body, stored):
    assert explain(body, stored).words


def test_a_valid_body_has_nothing_to_explain():
    answer = explain(b"Hello", 2010220930)
    assert (answer.flips, answer.field_bit, answer.note) == ((), None, None)


def test_two_flipped_bits_are_not_explained_by_one():
    body = bytes(1000)
    hurt = _damaged(_damaged(body, 10, 3), 700, 5)
    answer = explain(hurt, crc31(body))
    assert answer.flips == ()
    assert answer.words == "no change of a single bit or byte explains it"


def test_the_message_names_the_position():
    assert explain(b"Iello", 2010220930).words == "would be explained by bit 0 of byte 0 of the body"


def _forget() -> None:
    flipped_bits._functions.cache_clear()
    flipped_bits._baby_steps.cache_clear()


def test_a_missing_crcmod_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "crcmod", None)
    _forget()
    try:
        answer = explain(b"Iello", 2010220930)
    finally:
        _forget()
    assert answer.flips == ()
    assert "crcmod" in answer.words


def test_oversized_and_empty_bodies_have_a_reason():
    assert "empty" in explain(b"", 3).words
    assert "not searched" in explain(bytes(flipped_bits.MAX_BODY_BYTES + 1), 3).words


def test_the_search_of_four_mebibytes_is_fast():
    body = bytes(4 << 20)
    began = time.process_time()
    assert FlippedBits(5, 2) in explain(_damaged(body, 5, 1), crc31(body)).flips
    assert time.process_time() - began < 2


@pytest.mark.golden
def test_the_inverted_byte_of_a_real_store_is_found(golden):
    """One byte in the middle of one body of crash-flip-5.3.3 was inverted after the crash."""
    units = [
        unit
        for path in sorted((golden("crash-flip-5.3.3") / "commitlog").iterdir())
        for unit in walk(path.read_bytes(), int(path.name))
        if isinstance(unit, Unit) and unit.crc == "bad"
    ]
    assert len(units) == 1
    answer = explain(units[0].body, units[0].body_crc)
    assert answer.flips == (FlippedBits(len(units[0].body) // 2, 0xFF),)
    assert answer.words.startswith("would be explained by bits 0, 1, 2, 3, 4, 5, 6, 7 of byte")
