"""Descriptions of invalid bytes."""

from __future__ import annotations

import random

from engine.rules import damage_causes

PAGE = 4096


def test_zeros_lost_pages_a_changed_head_and_other_bytes_are_distinguished():
    noise = random.Random(1).randbytes(3 * PAGE)
    holed = noise[:PAGE] + bytes(PAGE) + noise[2 * PAGE :]
    assert "are zero: they were never written" in damage_causes.of_damaged_range(bytes(100), 500, 100)
    assert "whole pages of the commit log from 4,096 on" in damage_causes.of_damaged_range(holed, 0, len(holed))
    assert "(bodyLength)" in damage_causes.of_damaged_range(noise, 0, len(noise), ["bodyLength"])
    assert (
        damage_causes.of_damaged_range(noise[:100], 500, 100)
        == "100 bytes of the commit log from 500 on were overwritten"
    )


def test_an_end_is_torn_gone_zero_or_broken():
    assert "written only in part" in damage_causes.of_torn_end(b"abc", 10, 3)
    assert "written only in part" in damage_causes.of_lost_tail(b"abc", 10, torn=True)
    assert "missing or were cut" in damage_causes.of_lost_tail(b"", 10, torn=False)
    assert "zero from 10 on" in damage_causes.of_lost_tail(bytes(9), 10, torn=False)
    assert "broken from 10 on" in damage_causes.of_lost_tail(b"abc", 10, torn=False)


def test_properties_and_units_that_belong_elsewhere():
    assert "7 of its properties' 90 bytes are zero" in damage_causes.of_properties(10, 7, 90, is_cut=True)
    assert "16 zero bytes overwrote properties" in damage_causes.of_properties(10, 16, 90, is_cut=False)
    assert "differ from what was stored" in damage_causes.of_properties(10, 0, 90, is_cut=False)
    assert "second time" in damage_causes.of_stale(3, 10, is_copy=True)
    assert "earlier use" in damage_causes.of_stale(3, 10, is_copy=False)


def test_many_zeros_up_to_the_end_may_be_an_older_copy_of_the_file():
    """A restored log file was reported as "a write that was lost", although its messages are in the newer file."""
    zeros = bytes(damage_causes.OLD_COPY_BYTES)
    reported = damage_causes.of_damaged_range(b"x" * 4096 + zeros, 8192, 4096 + len(zeros))
    assert reported.endswith("the write was lost, or an older copy of the file stands there")
    reported = damage_causes.of_damaged_range(b"x" * 4096 + zeros + b"x" * 4096, 8192, 8192 + len(zeros))
    assert reported.endswith("their write was lost")
