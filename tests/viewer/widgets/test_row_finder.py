"""A row by its number."""

from __future__ import annotations

from viewer.widgets.row_finder import RowFinder


def test_of_numbers_asked_for_meanwhile_only_the_last_is_gone_to() -> None:
    asked: list[int] = []
    answers: list = []
    gone: list[int] = []
    finder = RowFinder(lambda n, found, failed: (asked.append(n), answers.append((found, failed))), gone.append, print)
    for number in (5, 6, 7):
        finder.ask(number)
    assert asked == [5]
    answers[0][0](500)
    assert (asked, gone) == ([5, 7], [])
    answers[1][0](700)
    assert gone == [700]
    finder.ask(8)
    finder.forget()
    answers[2][0](800)
    assert gone == [700]
    told: list[Exception] = []
    other = RowFinder(lambda _n, _found, failed: failed(OSError("gone")), gone.append, told.append)
    other.ask(1)
    assert [str(one) for one in told] == ["gone"]
