"""Offsets that an administrator has set are known until they are told."""

from engine.broker.resets import Resets


def test_what_is_set_is_told_once() -> None:
    resets = Resets()
    resets.set("readers", "Orders", 1, 5)
    assert (resets.offset("readers", "Orders", 1), resets.offset("readers", "Orders", 0)) == (5, None)
    assert [resets.take("readers", "Orders", 1) for _ in range(2)] == [5, None]
