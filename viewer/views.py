"""Which views there are, in the order of the rail, and where their panes come from."""

from __future__ import annotations

from importlib import import_module

from viewer.actions import BY_ID, VIEW_OF
from viewer.panes import Pane

ON_RAIL = ("view.units", "view.queues", "view.index", "view.positions", "view.findings")
RAIL = tuple((VIEW_OF[name], BY_ID[name].icon, BY_ID[name].text, BY_ID[name].keys[0]) for name in ON_RAIL)
PANES = {
    "log": ("units", "UnitsPane"),
    "queue": ("queues", "QueuesPane"),
    "index": ("index", "IndexPane"),
    "positions": ("positions", "PositionsPane"),
    "findings": ("findings", "FindingsPane"),
    "groups": ("groups", "GroupsPane"),
    "config": ("config", "ConfigPane"),
}


VIEWS = tuple(PANES)


def make_pane(view: str) -> Pane:
    """The pane of a view, without a store; its module is imported now."""
    module, name = PANES[view]
    made = getattr(import_module(f"viewer.panes.{module}"), name)()
    assert isinstance(made, Pane)
    return made
