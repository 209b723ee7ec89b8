"""Areas in areas, found by their keys."""

from __future__ import annotations

from viewer.widgets.areas import Area, find

ROOT = Area(
    "",
    "store",
    10,
    children=(Area("Orders", "Orders", 7, children=(Area("0", "queue 0", 7),)), Area("Paid", "Paid", 3)),
)


def test_a_path_of_keys_leads_to_an_area_or_nowhere():
    assert find(ROOT, ()) is ROOT
    results = find(ROOT, ("Orders", "0"))
    assert results is not None
    assert results.name == "queue 0"
    assert find(ROOT, ("Paid", "0", "more")) is None
    assert ROOT.child("Sent") is None
