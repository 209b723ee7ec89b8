"""Which views there are, in the order of the rail, and where their panes come from."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from viewer.actions import BY_ID, VIEW_OF
from viewer.panes import Pane

ON_RAIL = ("view.units", "view.queues", "view.index", "view.positions", "view.findings")
RAIL = tuple((VIEW_OF[name], BY_ID[name].icon, BY_ID[name].text, BY_ID[name].keys[0]) for name in ON_RAIL)
PANES = (
    ("log", "units", "UnitsPane"),
    ("queue", "queues", "QueuesPane"),
    ("index", "index", "IndexPane"),
    ("positions", "positions", "PositionsPane"),
    ("findings", "findings", "FindingsPane"),
    ("groups", "groups", "GroupsPane"),
    ("config", "config", "ConfigPane"),
)


def make_panes() -> dict[str, Pane]:
    """One pane a view, without a store."""
    made: dict[str, Pane] = {}
    for view, module, name in PANES:
        found = find_spec(f"viewer.panes.{module}") is not None
        made[view] = getattr(import_module(f"viewer.panes.{module}"), name)() if found else Pane()
    return made
