"""All commands, one row each: id, words, menu, handler, icon, keys.

Menus, palette, key sheet, help, tool bar and operation log are made from this table.

The id is the QAction's objectName. Keys are Qt's portable texts; the first is shown. The commands' QActions are
made here, translated, and greyed if they cannot run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence

from viewer.look.assets import tr, words
from viewer.look.theme import theme
from viewer.shell import command_handlers as do
from viewer.shell.command_handlers import Parts
from viewer.shell.command_needs import STORE, need_of
from viewer.shell.menu_strip import Menu, MenuLine
from viewer.shell.tab_window import move_to_own_window
from viewer.shell.views import BY_COMMAND, BY_KIND, VIEWS
from viewer.widgets.basics import icon

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

Does = Callable[[Parts], object]
IN_FRONT = None
"""Handler of a command that the current view runs (:meth:`viewer.pane.Pane.commands`). Greyed in other views."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a row of the table."""

    id: str
    text: str
    menu: str
    does: Does | None
    """The handler: a function, or :data:`IN_FRONT`."""
    icon: str = ""
    keys: tuple[str, ...] = ()
    needs: bool = True
    """True if it needs a store. It is greyed without one."""
    always_shown: bool = False
    """True if its menu lists it, greyed, even if the current view does not handle it."""
    submenu: str = ""
    """Title of the submenu that holds it."""
    short: str = ""
    """Its words in the submenu, if the submenu's title says the rest."""
    checkable: bool = False
    group: int = 0
    """A separator stands between commands of different groups."""
    tip: str = ""
    palette: bool = True
    noted: bool = True
    """True if the operation log notes it. False if it only moves the focus or writes its own entry."""
    cli: tuple[str, ...] = ()
    """The equal command line for the operation log; ``STORE`` stands for the store."""


def _opens(kind: str, menu: str, group: int = 0) -> Command:
    """Return the command that opens a view. Its words, icon and key come from the view."""
    view = BY_KIND[kind]
    return Command(
        view.command,
        view.asks or view.title,
        menu,
        lambda p: do.open_view(p.window, kind),
        icon=view.icon,
        keys=(view.keys,),
        needs=not view.alone,
        group=group,
        cli=view.command_line,
    )


