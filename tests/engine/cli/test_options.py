"""Values of options, as people write them."""

from __future__ import annotations

import agree
import made_stores
import pytest


@pytest.fixture
def store(tmp_path):
    """A small healthy store."""
    return made_stores.healthy().write(tmp_path / "store")


NUMBERS = ["144", "0x90", "0b10010000", "1_4_4", " 144 "]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_as_people_write_them(store, text):
    first = agree.ask("units", store, "--from", text, "--limit", 1)[0]
    assert first["physicalOffset"] == 144
