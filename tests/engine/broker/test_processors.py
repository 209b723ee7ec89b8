"""Every request of the page has a processor."""

from __future__ import annotations

from engine.broker.processors import ANSWERS, MODULES
from engine.remoting.codes import BROKER


def test_every_request_is_answered() -> None:
    assert set(ANSWERS) == {one.code for one in BROKER}


def test_no_request_has_two_processors() -> None:
    assert sum(len(module.ANSWERS) for module in MODULES) == len(ANSWERS)


def test_a_processor_is_told_by_its_number() -> None:
    """Whoever looks for a request by its code finds it in the first words of what answers it."""
    for code, answer in ANSWERS.items():
        assert str(code) in (answer.__doc__ or "").partition(":")[0].replace(",", " ").split(), answer
