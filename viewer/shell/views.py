"""Which views there are, in the order of the rail, and where their panes come from."""

from __future__ import annotations

from importlib import import_module

from viewer.pane import Pane
from viewer.shell.commands import BY_ID, VIEW_OF

ON_RAIL = ("view.units", "view.queues", "view.index", "view.positions", "view.findings", "view.space")
RAIL = tuple((VIEW_OF[name], BY_ID[name].icon, BY_ID[name].text, BY_ID[name].keys[0]) for name in ON_RAIL)
AT_FOOT = ("view.lab", "view.pipeline")
"""Views that do something stand apart, at the foot of the rail."""
FOOT = tuple((VIEW_OF[name], BY_ID[name].icon, BY_ID[name].text, BY_ID[name].keys[0]) for name in AT_FOOT)
PANES = {
    "log": ("viewer.log.pane", "UnitsPane"),
    "queue": ("viewer.queues.pane", "QueuesPane"),
    "index": ("viewer.index.pane", "IndexPane"),
    "positions": ("viewer.positions.pane", "PositionsPane"),
    "findings": ("viewer.findings.pane", "FindingsPane"),
    "space": ("viewer.space.pane", "SpacePane"),
    "groups": ("viewer.groups.pane", "GroupsPane"),
    "config": ("viewer.config.pane", "ConfigPane"),
    "lab": ("viewer.lab.pane", "LabPane"),
    "where": ("viewer.where.pane", "WherePane"),
    "bookmarks": ("viewer.keep.pane", "BookmarksPane"),
    "pipeline": ("viewer.pipeline.pane", "PipelinePane"),
}

USED_LATER = ("viewer.shell.palette_box",)
"""What a key press will ask for; loaded with the panes behind the one in front."""

VIEWS = tuple(PANES)
MAKE_AFTER_MS = 300
"""Panes behind the one in front are made when that one stands, one at a turn of the loop."""
ICONS_AFTER_MS = 60
MAKE_EVERY_MS = 20
WORKER_AFTER_MS = 500
"""The worker process starts when the first rows are on the screen, not before them."""
FINDINGS_AFTER_MS = 1200
"""What is wrong is asked for when the first rows stand."""


def load_pane(view: str) -> type[Pane]:
    """The class of a view's pane; its module is imported now, in whichever thread this is."""
    module, name = PANES[view]
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def load_ahead(view: str) -> None:
    """What making the pane of ``view`` and the first key presses will import; in a thread."""
    for name in USED_LATER:
        import_module(name)
    load_pane(view)


def make_pane(view: str) -> Pane:
    """The pane of a view, without a store."""
    made = load_pane(view)()
    assert isinstance(made, Pane)
    return made
