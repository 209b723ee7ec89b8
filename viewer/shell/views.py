"""The table of views, in the order of the rail and the View menu. Everything that names a view is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from viewer.look.assets import words
from viewer.pane import Pane
from viewer.runtime.loop_imports import require_loop_thread
from viewer.runtime.places import Kind


@dataclass(frozen=True, slots=True)
class View:
    """A view. ``kind`` is its name everywhere, and the kind of place that stands for the whole view."""

    kind: Kind
    command: str
    """Id of the command that opens it."""
    title: str
    icon: str
    keys: str
    pane: str
    """``MODULE:CLASS``, imported when the view is first needed."""
    rail: str = ""
    """Position on the rail. ``top``; ``live``: below a line, for views that listen; ``foot``: apart at the bottom, for
    views that do something; empty: not on the rail.
    """
    within: Kind | None = None
    """The view that has it as another tab. That one is marked on the rail."""
    crumb: str = ""
    """Its name in the crumbs, if that is not the title."""
    asks: str = ""
    """The command's words if they are not the title. One that asks something first ends with an ellipsis."""
    cli: str = ""
    """The equal command line for the operation log; ``view STORE --at KIND`` if there is none."""
    begins: bool = False
    """True if it starts fresh each time it is opened. The others keep their last place."""
    alone: bool = False
    """True if a window without a store can show it."""

    @property
    def command_line(self) -> tuple[str, ...]:
        """The equal command line, with ``STORE`` for the store."""
        return (self.cli, "STORE") if self.cli else ("view", "STORE", "--at", self.kind)


VIEWS = (
    View(
        "log",
        "view.units",
        words("Log"),
        "log",
        "Ctrl+1",
        "viewer.log.pane:UnitsPane",
        "top",
        crumb=words("Commit log"),
    ),
    View("queue", "view.queues", words("Queues"), "queue", "Ctrl+2", "viewer.queues.pane:QueuesPane", "top"),
    View("index", "view.index", words("Index"), "index", "Ctrl+3", "viewer.index.pane:IndexPane", "top"),
    View(
        "positions",
        "view.positions",
        words("Positions"),
        "positions",
        "Ctrl+4",
        "viewer.positions.pane:PositionsPane",
        "top",
    ),
    View(
        "findings", "view.findings", words("Findings"), "findings", "Ctrl+5", "viewer.findings.pane:FindingsPane", "top"
    ),
    View("space", "view.space", words("Space"), "space", "Ctrl+6", "viewer.space.pane:SpacePane", "top", cli="space"),
    View(
        "cluster",
        "view.cluster",
        words("Cluster"),
        "cluster",
        "Ctrl+7",
        "viewer.cluster.pane:ClusterPane",
        "live",
        alone=True,
    ),
    View(
        "requests",
        "view.requests",
        words("Requests"),
        "requests",
        "Ctrl+Alt+7",
        "viewer.requests.pane:RequestsPane",
        within="cluster",
        alone=True,
    ),
    View("lab", "view.lab", words("Lab"), "lab", "Ctrl+8", "viewer.lab.pane:LabPane", "foot"),
    View(
        "groups",
        "view.groups",
        words("Consumer groups"),
        "follow",
        "Ctrl+Alt+3",
        "viewer.groups.pane:GroupsPane",
        cli="groups",
        begins=True,
    ),
    View(
        "config", "view.config", words("Config"), "config", "Ctrl+Alt+4", "viewer.config.pane:ConfigPane", begins=True
    ),
    View(
        "rows",
        "view.rows",
        words("Rows in a RocksDB"),
        "file",
        "Ctrl+Alt+5",
        "viewer.rows.pane:RowsPane",
        cli="rows",
        begins=True,
    ),
    View(
        "where",
        "view.where",
        words("Where is my message"),
        "search",
        "Ctrl+Shift+M",
        "viewer.where.pane:WherePane",
        asks=words("Where is my message…"),
        begins=True,
    ),
    View(
        "conversation",
        "view.conversation",
        words("Conversation"),
        "requests",
        "Ctrl+Alt+I",
        "viewer.conversation.pane:ConversationPane",
        asks=words("Follow a conversation…"),
        begins=True,
    ),
    View(
        "waiting",
        "view.waiting",
        words("Waiting"),
        "slow",
        "Ctrl+Alt+6",
        "viewer.waiting.pane:WaitingPane",
        within="queue",
        cli="waiting",
        begins=True,
    ),
    View(
        "timeline",
        "view.timeline",
        words("Timeline"),
        "record",
        "Ctrl+Alt+9",
        "viewer.timeline.pane:TimelinePane",
        cli="timeline",
        begins=True,
    ),
    View(
        "sql",
        "view.sql",
        words("Ask in SQL"),
        "sql",
        "Ctrl+Alt+1",
        "viewer.sql.pane:SqlPane",
        cli="sql",
    ),
    View(
        "compare",
        "view.compare",
        words("Two stores"),
        "compare",
        "Ctrl+Alt+0",
        "viewer.compare.pane:ComparePane",
    ),
    View("pipeline", "view.pipeline", words("Pipeline"), "pipeline", "Ctrl+Alt+8", "viewer.pipeline.pane:PipelinePane"),
    View(
        "bookmarks",
        "view.bookmarks",
        words("Bookmarks"),
        "bookmark",
        "Ctrl+Shift+B",
        "viewer.bookmarks.pane:BookmarksPane",
    ),
)
BY_KIND: dict[str, View] = {view.kind: view for view in VIEWS}
BY_COMMAND = {view.command: view for view in VIEWS}
ON_RAIL = tuple(view for view in VIEWS if view.rail == "top")
LISTENING = tuple(view for view in VIEWS if view.rail == "live")
AT_FOOT = tuple(view for view in VIEWS if view.rail == "foot")


def pane_module(kind: str) -> str:
    """Return the module of a view's pane."""
    return BY_KIND[kind].pane.partition(":")[0]


def load_pane(kind: str) -> type[Pane]:
    """Return the class of a view's pane. Its module is imported now, on the loop's thread."""
    module = pane_module(kind)
    require_loop_thread(module)
    return getattr(import_module(module), BY_KIND[kind].pane.partition(":")[2])  # type: ignore[no-any-return]


def make_pane(kind: str) -> Pane:
    """Make the pane of a view, without a store."""
    pane = load_pane(kind)()
    assert isinstance(pane, Pane)
    pane.view_id = kind
    return pane
