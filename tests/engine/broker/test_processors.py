"""Every request of the page has a processor, or stands among those that get code 3, with what they need."""

from __future__ import annotations

from engine.broker.processors import ANSWERS, MODULES, NOT_YET
from engine.remoting.codes import BROKER


def test_every_request_is_answered_or_named() -> None:
    asked = {one.code for one in BROKER}
    assert set(ANSWERS) == asked - set(NOT_YET)
    assert set(NOT_YET) <= asked


def test_no_request_has_two_processors() -> None:
    assert sum(len(module.ANSWERS) for module in MODULES) == len(ANSWERS)


def test_a_processor_is_told_by_its_number() -> None:
    """Whoever looks for a request by its code finds it in the first words of what answers it."""
    for code, answer in ANSWERS.items():
        assert str(code) in (answer.__doc__ or "").partition(":")[0].replace(",", " ").split(), answer
