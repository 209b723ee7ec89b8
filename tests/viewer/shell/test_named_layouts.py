"""Named layouts can be saved, applied, replaced and deleted."""

from __future__ import annotations

from viewer.shell import named_layouts
from viewer.widgets.table_columns import column_id


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


def test_a_profile_brings_its_columns_and_histogram_back(run, window, golden):
    layouts = window.layouts
    assert not named_layouts.use_built_in(window, layouts, "operator")  # no store is open
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    table = window.panes["log"].table
    table.fitting.hide("tags")
    assert named_layouts.save(window, layouts, "no tags")
    assert named_layouts.use_built_in(window, layouts, "student")
    assert (window.view, window.settings.histogram_shown) == ("positions", False)
    assert table.fitting.kept.hidden == ["size", "crc", "Marks", "body"]
    assert named_layouts.restore(window, layouts, "no tags")
    assert (window.view, window.settings.histogram_shown) == ("log", True)
    assert table.fitting.kept.hidden == ["tags"]
    assert window.settings.columns("units.table") == {"hidden": ["tags"]}


def test_every_column_that_a_profile_hides_exists(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    names = {column_id(column) for column in window.panes["log"].table.kind.columns}
    for profile in named_layouts.BUILT_IN.values():
        assert set(profile.columns[named_layouts.UNITS].get("hidden", [])) <= names


def test_a_profile_is_renamed_only_to_a_free_name(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    for name in ("a", "b"):
        assert named_layouts.save(window, window.layouts, name)
    assert not named_layouts.rename(window, "a", "b")
    assert not named_layouts.rename(window, "a", " ")
    assert named_layouts.rename(window, "a", "c")
    assert [saved.name for saved in window.settings.named_layouts] == ["c", "b"]
