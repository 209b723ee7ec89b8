"""Which release wrote a store is told by what only one of them leaves."""

from __future__ import annotations

import pytest

from engine.inspection import open_store
from engine.inspection.written_by import guess


@pytest.mark.golden
@pytest.mark.parametrize(("name", "release"), [("clean-5.3.3", "5.3"), ("clean-4.9.8", "4.9"),
                                               ("broker-orders", "5.3"), ("broker-orders-4.9.7", "4.9")])  # fmt: skip
def test_stores_of_both_releases_are_told_apart(golden, name, release):
    with open_store(golden(name)) as store:
        found = guess(store)
    assert found is not None
    assert found[0] == release
    assert found[1], "what speaks for it is said"


def test_where_nothing_speaks_nothing_is_guessed(tmp_path):
    from made_stores import healthy

    with open_store(healthy().write(tmp_path / "store", checkpoint=False)) as store:
        assert guess(store) is None
