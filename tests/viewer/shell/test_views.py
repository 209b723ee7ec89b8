"""The table of views: every other place that names a view agrees with it."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.cli.main import COMMANDS as CLI_COMMANDS
from viewer.look.assets import set_language, tr
from viewer.pane import Pane
from viewer.runtime.places import KINDS, SHOWN_IN, Place, parse, text_of
from viewer.shell.commands import BY_ID
from viewer.shell.crumbs import crumbs_of
from viewer.shell.views import AT_FOOT, BY_KIND, LISTENING, ON_RAIL, VIEWS, View, make_pane

each = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.kind)


def test_every_kind_of_place_is_a_view_or_is_shown_in_one() -> None:
    assert set(KINDS) == BY_KIND.keys() | SHOWN_IN.keys()
    assert not BY_KIND.keys() & SHOWN_IN.keys()
    assert set(SHOWN_IN.values()) <= BY_KIND.keys()
    assert max(Counter(KINDS).values()) == 1


@each
def test_each_view_has_exactly_one_command(view: View) -> None:
    command = BY_ID[view.command]
    assert (command.text, command.icon, command.keys) == (view.asks or view.title, view.icon, (view.keys,))
    assert command.cli == view.command_line
    assert sum(listed_view.command == view.command for listed_view in VIEWS) == 1


@each
def test_a_view_has_a_pane_a_crumb_and_a_command_line_that_exists(view: View, qtbot: object) -> None:
    pane = make_pane(view.kind)
    assert isinstance(pane, Pane)
    assert pane.view_id == view.kind
    pane.deleteLater()
    assert crumbs_of(Place(view.kind), None)[0][0] in {view.crumb or view.title, "Queues"}
    assert view.command_line[0] in CLI_COMMANDS or view.command_line[0] == "view"
    if not view.cli:
        assert parse(view.command_line[-1]) == Place(view.kind)
    assert text_of(Place(view.kind)) == view.kind


def test_the_rail_shows_views_with_icons() -> None:
    assert {view.rail for view in VIEWS} == {"top", "live", "foot", ""}
    assert all(view.icon for view in (*ON_RAIL, *LISTENING, *AT_FOOT))


def test_a_view_without_an_icon_marks_its_neighbour_on_the_rail() -> None:
    on_rail = {view.kind for view in VIEWS if view.rail}
    assert [view.kind for view in VIEWS if view.within] == ["requests", "waiting"]
    assert {view.within for view in VIEWS if view.within} <= on_rail


@each
def test_a_view_is_named_in_chinese(view: View) -> None:
    set_language("zh_CN")
    assert all(tr(output) != output for output in (view.title, view.asks, view.crumb) if output)
