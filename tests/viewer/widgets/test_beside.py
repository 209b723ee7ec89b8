"""A place can be marked to be shown in a window of its own."""

from __future__ import annotations

from viewer.runtime import places
from viewer.widgets.beside import elsewhere


def test_a_place_is_marked_and_other_things_stay_as_they_are():
    place = places.log(42)
    marked = elsewhere(place)
    assert (marked.own, marked.offset, place.own) == (True, 42, False)
    assert elsewhere("a text") == "a text"
    assert elsewhere(None) is None
