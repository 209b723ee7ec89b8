"""The needs of disabled commands: one table for menus, palette, keys and buttons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
from viewer.runtime.places import Kind
from viewer.shell.views import BY_KIND

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow


@dataclass(frozen=True, slots=True)
class Need:
    """The need of a command in the views that have it. Without ``views``, it is the same in each view."""

    reason: str | Callable[[MainWindow], str]
    views: tuple[Kind, ...] = ()


STORE = words("Open a store first.")
TABLE = words("This view has no table in front: show one first.")
ROW = words("Select a row first.")
UNIT = words("Select a message first.")
LAB = words("Make a lab store or open one for writing first.")
TWO_TABS = words("This window has no other tab: open one first (Ctrl+N).")
TWO_STORES = words("Open two stores in tabs of this window first.")
CONNECT = words("Connect the Cluster view to a cluster first.")
DECLARE = words("Declare the cluster to be yours first (“This cluster is mine…” in Cluster).")
OWN_CLIENT = words("Select a client of your own in Cluster first.")
LAB_CLUSTER = words("Only in a cluster that the lab of this window serves (Lab, Serve).")


def _of_cluster(reason: str, *, is_own: bool = True) -> Need:
    """Return a need of the cluster: first a connection, then the declaration, then ``reason``."""

    def find_reason(window: MainWindow) -> str:
        cluster = window.workspace.cluster
        if cluster is None or cluster.model.state is None or cluster.model.recording:
            return CONNECT
        return DECLARE if is_own and not cluster.model.is_own else reason

    return Need(find_reason, ("cluster",))


def _of_lab(reason: str) -> Need:
    """Return a need of the lab: first a lab store, then ``reason``."""
    return Need(lambda window: reason if window.parts.lab.session.there else LAB)


NEEDS = {
    "tab.reopen": Need(words("No tab of this window was closed.")),
    "tab.": Need(TWO_TABS),
    "tab.compare": Need(TWO_STORES),
    "tab.link": Need(TWO_STORES),
    "store.dropConfig": Need(words("This store is read without a broker.conf.")),
    "edit.undo": Need(words("There is nothing to undo.")),
    "edit.redo": Need(words("There is nothing to redo.")),
    "go.back": Need(words("There is no earlier place.")),
    "go.forward": Need(words("There is no later place: go back first.")),
    "bookmark.": Need(words("Select a bookmark first."), ("bookmarks",)),
    "copy.out": Need(words("Look for a message first."), ("where",)),
    "copy.hex": Need(UNIT, ("log",)),
    "copy.c": Need(UNIT, ("log",)),
    "copy.python": Need(UNIT, ("log",)),
    "copy.base64": Need(UNIT, ("log",)),
    "filter.apply": Need(words("Type a filter first."), ("log", "requests")),
    "filter.clear": Need(words("There is no filter."), ("log", "requests")),
    "filter.save": Need(words("Type a filter first."), ("log",)),
    "mark.": Need(ROW, ("log",)),
    "ignore.": Need(ROW, ("log",)),
    "time.": Need(ROW, ("log",)),
    "view.inspector": Need(UNIT, ("log",)),
    "view.histogram": Need(TABLE, ("log", "queue", "findings")),
    "histogram.": Need(TABLE, ("log", "queue")),
    "colour.": Need(TABLE, ("log",)),
    "body.": Need(UNIT, ("log",)),
    "live.": Need(words("Nothing is shown over time: connect or follow first."), ("positions", "cluster")),
    "problem.": Need(TABLE, ("log", "queue", "index", "findings")),
    "same.key.": Need(UNIT, ("log", "requests")),
    "same.": Need(UNIT, ("log",)),
    "sql.": Need(words("Type a question first."), ("sql",)),
    "log.": Need(UNIT, ("log",)),
    "message.": Need(UNIT, ("log",)),
    "recovery.": Need(words("Try the start on a copy first (“Try on a copy…”)."), ("findings",)),
    "pipeline.run": Need(words("The pipeline runs already."), ("pipeline",)),
    "pipeline.": Need(words("No pipeline runs."), ("pipeline",)),
    "jobs.cancel": Need(words("No job is running.")),
    "requests.": Need(words("Record requests or open a recording first."), ("requests",)),
    "lab.write": Need(words("The lab has this store open for writing already.")),
    "lab.again": _of_lab(words("Put a message first.")),
    "lab.commit": _of_lab(words("The store has no transient pool (transientStorePoolEnable).")),
    "lab.start": _of_lab(words("The load runs already, or the power is cut.")),
    "lab.pause": _of_lab(words("Start the load first.")),
    "lab.stop": _of_lab(words("Start the load first.")),
    "lab.plug": _of_lab(words("Only in a lab store with the power on.")),
    "lab.recover": _of_lab(words("Cut the power first.")),
    "lab.recoverAgain": _of_lab(words("Recover the store first.")),
    "lab.copyTwo": Need(words("Compare two ways first (Two ways at once)."), ("lab",)),
    "lab.": _of_lab(words("The engine of the lab is busy, or the power is cut.")),
    "cluster.connect": Need(CONNECT, ("cluster",)),
    "cluster.pause": Need(CONNECT, ("cluster",)),
    "cluster.browse": _of_cluster(CONNECT, is_own=False),
    "cluster.copy": _of_cluster(CONNECT, is_own=False),
    "cluster.export": _of_cluster(CONNECT, is_own=False),
    "cluster.mine": _of_cluster(words("The lab of this window serves this cluster: it is yours."), is_own=False),
    "cluster.lessons": _of_cluster(CONNECT),
    "cluster.send": _of_cluster(DECLARE),
    "cluster.offsets": _of_cluster(DECLARE),
    "cluster.add.queues": _of_cluster(LAB_CLUSTER, is_own=False),
    "cluster.add.broker": _of_cluster(LAB_CLUSTER, is_own=False),
    "cluster.broker.end": _of_cluster(words("Select a broker in Cluster that you added to the lab first.")),
    "cluster.add.": _of_cluster(DECLARE),
    "cluster.cut": _of_cluster(words("Select a client in Cluster that is connected to a broker of the lab first.")),
    "cluster.": _of_cluster(OWN_CLIENT),
}
"""What a command needs, by its id or the begin of it; the longest begin counts. Other commands need :data:`TABLE`."""


def need_of(window: MainWindow, command: str, *, needs_store: bool) -> str:
    """Return what a disabled command needs now, in the current language."""
    is_open = window.session is not None
    if needs_store and not is_open and not window.alone:
        return tr(STORE)
    parts = command.split(".")
    begins = (command, *(".".join(parts[:count]) + "." for count in range(len(parts) - 1, 0, -1)))
    need = next((NEEDS[begin] for begin in begins if begin in NEEDS), Need(TABLE))
    if need.views and window.view not in need.views:
        titles = [tr(BY_KIND[kind].title) for kind in need.views if is_open or BY_KIND[kind].alone]
        return tr("Only in the view {views}.", views=" / ".join(titles)) if titles else tr(STORE)
    return tr(need.reason if isinstance(need.reason, str) else need.reason(window))
