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
MAKE_AFTER_MS = 300
"""Panes behind the one in front are made when that one stands, one at a turn of the loop."""
WORKER_AFTER_MS = 500
"""The worker process starts when the first rows are on the screen, not before them."""
FINDINGS_AFTER_MS = 1200
"""What is wrong is asked for when the first rows stand."""


def make_pane(view: str) -> Pane:
    """The pane of a view, without a store; its module is imported now."""
    module, name = PANES[view]
    made = getattr(import_module(f"viewer.panes.{module}"), name)()
    assert isinstance(made, Pane)
    return made
