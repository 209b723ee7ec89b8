"""Back and forward through places."""

from __future__ import annotations

from viewer.runtime import places
from viewer.runtime.history import LONGEST, History


def test_back_and_forward_lead_where_one_was() -> None:
    history = History()
    for offset in (1, 2, 3):
        history.visit(places.log(offset))
    assert history.back() == places.log(2)
    assert history.back() == places.log(1)
    assert history.back() is None
    assert history.forward() == places.log(2)
    assert history.can_go_forward


def test_new_step_forgets_what_lay_ahead() -> None:
    history = History()
    history.visit(places.log(1))
    history.visit(places.log(2))
    history.back()
    history.visit(places.log(9))
    assert not history.can_go_forward
    assert history.back() == places.log(1)


def test_same_place_twice_is_one_step() -> None:
    history = History()
    history.visit(places.log(1))
    history.visit(places.log(1))
    assert not history.can_go_back


def test_moving_the_selection_changes_the_step() -> None:
    history = History()
    history.visit(places.log(1))
    history.visit(places.queue("T", 0, 5))
    history.move(places.queue("T", 0, 9))
    assert history.back() == places.log(1)
    assert history.forward() == places.queue("T", 0, 9)


def test_does_not_grow_without_end() -> None:
    history = History()
    for offset in range(3 * LONGEST):
        history.visit(places.log(offset))
    steps = 0
    while history.back() is not None:
        steps += 1
    assert steps == LONGEST - 1
