"""Named layouts can be saved, applied, replaced and deleted."""

from __future__ import annotations

from viewer.shell import named_layouts


def test_a_layout_is_saved_applied_and_deleted(run, window, golden):
    layouts = window.layouts
    assert not named_layouts.save(window, layouts, "early")  # no store is open
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    window.show_view("queue")
    assert named_layouts.save(window, layouts, " mine ")
    assert [(named_layout.name, named_layout.view) for named_layout in window.settings.named_layouts] == [
        ("mine", "queue")
    ]
    window.show_view("log")
    assert named_layouts.restore(window, layouts, "mine")
    assert window.view == "queue"
    assert not named_layouts.restore(window, layouts, "none")
    assert named_layouts.save(window, layouts, "mine")
    assert len(window.settings.named_layouts) == 1
    named_layouts.delete(window, "mine")
    assert list(window.settings.named_layouts) == []
    assert not named_layouts.save(window, layouts, "  ")