MNEMONICS = {"File": "F", "Edit": "E", "View": "V", "Go": "G", "Analyse": "A", "Lab": "L", "Window": "W", "Help": "H"}
"""Alt with the letter opens the menu."""
MENUS = (
    words("File"),
    words("Edit"),
    words("View"),
    words("Go"),
    words("Analyse"),
    words("Lab"),
    words("Window"),
    words("Help"),
)
COMMANDS = (
    Command(
        "store.open",
        words("Open a store…"),
        "File",
        lambda p: do.ask_directory(p.window),
        icon="open",
        keys=("Ctrl+O",),
        needs=False,
    ),
    Command(
        "store.openFile",
        words("Open a capsule or one file of a log…"),
        "File",
        lambda p: do.ask_file(p.window),
        icon="file",
        keys=("Ctrl+Shift+O",),
        needs=False,
    ),
    Command(
        "store.openOverSsh",
        words("Open a store on another machine…"),
        "File",
        lambda p: do.ask_address(p.window),
        keys=("Ctrl+Alt+Shift+O",),
        needs=False,
    ),
    Command(
        "tab.new",
        words("New tab"),
        "File",
        lambda p: do.new_tab(p.window),
        icon="plus",
        keys=("Ctrl+N",),
        needs=False,
        tip=words("Open another store beside this one, in the same window"),
        noted=False,
    ),
    Command(
        "tab.reopen",
        words("Open the closed tab again"),
        "File",
        lambda p: do.reopen_tab(p.window),
        keys=("Ctrl+Alt+Shift+W",),
        needs=False,
        noted=False,
    ),
    Command(
        "store.dropConfig",
        words("Read the store without its broker.conf"),
        "File",
        lambda p: do.drop_config(p.window),
        noted=False,
    ),
    Command("store.close", words("Close the store"), "File", do.close_store, icon="close", keys=("Ctrl+Shift+W",)),
    Command("session.save", words("Save the session…"), "File", lambda p: p.workspace.ask_save(), keys=("Ctrl+S",)),
    Command("report.save", words("Save a report…"), "File", lambda p: p.workspace.ask_report(), keys=("Ctrl+Shift+E",)),
    Command(
        "session.restore",
        words("Open the last store at the next start"),
        "File",
        lambda p: p.workspace.choose_restore(),
        needs=False,
        checkable=True,
    ),
    Command(
        "export.table",
        words("Export the table…"),
        "File",
        IN_FRONT,
        always_shown=True,
        keys=("Ctrl+E",),
        group=1,
        noted=False,
    ),
    Command(
        "live.record",
        words("Record the positions…"),
        "File",
        IN_FRONT,
        icon="record",
        group=1,
        submenu=words("Recording of positions"),
    ),
    Command(
        "live.load",
        words("Open a recording of positions…"),
        "File",
        IN_FRONT,
        group=1,
        submenu=words("Recording of positions"),
    ),
    Command(
        "live.export",
        words("Export the samples of the positions…"),
        "File",
        IN_FRONT,
        group=1,
        submenu=words("Recording of positions"),
    ),
    Command(
        "window.close",
        words("Close this tab or window"),
        "File",
        lambda p: p.workspace.close(),
        keys=("Ctrl+W",),
        needs=False,
        group=2,
        tip=words("Closes the tab in front, and the window with its last tab"),
    ),
    Command(
        "window.closeTabs",
        words("Close the window with all tabs"),
        "File",
        lambda p: do.close_tabs(p.window),
        needs=False,
        group=2,
    ),
    Command(
        "app.quit",
        words("Quit"),
        "File",
        lambda _p: do.quit_all(),
        keys=("Ctrl+Q",),
        needs=False,
        group=2,
        tip=words("Closes every window"),
    ),
    Command("edit.undo", words("Undo"), "Edit", lambda p: p.workspace.edits.undo(), keys=("Ctrl+Z",)),
    Command("edit.redo", words("Redo"), "Edit", lambda p: p.workspace.edits.redo(), keys=("Ctrl+Y", "Ctrl+Shift+Z")),
    Command("copy.cell", words("Copy"), "Edit", IN_FRONT, always_shown=True),
    Command("copy.row", words("Copy the row"), "Edit", IN_FRONT, always_shown=True),
    Command(
        "copy.json",
        words("Copy as JSON"),
        "Edit",
        IN_FRONT,
        always_shown=True,
        keys=("Ctrl+Shift+C",),
        submenu=words("Copy as"),
    ),
    Command(
        "copy.cli",
        words("Copy as command"),
        "Edit",
        IN_FRONT,
        always_shown=True,
        keys=("Ctrl+Alt+C",),
        tip=words("The command line that gives the same answer"),
        noted=False,
        submenu=words("Copy as"),
    ),
    Command(
        "copy.out",
        words("Copy the command that copies this message out"),
        "Edit",
        IN_FRONT,
        tip=words("In Where: copies it into a new store, or saves what is left of it"),
        submenu=words("Copy as"),
    ),
    Command(
        "copy.place",
        words("Copy this place"),
        "Edit",
        lambda p: do.copy_place(p.window),
        keys=("Ctrl+Shift+L",),
        submenu=words("Copy as"),
    ),
    Command(
        "copy.hex", words("Copy bytes as hex"), "Edit", IN_FRONT, submenu=words("Copy bytes as"), short=words("Hex")
    ),
    Command(
        "copy.c",
        words("Copy bytes as C array"),
        "Edit",
        IN_FRONT,
        submenu=words("Copy bytes as"),
        short=words("C array"),
    ),
    Command(
        "copy.python", words("Copy bytes as Python"), "Edit", IN_FRONT, submenu=words("Copy bytes as"), short="Python"
    ),
    Command(
        "copy.base64", words("Copy bytes as Base64"), "Edit", IN_FRONT, submenu=words("Copy bytes as"), short="Base64"
    ),
    Command(
        "find.open",
        words("Find…"),
        "Edit",
        IN_FRONT,
        always_shown=True,
        icon="search",
        keys=("Ctrl+F",),
        group=1,
        noted=False,
    ),
    Command("find.next", words("Find next"), "Edit", IN_FRONT, always_shown=True, keys=("F3",), group=1),
    Command("find.previous", words("Find previous"), "Edit", IN_FRONT, always_shown=True, keys=("Shift+F3",), group=1),
    Command(
        "filter.focus",
        words("Filter the log"),
        "Edit",
        lambda p: do.focus_filter(p.window),
        icon="filter",
        keys=("Ctrl+L",),
        group=1,
        noted=False,
    ),
    Command("filter.apply", words("Apply the filter"), "Edit", IN_FRONT, group=1, noted=False),
    Command("filter.clear", words("Clear the filter"), "Edit", IN_FRONT, group=1),
    Command(
        "filter.cell",
        words("Only this value"),
        "Edit",
        IN_FRONT,
        keys=("Ctrl+Shift+F",),
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "filter.exclude",
        words("All but this value"),
        "Edit",
        IN_FRONT,
        keys=("Ctrl+Shift+X",),
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "filter.and",
        words("… and this value"),
        "Edit",
        IN_FRONT,
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "filter.or",
        words("… or this value"),
        "Edit",
        IN_FRONT,
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "filter.prepare",
        words("Write this value into the filter"),
        "Edit",
        IN_FRONT,
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "filter.copy",
        words("Copy this value as filter"),
        "Edit",
        IN_FRONT,
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "filter.save",
        words("Save the filter as a button…"),
        "Edit",
        IN_FRONT,
        keys=("Ctrl+Shift+S",),
        group=2,
        submenu=words("Filter by this value"),
    ),
    Command(
        "mark.toggle",
        words("Mark the row"),
        "Edit",
        IN_FRONT,
        keys=("Ctrl+M",),
        group=3,
        submenu=words("Marks and times"),
    ),
    Command(
        "mark.only",
        words("Only marked rows"),
        "Edit",
        IN_FRONT,
        group=3,
        submenu=words("Marks and times"),
    ),
    Command(
        "mark.clear",
        words("Remove all marks"),
        "Edit",
        IN_FRONT,
        group=3,
        submenu=words("Marks and times"),
    ),
    Command(
        "ignore.toggle",
        words("Ignore the row"),
        "Edit",
        IN_FRONT,
        keys=("Ctrl+D",),
        group=3,
        submenu=words("Marks and times"),
    ),
    Command(
        "time.reference",
        words("Count times from this row"),
        "Edit",
        IN_FRONT,
        keys=("Ctrl+Shift+T",),
        group=3,
        submenu=words("Marks and times"),
    ),
    *(_opens(view.kind, "View") for view in VIEWS if view.kind not in {"where", "pipeline", "bookmarks"}),
    Command(
        "view.inspector",
        words("Data inspector"),
        "View",
        IN_FRONT,
        keys=("Ctrl+I",),
        group=1,
        submenu=words("Table and bytes"),
    ),
    Command(
        "columns.choose",
        words("Columns of this table…"),
        "View",
        IN_FRONT,
        keys=("Ctrl+Alt+T",),
        group=1,
        submenu=words("Table and bytes"),
    ),
    Command(
        "view.histogram",
        words("Time histogram"),
        "View",
        IN_FRONT,
        keys=("Ctrl+H",),
        group=1,
        submenu=words("Table and bytes"),
    ),
    Command(
        "histogram.bytes",
        words("Messages or bytes over time"),
        "View",
        IN_FRONT,
        keys=("Ctrl+Alt+H",),
        group=1,
        submenu=words("Table and bytes"),
    ),
    Command(
        "colour.rules",
        words("Colouring rules…"),
        "View",
        IN_FRONT,
        keys=("Ctrl+Shift+G",),
        group=1,
        submenu=words("Table and bytes"),
    ),
    Command(
        "body.decode",
        words("Decode bodies of this topic as…"),
        "View",
        IN_FRONT,
        keys=("Ctrl+Shift+Y",),
        group=1,
        submenu=words("Table and bytes"),
    ),
    Command(
        "view.tree",
        words("Store tree"),
        "View",
        lambda p: do.show_tree(p.window),
        keys=("Ctrl+T",),
        checkable=True,
        group=1,
    ),
    Command(
        "view.follow",
        words("Follow the end of the log"),
        "View",
        lambda p: do.follow_end(p.window),
        icon="follow",
        keys=("Ctrl+J",),
        checkable=True,
        group=1,
    ),
    Command(
        "view.refresh",
        words("Refresh"),
        "View",
        lambda p: do.refresh_view(p.window),
        icon="refresh",
        keys=("F5",),
        group=1,
    ),
    Command(
        "live.pause",
        words("Pause or resume the live picture"),
        "View",
        IN_FRONT,
        icon="pause",
        group=1,
        tip=words("Space, in Positions"),
        submenu=words("Live picture"),
    ),
    Command(
        "live.fit",
        words("Show everything that was recorded"),
        "View",
        IN_FRONT,
        group=1,
        tip=words("F, in Positions"),
        submenu=words("Live picture"),
    ),
    Command(
        "live.now",
        words("Back to live"),
        "View",
        IN_FRONT,
        group=1,
        submenu=words("Live picture"),
    ),
    Command(
        "live.play",
        words("Replay the positions"),
        "View",
        IN_FRONT,
        icon="play",
        group=1,
        submenu=words("Live picture"),
    ),
    Command(
        "zoom.in",
        words("Larger"),
        "View",
        lambda p: p.window.zoom(theme.target_zoom + 10),
        keys=("Ctrl++", "Ctrl+="),
        needs=False,
        group=2,
        submenu=words("Appearance"),
    ),
    Command(
        "zoom.out",
        words("Smaller"),
        "View",
        lambda p: p.window.zoom(theme.target_zoom - 10),
        keys=("Ctrl+-",),
        needs=False,
        group=2,
        submenu=words("Appearance"),
    ),
    Command(
        "zoom.reset",
        words("Normal size"),
        "View",
        lambda p: p.window.zoom(100),
        keys=("Ctrl+0",),
        needs=False,
        group=2,
        submenu=words("Appearance"),
    ),
    Command(
        "theme.system",
        words("Colours as the desktop"),
        "View",
        lambda p: do.set_scheme(p.window, "system"),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
    ),
    Command(
        "theme.light",
        words("Light colours"),
        "View",
        lambda p: do.set_scheme(p.window, "light"),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
    ),
    Command(
        "theme.dark",
        words("Dark colours"),
        "View",
        lambda p: do.set_scheme(p.window, "dark"),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
    ),
    Command(
        "theme.contrast",
        words("High contrast"),
        "View",
        lambda p: do.set_contrast(p.window, not theme.contrast),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
    ),
    Command(
        "theme.motion",
        words("Less motion"),
        "View",
        lambda p: do.set_motion(p.window, theme.still),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
        tip=words("No glow and fade, no frame after a jump, no blinking cursor"),
    ),
    Command(
        "language.en",
        "English",
        "View",
        lambda p: do.set_language(p.window, "en"),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
    ),
    Command(
        "language.zh_CN",
        "简体中文",
        "View",
        lambda p: do.set_language(p.window, "zh_CN"),
        needs=False,
        checkable=True,
        group=3,
        submenu=words("Appearance"),
    ),
    Command(
        "go.back",
        words("Back"),
        "Go",
        lambda p: p.window.step(p.window.history.back()),
        icon="back",
        keys=("Alt+Left",),
    ),
    Command(
        "go.forward",
        words("Forward"),
        "Go",
        lambda p: p.window.step(p.window.history.forward()),
        icon="forward",
        keys=("Alt+Right",),
    ),
    Command("go.to", words("Go to…"), "Go", lambda p: do.go_to(p.window), icon="go-to", keys=("Ctrl+G",), noted=False),
    Command(
        "finding.next",
        words("Next finding, from anywhere"),
        "Go",
        lambda p: p.workspace.next_finding(1),
        keys=("F4",),
        group=2,
        submenu=words("Findings, problems and marks"),
    ),
    Command(
        "finding.previous",
        words("Previous finding, from anywhere"),
        "Go",
        lambda p: p.workspace.next_finding(-1),
        keys=("Shift+F4",),
        group=2,
        submenu=words("Findings, problems and marks"),
    ),
    Command(
        "bookmark.here",
        words("Bookmark this place…"),
        "Go",
        lambda p: p.workspace.bookmark(),
        icon="bookmark",
        keys=("Ctrl+B",),
        group=3,
    ),
    _opens("bookmarks", "Go", 3),
    Command("bookmark.edit", words("Change the bookmark…"), "Go", IN_FRONT, group=3),
    Command("bookmark.remove", words("Remove the bookmark"), "Go", IN_FRONT, group=3),
    Command(
        "go.beside", words("Places beside this one…"), "Go", lambda p: p.window.top.crumbs.drop(), keys=("Alt+Down",)
    ),
    Command("go.first", words("First row"), "Go", IN_FRONT, always_shown=True, keys=("Ctrl+Home",), group=1),
    Command("go.last", words("Last row"), "Go", IN_FRONT, always_shown=True, keys=("Ctrl+End",), group=1),
    Command("list.next", words("Next row"), "Go", IN_FRONT, always_shown=True, keys=("F8",), group=2, noted=False),
    Command(
        "list.previous", words("Previous row"), "Go", IN_FRONT, always_shown=True, keys=("F7",), group=2, noted=False
    ),
    Command(
        "problem.next",
        words("Next problem"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+Down",),
        group=2,
        submenu=words("Findings, problems and marks"),
    ),
    Command(
        "problem.previous",
        words("Previous problem"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+Up",),
        group=2,
        submenu=words("Findings, problems and marks"),
    ),
    Command(
        "mark.next",
        words("Next marked row"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+Shift+Down",),
        group=2,
        submenu=words("Findings, problems and marks"),
    ),
    Command(
        "mark.previous",
        words("Previous marked row"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+Shift+Up",),
        group=2,
        submenu=words("Findings, problems and marks"),
    ),
    Command(
        "same.key.next",
        words("Next with the same key"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+.",),
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.key.previous",
        words("Previous with the same key"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+,",),
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.key.all",
        words("All with the same key"),
        "Go",
        IN_FRONT,
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.queue.next",
        words("Next in the same queue"),
        "Go",
        IN_FRONT,
        keys=("Alt+.",),
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.queue.previous",
        words("Previous in the same queue"),
        "Go",
        IN_FRONT,
        keys=("Alt+,",),
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.queue.all",
        words("All of the same queue"),
        "Go",
        IN_FRONT,
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.transaction.next",
        words("Next of the same transaction"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+Alt+.",),
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.transaction.previous",
        words("Previous of the same transaction"),
        "Go",
        IN_FRONT,
        keys=("Ctrl+Alt+,",),
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command(
        "same.transaction.all",
        words("All of the same transaction"),
        "Go",
        IN_FRONT,
        group=4,
        submenu=words("Same key, queue or transaction"),
    ),
    Command("frequency.open", words("How often each value occurs"), "Analyse", IN_FRONT, keys=("Shift+F",)),
    Command(
        "trace.open", words("Trace a key…"), "Analyse", lambda p: do.trace_key(p.window), icon="index", keys=("Ctrl+K",)
    ),
    _opens("where", "Analyse"),
    Command("sql.run", words("Ask the question"), "Analyse", IN_FRONT, icon="play", keys=("Ctrl+Return",), noted=False),
    Command("sql.explain", words("Explain the question"), "Analyse", IN_FRONT, keys=("Ctrl+Alt+X",), noted=False),
    Command("sql.bodies", words("Questions with bodies, or without"), "Analyse", IN_FRONT, noted=False),
    Command("log.resend", words("Send again…"), "Analyse", IN_FRONT, submenu=words("Send to a cluster"), noted=False),
    Command(
        "message.copy",
        words("Send a copy…"),
        "Analyse",
        IN_FRONT,
        submenu=words("Send to a cluster"),
        tip=words("To the connected cluster, if you declared it to be yours"),
        noted=False,
    ),
    Command(
        "check.run",
        words("Check the whole store"),
        "Analyse",
        lambda p: do.in_findings(p.window, "check.run"),
        icon="findings",
        keys=("Ctrl+Shift+K",),
        cli=("check", "STORE"),
    ),
    Command(
        "repair.show",
        words("What can be mended…"),
        "Analyse",
        lambda p: do.in_findings(p.window, "repair.show"),
        cli=("repair", "STORE"),
    ),
    Command(
        "recovery.preview",
        words("Recovery: show what the next start does"),
        "Analyse",
        lambda p: do.in_findings(p.window, "recovery.preview"),
        icon="positions",
        keys=("Ctrl+Shift+R",),
        cli=("recover", "STORE", "--plan"),
        submenu=words("Recovery"),
    ),
    Command(
        "recovery.save",
        words("Save the recovery plan…"),
        "Analyse",
        lambda p: do.in_findings(p.window, "recovery.save"),
        keys=("Ctrl+Alt+E",),
        submenu=words("Recovery"),
    ),
    Command(
        "recovery.try",
        words("Try recovery on a copy…"),
        "Analyse",
        lambda p: do.in_findings(p.window, "recovery.try"),
        keys=("Ctrl+Alt+Y",),
        submenu=words("Recovery"),
    ),
    Command(
        "recovery.again",
        words("Recover the copy again"),
        "Analyse",
        IN_FRONT,
        keys=("Ctrl+Alt+A",),
        submenu=words("Recovery"),
    ),
    Command(
        "recovery.open",
        words("Open the copy that was recovered"),
        "Analyse",
        IN_FRONT,
        keys=("Ctrl+Alt+O",),
        submenu=words("Recovery"),
    ),
    Command(
        "dispatch.rebuild", words("Rebuild queues and index elsewhere…"), "Analyse", lambda p: p.workspace.ask_rebuild()
    ),
    _opens("pipeline", "Analyse", 1),
    Command(
        "pipeline.run",
        words("Run the pipeline job"),
        "Analyse",
        IN_FRONT,
        icon="play",
        keys=("Ctrl+Alt+Shift+R",),
        group=1,
        submenu=words("Pipeline job"),
    ),
    Command(
        "pipeline.cancel",
        words("Cancel the pipeline job"),
        "Analyse",
        IN_FRONT,
        group=1,
        submenu=words("Pipeline job"),
    ),
    Command(
        "pipeline.copy",
        words("Copy the pipeline job as command"),
        "Analyse",
        IN_FRONT,
        group=1,
        submenu=words("Pipeline job"),
    ),
    Command(
        "jobs.cancel",
        words("Stop all work"),
        "Analyse",
        lambda p: p.window.jobs.cancel_all(),
        icon="stop",
        keys=("Ctrl+Esc",),
        group=1,
    ),
    Command(
        "cluster.connect",
        words("Connect to the cluster, or disconnect"),
        "Analyse",
        IN_FRONT,
        needs=False,
        group=2,
        noted=False,
    ),
    Command(
        "cluster.pause",
        words("Pause or resume reading the cluster"),
        "Analyse",
        IN_FRONT,
        icon="pause",
        needs=False,
        group=2,
        tip=words("Space, in Cluster"),
    ),
    Command("cluster.copy", words("Copy the cluster as Markdown"), "Analyse", IN_FRONT, needs=False, group=2),
    Command("cluster.export", words("Export the cluster as Markdown…"), "Analyse", IN_FRONT, needs=False, group=2),
    Command(
        "requests.record",
        words("Record requests, or stop"),
        "Analyse",
        IN_FRONT,
        icon="record",
        needs=False,
        group=3,
        noted=False,
        submenu=words("Requests"),
    ),
    Command(
        "requests.pause",
        words("Pause or resume the requests"),
        "Analyse",
        IN_FRONT,
        icon="pause",
        needs=False,
        group=3,
        tip=words("Space, in Requests"),
        submenu=words("Requests"),
    ),
    Command(
        "requests.open",
        words("Open a file of requests…"),
        "Analyse",
        IN_FRONT,
        icon="open",
        needs=False,
        group=3,
        noted=False,
        submenu=words("Requests"),
    ),
    Command(
        "requests.export",
        words("Export the requests…"),
        "Analyse",
        IN_FRONT,
        icon="save",
        needs=False,
        group=3,
        submenu=words("Requests"),
    ),
    Command(
        "requests.replay",
        words("Replay the requests into a new store…"),
        "Analyse",
        IN_FRONT,
        icon="play",
        needs=False,
        group=3,
        noted=False,
        submenu=words("Requests"),
    ),
    Command(
        "requests.client",
        words("Only this client's requests, or all"),
        "Analyse",
        IN_FRONT,
        needs=False,
        group=3,
        submenu=words("Requests"),
    ),
    Command(
        "requests.opaque",
        words("Only this opaque, or all"),
        "Analyse",
        IN_FRONT,
        needs=False,
        group=3,
        submenu=words("Requests"),
    ),
    Command(
        "requests.frames",
        words("Exchanges or frames as rows"),
        "Analyse",
        IN_FRONT,
        needs=False,
        group=3,
        submenu=words("Requests"),
    ),
    Command(
        "requests.half",
        words("The other half of the exchange"),
        "Analyse",
        IN_FRONT,
        needs=False,
        group=3,
        tip=words("Alt+Enter, in Requests"),
        submenu=words("Requests"),
    ),
    Command(
        "lab.create",
        words("Make a lab store…"),
        "Lab",
        lambda p: p.lab.create(),
        icon="lab",
        keys=("Ctrl+Shift+N",),
        needs=False,
    ),
    Command(
        "lab.openFolder", words("Open a lab store…"), "Lab", lambda p: p.lab.open_folder(), icon="open", needs=False
    ),
    Command(
        "lab.write", words("Open this store for writing…"), "Lab", lambda p: p.lab.open_for_writing(), always_shown=True
    ),
    Command("lab.put", words("Put the message"), "Lab", lambda p: p.lab.put(), group=1),
    Command("lab.again", words("Put again"), "Lab", lambda p: p.lab.put_again(), keys=("Ctrl+Alt+Return",), group=1),
    Command(
        "lab.start",
        words("Start the load"),
        "Lab",
        lambda p: p.lab.load(),
        icon="play",
        keys=("Ctrl+Alt+L",),
        group=2,
        submenu=words("Load"),
    ),
    Command(
        "lab.pause",
        words("Pause or resume the load"),
        "Lab",
        lambda p: p.lab.pause(),
        icon="pause",
        keys=("Ctrl+Alt+P",),
        group=2,
        submenu=words("Load"),
    ),
    Command(
        "lab.stop",
        words("Stop the load"),
        "Lab",
        lambda p: p.lab.stop(),
        icon="stop",
        keys=("Ctrl+Alt+S",),
        group=2,
        submenu=words("Load"),
    ),
    Command("lab.flush", words("Flush now"), "Lab", lambda p: p.lab.flush(), keys=("Ctrl+Alt+F",), group=3),
    Command("lab.commit", words("Commit now"), "Lab", lambda p: p.lab.commit(), keys=("Ctrl+Alt+M",), group=3),
    Command(
        "lab.serve.show", words("Serve the store to clients"), "Lab", lambda p: p.lab.serve(), icon="requests", group=4
    ),
    Command(
        "lab.plug",
        words("Cut the power…"),
        "Lab",
        lambda p: p.lab.ask_to_cut_power(),
        icon="plug",
        keys=("Ctrl+Alt+U",),
        group=4,
    ),
    Command("lab.recover", words("Recover"), "Lab", lambda p: p.lab.recover(), keys=("Ctrl+Alt+R",), group=4),
    Command(
        "lab.recoverAgain",
        words("Recover the kept disk again"),
        "Lab",
        lambda p: p.lab.recover_again(),
        keys=("Ctrl+Alt+G",),
        group=4,
    ),
    Command(
        "lab.close",
        words("Close the store for writing"),
        "Lab",
        lambda p: p.lab.close(),
        icon="stop",
        keys=("Ctrl+Alt+W",),
        group=4,
    ),
    Command("lab.compare", words("Two ways at once"), "Lab", lambda p: p.lab.compare(), keys=("Ctrl+Alt+2",), group=5),
    Command("lab.copyTwo", words("Copy the comparison as Markdown"), "Lab", IN_FRONT, keys=("Ctrl+Alt+K",), group=5),
    Command(
        "cluster.add.producer",
        words("Add a producer of your own…"),
        "Lab",
        IN_FRONT,
        needs=False,
        group=6,
        tip=words("Shift+Ins, in Cluster"),
        noted=False,
    ),
    Command(
        "cluster.add.consumer",
        words("Add a consumer of your own…"),
        "Lab",
        IN_FRONT,
        needs=False,
        group=6,
        tip=words("Ins, in Cluster"),
        noted=False,
    ),
    Command(
        "cluster.add.queues",
        words("Give a topic more queues…"),
        "Lab",
        IN_FRONT,
        needs=False,
        group=6,
        tip=words("+, in Cluster, of a cluster that the lab serves"),
        noted=False,
    ),
    Command(
        "cluster.add.broker",
        words("Add a broker to the lab…"),
        "Lab",
        IN_FRONT,
        needs=False,
        group=6,
        tip=words("Ctrl+Ins, in Cluster, of a cluster that the lab serves"),
        noted=False,
    ),
    Command(
        "cluster.browse",
        words("Messages of a topic…"),
        "Analyse",
        IN_FRONT,
        keys=("Ctrl+Alt+B",),
        needs=False,
        tip=words("Read at the brokers of the connected cluster"),
        noted=False,
    ),
    Command(
        "cluster.mine",
        words("The cluster is mine, or not any more…"),
        "Analyse",
        IN_FRONT,
        needs=False,
        tip=words("Only on a cluster that is yours, the window can send and change offsets"),
        noted=False,
        submenu=words("Act on the cluster"),
    ),
    Command(
        "cluster.send",
        words("Send a message…"),
        "Analyse",
        IN_FRONT,
        keys=("Ctrl+Alt+Z",),
        needs=False,
        tip=words("On a cluster that you declared to be yours"),
        noted=False,
        submenu=words("Act on the cluster"),
    ),
    Command(
        "cluster.offsets",
        words("Move the offsets of a group…"),
        "Analyse",
        IN_FRONT,
        keys=("Ctrl+Alt+V",),
        needs=False,
        tip=words("On a cluster that you declared to be yours"),
        noted=False,
        submenu=words("Act on the cluster"),
    ),
    Command(
        "cluster.lessons",
        words("Lessons of the cluster"),
        "Lab",
        IN_FRONT,
        keys=("Ctrl+Alt+N",),
        needs=False,
        group=6,
        noted=False,
    ),
    Command(
        "cluster.slow",
        words("Slow the chosen client, or end that"),
        "Lab",
        IN_FRONT,
        icon="slow",
        needs=False,
        group=7,
        noted=False,
    ),
    Command(
        "cluster.client.pause",
        words("Pause or resume the chosen client"),
        "Lab",
        IN_FRONT,
        icon="pause",
        needs=False,
        group=7,
        noted=False,
    ),
    Command(
        "cluster.cut",
        words("Cut the connection of the chosen client"),
        "Lab",
        IN_FRONT,
        icon="cut",
        needs=False,
        group=7,
        tip=words("Ctrl+Del, in Cluster"),
        noted=False,
    ),
    Command(
        "cluster.stop",
        words("Stop the chosen client"),
        "Lab",
        IN_FRONT,
        icon="stop",
        needs=False,
        group=7,
        tip=words("Del, in Cluster"),
        noted=False,
    ),
    Command(
        "cluster.kill",
        words("Kill the chosen client"),
        "Lab",
        IN_FRONT,
        icon="kill",
        needs=False,
        group=7,
        tip=words("Shift+Del, in Cluster"),
        noted=False,
    ),
    Command(
        "cluster.broker.end",
        words("End the chosen broker of the lab"),
        "Lab",
        IN_FRONT,
        icon="stop",
        needs=False,
        group=7,
        tip=words("Del, in Cluster"),
        noted=False,
    ),
    Command(
        "window.menus",
        words("Open the menus"),
        "Window",
        lambda p: p.window.strip.open_menus(),
        keys=("F10",),
        needs=False,
    ),
    Command("pane.next", words("Next pane"), "Window", lambda p: do.next_pane(p.window, 1), keys=("F6",), noted=False),
    Command(
        "pane.previous",
        words("Previous pane"),
        "Window",
        lambda p: do.next_pane(p.window, -1),
        keys=("Shift+F6",),
        noted=False,
    ),
    Command(
        "tab.next",
        words("Next tab"),
        "Window",
        lambda p: do.step_tab(p.window, 1),
        keys=("Ctrl+PgDown", "Ctrl+Tab"),
        needs=False,
        submenu=words("Tabs"),
        noted=False,
    ),
    Command(
        "tab.previous",
        words("Previous tab"),
        "Window",
        lambda p: do.step_tab(p.window, -1),
        keys=("Ctrl+PgUp", "Ctrl+Shift+Tab"),
        needs=False,
        submenu=words("Tabs"),
        noted=False,
    ),
    Command(
        "tab.own",
        words("Move this tab to a window of its own"),
        "Window",
        lambda p: move_to_own_window(p.window),
        needs=False,
        submenu=words("Tabs"),
        noted=False,
    ),
    Command(
        "tab.compare",
        words("Compare with the store of the last tab"),
        "Window",
        lambda p: p.workspace.comparison.show_last_tab_on_one_page(),
        keys=("Ctrl+Alt+Q",),
        submenu=words("Tabs"),
        tip=words("With the tab that was in front before this one, on one page"),
    ),
    Command(
        "tab.link",
        words("Link with the store of the last tab, side by side"),
        "Window",
        lambda p: p.workspace.comparison.link_last_tab(),
        submenu=words("Tabs"),
        tip=words("Moves that tab to a window beside this one; both go to the same place of the log"),
    ),
    Command(
        "compare.open",
        words("Compare with another store…"),
        "Window",
        lambda p: p.workspace.comparison.ask_on_one_page(),
        keys=("Ctrl+Shift+D",),
    ),
    Command(
        "compare.windows",
        words("Compare with another store in a linked window…"),
        "Window",
        lambda p: p.workspace.comparison.ask(),
    ),
    Command(
        "compare.next",
        words("Next difference of the two stores"),
        "Window",
        lambda p: p.workspace.comparison.next(),
        keys=("Ctrl+Shift+J",),
    ),
    Command(
        "compare.previous",
        words("Previous difference of the two stores"),
        "Window",
        lambda p: p.workspace.comparison.previous(),
        keys=("Ctrl+Alt+J",),
    ),
    Command(
        "compare.table",
        words("All differences of the two stores…"),
        "Window",
        lambda p: p.workspace.comparison.table(),
        keys=("Ctrl+Alt+D",),
    ),
    Command(
        "window.own",
        words("This place in a window of its own"),
        "Window",
        lambda p: p.workspace.show_here_beside(),
        keys=("Ctrl+Shift+Return",),
    ),
    Command(
        "profile.operator",
        words("Profile Operator"),
        "Window",
        lambda p: do.use_profile(p, "operator"),
        group=1,
        submenu=words("Profiles"),
        short=words("Operator"),
        tip=words("Findings in front, the time histogram over the log, and the columns that an incident needs"),
    ),
    Command(
        "profile.developer",
        words("Profile Developer"),
        "Window",
        lambda p: do.use_profile(p, "developer"),
        group=1,
        submenu=words("Profiles"),
        short=words("Developer"),
        tip=words("The log in front with every column; no histogram, so that rows, fields and bytes have room"),
    ),
    Command(
        "profile.student",
        words("Profile Student"),
        "Window",
        lambda p: do.use_profile(p, "student"),
        group=1,
        submenu=words("Profiles"),
        short=words("Student"),
        tip=words("Positions in front, and few columns: where a message is, not how large"),
    ),
    Command(
        "layout.save",
        words("Save the layout as a profile…"),
        "Window",
        do.save_layout,
        group=1,
        submenu=words("Profiles"),
    ),
    Command(
        "layout.choose",
        words("All profiles…"),
        "Window",
        do.choose_layout,
        group=1,
        submenu=words("Profiles"),
        tip=words("Use a profile, rename it or delete it"),
    ),
    Command("layout.reset", words("Reset the layout"), "Window", do.reset_layout, needs=False, group=1),
    Command(
        "view.operations",
        words("Operation log…"),
        "Window",
        do.show_operations,
        keys=("Ctrl+Shift+H",),
        needs=False,
        group=2,
        noted=False,
    ),
    Command(
        "palette.open",
        words("All commands…"),
        "Help",
        lambda p: p.window.open_palette(),
        icon="search",
        keys=("Ctrl+Shift+P",),
        needs=False,
        noted=False,
        palette=False,
    ),
    Command("help.pages", words("Help"), "Help", lambda p: p.workspace.show_help(), keys=("F1",), needs=False),
    Command("help.keys", words("All keys"), "Help", lambda p: _show_keys(p.window), keys=("?",), needs=False),
    Command(
        "help.tour",
        words("Guided tour"),
        "Help",
        lambda p: p.window.jobs.start(p.workspace.tour()),
        icon="tour",
        needs=False,
    ),
    Command(
        "help.logs",
        words("Show the folder of settings and crash reports"),
        "Help",
        lambda p: do.show_logs(p.window),
        needs=False,
        group=1,
    ),
    Command("help.about", words("About Storescope"), "Help", lambda p: do.show_about(p.window), needs=False, group=1),
)
ARROWS = {"Left": "←", "Right": "→", "Up": "↑", "Down": "↓"}
BY_ID = {command.id: command for command in COMMANDS}


def key_caps(keys: str) -> str:
    """Return ``Ctrl+Shift+P`` as it is printed on key caps: ``Ctrl Shift P``."""
    if keys == "Ctrl++":
        return "Ctrl +"
    return " ".join(ARROWS.get(key, key) for key in keys.split("+"))


def in_words(command: str) -> str:
    """Return a command's words and key as the help writes them."""
    definition = BY_ID[command]
    text = tr(definition.text).rstrip("…")
    return f"**{text}** ({key_caps(definition.keys[0])})" if definition.keys else f"**{text}**"


def keys_by_menu() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return for each menu its name and its commands that have keys, as (key caps, words)."""
    menus = (
        (tr(menu), [(key_caps(c.keys[0]), tr(c.text)) for c in COMMANDS if c.menu == menu and c.keys]) for menu in MENUS
    )
    return [(menu, lines) for menu, lines in menus if lines]


def _show_keys(window: MainWindow) -> None:
    from viewer.shell.help_box import KeySheet

    KeySheet(window, keys_by_menu()).open()


def make_actions(parts: Parts) -> dict[str, QAction]:
    """Make one QAction of the window for each command, with the command's id as its name."""
    actions: dict[str, QAction] = {}
    for command in COMMANDS:
        action = QAction(parts.window)
        action.setObjectName(command.id)
        action.setCheckable(command.checkable)
        action.setShortcuts([QKeySequence(keys) for keys in command.keys])
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.triggered.connect(partial(_run_command, parts, command))
        if command.noted:
            parts.changes.operations.listen(action, command.cli, partial(_words_of, command))
        parts.window.addAction(action)
        actions[command.id] = action
    retranslate_actions(actions)
    return actions


def _words_of(command: Command) -> str:
    return tr(command.text)


def _run_command(parts: Parts, command: Command, _on: bool = False) -> None:
    """Run a command: its own handler, or the one of the current view."""
    if command.does is not None:
        command.does(parts)
        return
    answer = parts.window.pane_commands().get(command.id)
    if answer is not None:
        answer()


MORE_VIEWS = words("More views")


def menus_of(actions: Mapping[str, QAction]) -> list[Menu]:
    """Return every menu with its actions in the order of the commands.

    The View menu begins with all views, in the rail's order. Views that are not on the rail are in a submenu.
    """
    return [
        Menu(
            name,
            MNEMONICS[name],
            [MenuLine(command.group, actions[command.id], command.submenu) for command in _listed_in(name)],
        )
        for name in MENUS
    ]


def _listed_in(menu: str) -> list[Command]:
    commands = [command for command in COMMANDS if command.menu == menu]
    if menu == "View":
        view_commands = [
            replace(BY_ID[view.command], group=0, submenu="" if view.rail else MORE_VIEWS) for view in VIEWS
        ]
        return [*view_commands, *(command for command in commands if command.id not in BY_COMMAND)]
    return commands


def retranslate_actions(actions: Mapping[str, QAction]) -> None:
    """Set the words of all actions in the current language."""
    for command in COMMANDS:
        action = actions[command.id]
        action.setText(tr(command.short or command.text))
        action.setToolTip(tr(command.tip or command.text))


def draw_icons(actions: Mapping[str, QAction]) -> None:
    """Draw the icons in the current colours. They are not visible before a menu opens."""
    for command in COMMANDS:
        if command.icon:
            actions[command.id].setIcon(icon(command.icon, "text2", 18))


def need_of_key(actions: Mapping[str, QAction], event: QKeyEvent) -> str:
    """Return what the disabled command of a key needs; "" if the key has none."""
    keys = QKeySequence(event.keyCombination())
    return next(
        (action.toolTip() for action in actions.values() if keys in action.shortcuts() and not action.isEnabled()), ""
    )


LISTED_IF_ENABLED = frozenset(("store.dropConfig",))
"""Commands of rare states: they would only be grey in the menu of everybody else."""


def _belongs_in_menu(command: Command, front: str) -> bool:
    """Return True if the menu lists a disabled command: one of the window or of the view in ``front``."""
    if command.id in LISTED_IF_ENABLED:
        return False
    view = command.id.partition(".")[0]
    if view in BY_KIND:
        return view == front
    return command.does is not None


def enable_actions(parts: Parts) -> None:
    """Enable the commands that can run now and grey the rest.

    Commands of a view that is not in front leave their menu.
    """
    window = parts.window
    answered = window.pane_commands()
    is_open = window.session is not None and window.pages.currentIndex() == 0
    alone = window.alone
    able = {
        "go.back": (is_open and window.history.can_go_back) or alone,
        "go.forward": (is_open or alone) and window.history.can_go_forward,
        "jobs.cancel": bool(window.jobs.list),
        "store.dropConfig": is_open and window.session is not None and window.session.config is not None,
        **parts.lab.enabled_commands(),
        **parts.workspace.edits.able(),
        **do.enabled_tab_commands(window),
    }
    front = window.view if is_open or alone else ""
    for command in COMMANDS:
        is_answered = command.id in answered
        enabled = (is_open or not command.needs or (alone and is_answered)) and (
            command.does is not None or is_answered
        )
        enabled = able.get(command.id, enabled)
        action = window.actions_by_id[command.id]
        action.setVisible(enabled or command.always_shown or _belongs_in_menu(command, front))
        action.setEnabled(enabled)
        action.setToolTip(
            tr(command.tip or command.text) if enabled else need_of(window, command.id, needs_store=command.needs)
        )
    window.rail.set_able([view.kind for view in VIEWS if view.alone] if window.session is None else None, tr(STORE))
    window.top.show_history(window.actions_by_id["go.back"], window.actions_by_id["go.forward"])
    parts.lab.show_access()
