"""Every command as data: id, words, icon, keys, where it stands. Menus, palette, key sheet and tool bar are made from
this.

The id is the QAction's objectName. A command that ``needs`` a store is greyed without one; one with ``view`` acts on
what is in front and is greyed where the view does not answer it. Keys are Qt's portable texts; the first is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewer.look.assets import words
from viewer.shell.views import BY_KIND


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    id: str
    text: str
    menu: str
    icon: str = ""
    keys: tuple[str, ...] = ()
    needs: bool = True
    view: bool = False
    checkable: bool = False
    group: int = 0
    tip: str = ""


def _opens(kind: str, menu: str, group: int = 0) -> Command:
    """The command that opens a view: its words, icon and key stand with the view."""
    view = BY_KIND[kind]
    return Command(view.command, view.asks or view.title, menu, view.icon, (view.keys,), group=group)


MNEMONICS = {"File": "F", "Edit": "E", "View": "V", "Go": "G", "Analyse": "A", "Lab": "L", "Window": "W", "Help": "H"}
"""Alt with the letter opens the menu."""
MENUS = (
    words("File"), words("Edit"), words("View"), words("Go"), words("Analyse"), words("Lab"), words("Window"),
    words("Help"),
)  # fmt: skip
COMMANDS = (
    Command("store.open", words("Open a store…"), "File", "open", ("Ctrl+O",), needs=False),
    Command("store.openFile", words("Open one file of a log…"), "File", "file", ("Ctrl+Shift+O",), needs=False),
    Command("store.close", words("Close the store"), "File", "close", ("Ctrl+Shift+W",)),
    Command("session.save", words("Save the session…"), "File", "", ("Ctrl+S",)),
    Command("report.save", words("Save a report…"), "File", "", ("Ctrl+Shift+E",)),
    Command("session.restore", words("Open the last store at the next start"), "File", "", (), needs=False,
            checkable=True),
    Command("export.table", words("Export the table…"), "File", "", ("Ctrl+E",), view=True, group=1),
    Command("window.close", words("Close the window"), "File", "", ("Ctrl+W",), needs=False, group=2),
    Command("app.quit", words("Quit"), "File", "", ("Ctrl+Q",), needs=False, group=2,
            tip=words("Closes every window")),
    Command("edit.undo", words("Undo"), "Edit", "", ("Ctrl+Z",)),
    Command("edit.redo", words("Redo"), "Edit", "", ("Ctrl+Y", "Ctrl+Shift+Z")),
    Command("copy.cell", words("Copy"), "Edit", "", (), view=True),
    Command("copy.row", words("Copy the row"), "Edit", "", (), view=True),
    Command("copy.json", words("Copy as JSON"), "Edit", "", ("Ctrl+Shift+C",), view=True),
    Command("copy.cli", words("Copy as command"), "Edit", "", ("Ctrl+Alt+C",), view=True,
            tip=words("The command line that gives the same answer")),
    Command("copy.out", words("Copy the command that copies this message out"), "Edit", "", (), view=True,
            tip=words("In Where: into a new store, or what is left of it with its body")),
    Command("copy.place", words("Copy this place"), "Edit", "", ("Ctrl+Shift+L",)),
    Command("copy.hex", words("Copy bytes as hex"), "Edit", "", (), view=True),
    Command("copy.c", words("Copy bytes as C array"), "Edit", "", (), view=True),
    Command("copy.python", words("Copy bytes as Python"), "Edit", "", (), view=True),
    Command("copy.base64", words("Copy bytes as Base64"), "Edit", "", (), view=True),
    Command("find.open", words("Find…"), "Edit", "search", ("Ctrl+F",), view=True, group=1),
    Command("find.next", words("Find next"), "Edit", "", ("F3",), view=True, group=1),
    Command("find.previous", words("Find previous"), "Edit", "", ("Shift+F3",), view=True, group=1),
    Command("filter.focus", words("Filter the log"), "Edit", "filter", ("Ctrl+L",), group=1),
    Command("filter.apply", words("Apply the filter"), "Edit", "", (), view=True, group=1),
    Command("filter.clear", words("Clear the filter"), "Edit", "", (), view=True, group=1),
    Command("filter.cell", words("Only this value"), "Edit", "", ("Ctrl+Shift+F",), view=True, group=2),
    Command("filter.exclude", words("All but this value"), "Edit", "", ("Ctrl+Shift+X",), view=True, group=2),
    Command("filter.and", words("… and this value"), "Edit", "", (), view=True, group=2),
    Command("filter.or", words("… or this value"), "Edit", "", (), view=True, group=2),
    Command("filter.prepare", words("Write this value into the filter"), "Edit", "", (), view=True, group=2),
    Command("filter.copy", words("Copy this value as filter"), "Edit", "", (), view=True, group=2),
    Command("filter.save", words("Save the filter as a button…"), "Edit", "", ("Ctrl+Shift+S",), view=True, group=2),
    Command("mark.toggle", words("Mark the row"), "Edit", "", ("Ctrl+M",), view=True, group=3),
    Command("mark.only", words("Only marked rows"), "Edit", "", (), view=True, group=3),
    Command("mark.clear", words("Take all marks away"), "Edit", "", (), view=True, group=3),
    Command("ignore.toggle", words("Ignore the row"), "Edit", "", ("Ctrl+D",), view=True, group=3),
    Command("time.reference", words("Count times from this row"), "Edit", "", ("Ctrl+Shift+T",), view=True, group=3),
    Command("view.inspector", words("Data inspector"), "View", "", ("Ctrl+I",), view=True, group=1),
    Command("colour.rules", words("Colouring rules…"), "View", "", ("Ctrl+Shift+G",), view=True, group=1),
    _opens("log", "View"),
    _opens("queue", "View"),
    _opens("index", "View"),
    _opens("positions", "View"),
    _opens("findings", "View"),
    _opens("space", "View"),
    _opens("groups", "View"),
    _opens("config", "View"),
    Command("view.tree", words("Store tree"), "View", "", ("Ctrl+T",), checkable=True, group=1),
    Command("view.follow", words("Follow the end of the log"), "View", "follow", ("Ctrl+J",), checkable=True, group=1),
    Command("view.operations", words("Operation log…"), "View", "", ("Ctrl+Shift+H",), needs=False, group=1),
    Command("view.refresh", words("Look again"), "View", "refresh", ("F5",), group=1),
    Command("live.pause", words("Pause or go on with the live picture"), "View", "pause", (), view=True, group=1,
            tip=words("Space, in Positions")),
    Command("live.fit", words("Show all the time that is held"), "View", "", (), view=True, group=1,
            tip=words("F, in Positions")),
    Command("live.now", words("Back to live"), "View", "", (), view=True, group=1),
    Command("live.play", words("Replay the positions"), "View", "play", (), view=True, group=1),
    Command("live.record", words("Record the positions…"), "File", "record", (), view=True, group=1),
    Command("live.load", words("Open a recording of positions…"), "File", "", (), view=True, group=1),
    Command("live.export", words("Export the samples of the positions…"), "File", "", (), view=True, group=1),
    Command("zoom.in", words("Larger"), "View", "", ("Ctrl++", "Ctrl+="), needs=False, group=2),
    Command("zoom.out", words("Smaller"), "View", "", ("Ctrl+-",), needs=False, group=2),
    Command("zoom.reset", words("Normal size"), "View", "", ("Ctrl+0",), needs=False, group=2),
    Command("theme.system", words("Colours as the desktop"), "View", "", (), needs=False, checkable=True, group=3),
    Command("theme.light", words("Light colours"), "View", "", (), needs=False, checkable=True, group=3),
    Command("theme.dark", words("Dark colours"), "View", "", (), needs=False, checkable=True, group=3),
    Command("theme.contrast", words("High contrast"), "View", "", (), needs=False, checkable=True, group=3),
    Command("theme.motion", words("Less motion"), "View", "", (), needs=False, checkable=True, group=3,
            tip=words("Nothing glows and fades, no frame stands where a jump ended, no cursor blinks")),
    Command("language.en", "English", "View", "", (), needs=False, checkable=True, group=4),
    Command("language.zh_CN", "简体中文", "View", "", (), needs=False, checkable=True, group=4),
    Command("go.back", words("Back"), "Go", "back", ("Alt+Left",)),
    Command("go.forward", words("Forward"), "Go", "forward", ("Alt+Right",)),
    Command("go.to", words("Go to…"), "Go", "go-to", ("Ctrl+G",)),
    Command("finding.next", words("Next finding, from anywhere"), "Go", "", ("F4",), group=2),
    Command("finding.previous", words("Previous finding, from anywhere"), "Go", "", ("Shift+F4",), group=2),
    Command("bookmark.here", words("Bookmark this place…"), "Go", "bookmark", ("Ctrl+B",), group=3),
    _opens("bookmarks", "Go", 3),
    Command("bookmark.edit", words("Change the bookmark…"), "Go", "", (), view=True, group=3),
    Command("bookmark.remove", words("Remove the bookmark"), "Go", "", (), view=True, group=3),
    Command("go.beside", words("Places beside this one…"), "Go", "", ("Alt+Down",)),
    Command("go.first", words("First row"), "Go", "", ("Ctrl+Home",), view=True, group=1),
    Command("go.last", words("Last row"), "Go", "", ("Ctrl+End",), view=True, group=1),
    Command("list.next", words("Next row"), "Go", "", ("F8",), view=True, group=2),
    Command("list.previous", words("Previous row"), "Go", "", ("F7",), view=True, group=2),
    Command("problem.next", words("Next problem"), "Go", "", ("Ctrl+Down",), view=True, group=2),
    Command("problem.previous", words("Previous problem"), "Go", "", ("Ctrl+Up",), view=True, group=2),
    Command("mark.next", words("Next marked row"), "Go", "", ("Ctrl+Shift+Down",), view=True, group=2),
    Command("mark.previous", words("Previous marked row"), "Go", "", ("Ctrl+Shift+Up",), view=True, group=2),
    Command("same.key.next", words("Next with the same key"), "Go", "", ("Ctrl+.",), view=True, group=4),
    Command("same.key.previous", words("Previous with the same key"), "Go", "", ("Ctrl+,",), view=True, group=4),
    Command("same.key.all", words("All with the same key"), "Go", "", (), view=True, group=4),
    Command("same.queue.next", words("Next in the same queue"), "Go", "", ("Alt+.",), view=True, group=4),
    Command("same.queue.previous", words("Previous in the same queue"), "Go", "", ("Alt+,",), view=True, group=4),
    Command("same.queue.all", words("All of the same queue"), "Go", "", (), view=True, group=4),
    Command("same.transaction.next", words("Next of the same transaction"), "Go", "", ("Ctrl+Alt+.",), view=True,
            group=4),
    Command("same.transaction.previous", words("Previous of the same transaction"), "Go", "", ("Ctrl+Alt+,",),
            view=True, group=4),
    Command("same.transaction.all", words("All of the same transaction"), "Go", "", (), view=True, group=4),
    Command("frequency.open", words("How often each value occurs"), "Analyse", "", ("Shift+F",), view=True),
    Command("trace.open", words("Trace a key…"), "Analyse", "index", ("Ctrl+K",)),
    _opens("where", "Analyse"),
    Command("check.run", words("Check the whole store"), "Analyse", "findings", ("Ctrl+Shift+K",)),
    Command("recovery.preview", words("Recovery: show what the next start does"), "Analyse", "positions",
            ("Ctrl+Shift+R",)),
    Command("recovery.save", words("Save the recovery plan…"), "Analyse", "", ("Ctrl+Alt+E",)),
    Command("recovery.try", words("Try recovery on a copy…"), "Analyse", "", ("Ctrl+Alt+Y",)),
    Command("recovery.again", words("Recover the copy again"), "Analyse", "", ("Ctrl+Alt+A",), view=True),
    Command("recovery.open", words("Open the copy that was recovered"), "Analyse", "", ("Ctrl+Alt+O",), view=True),
    Command("dispatch.rebuild", words("Rebuild queues and index elsewhere…"), "Analyse", "", ()),
    _opens("pipeline", "Analyse", 1),
    Command("pipeline.run", words("Run the pipeline job"), "Analyse", "play", ("Ctrl+Alt+Shift+R",), view=True,
            group=1),
    Command("pipeline.cancel", words("Cancel the pipeline job"), "Analyse", "", (), view=True, group=1),
    Command("pipeline.copy", words("Copy the pipeline job as command"), "Analyse", "", (), view=True, group=1),
    Command("jobs.cancel", words("Stop all work"), "Analyse", "stop", ("Ctrl+Esc",), group=1),
    Command("lab.create", words("Make a lab store…"), "Lab", "lab", ("Ctrl+Shift+N",), needs=False),
    Command("lab.openFolder", words("Open a lab store…"), "Lab", "open", (), needs=False),
    Command("lab.write", words("Open this store for writing…"), "Lab", "", ()),
    _opens("lab", "Lab"),
    Command("lab.put", words("Put the message"), "Lab", "", (), group=1),
    Command("lab.again", words("Put again"), "Lab", "", ("Ctrl+Alt+Return",), group=1),
    Command("lab.start", words("Start the load"), "Lab", "play", ("Ctrl+Alt+L",), group=2),
    Command("lab.pause", words("Pause the load or go on"), "Lab", "pause", ("Ctrl+Alt+P",), group=2),
    Command("lab.stop", words("Stop the load"), "Lab", "stop", ("Ctrl+Alt+S",), group=2),
    Command("lab.flush", words("Flush now"), "Lab", "", ("Ctrl+Alt+F",), group=3),
    Command("lab.commit", words("Commit now"), "Lab", "", ("Ctrl+Alt+M",), group=3),
    Command("lab.plug", words("Pull the plug…"), "Lab", "plug", ("Ctrl+Alt+U",), group=4),
    Command("lab.recover", words("Recover"), "Lab", "", ("Ctrl+Alt+R",), group=4),
    Command("lab.recoverAgain", words("Recover the kept disk again"), "Lab", "", ("Ctrl+Alt+G",), group=4),
    Command("lab.close", words("Close the store for writing"), "Lab", "stop", ("Ctrl+Alt+W",), group=4),
    Command("lab.compare", words("Two ways at once"), "Lab", "", ("Ctrl+Alt+2",), group=5),
    Command("lab.copyTwo", words("Copy the comparison as Markdown"), "Lab", "", ("Ctrl+Alt+K",), view=True, group=5),
    Command("window.menus", words("Open the menus"), "Window", "", ("F10",), needs=False),
    Command("pane.next", words("Next pane"), "Window", "", ("F6",)),
    Command("pane.previous", words("Previous pane"), "Window", "", ("Shift+F6",)),
    Command("compare.open", words("Compare with another store…"), "Window", "", ("Ctrl+Shift+D",)),
    Command("compare.next", words("Next difference of the two stores"), "Window", "", ("Ctrl+Shift+J",)),
    Command("compare.table", words("All differences of the two stores…"), "Window", "", ("Ctrl+Alt+D",)),
    Command("window.own", words("This place in a window of its own"), "Window", "", ("Ctrl+Shift+Return",)),
    Command("layout.save", words("Save the layout as…"), "Window", "", (), group=1),
    Command("layout.choose", words("Layouts…"), "Window", "", (), group=1,
            tip=words("Use a saved layout, or delete it")),
    Command("layout.reset", words("Reset the layout"), "Window", "", (), needs=False, group=1),
    Command("palette.open", words("All commands…"), "Help", "search", ("Ctrl+Shift+P",), needs=False),
    Command("help.pages", words("Help"), "Help", "", ("F1",), needs=False),
    Command("help.keys", words("All keys"), "Help", "", ("?",), needs=False),
    Command("help.tour", words("Guided tour"), "Help", "tour", (), needs=False),
    Command("help.logs", words("Show the folder of settings and last words"), "Help", "", (), needs=False, group=1),
    Command("help.about", words("About Storescope"), "Help", "", (), needs=False, group=1),
)  # fmt: skip
ARROWS = {"Left": "←", "Right": "→", "Up": "↑", "Down": "↓"}
BY_ID = {command.id: command for command in COMMANDS}


def key_caps(keys: str) -> str:
    """``Ctrl+Shift+P`` as it stands on key caps: ``Ctrl Shift P``."""
    if keys == "Ctrl++":
        return "Ctrl +"
    return " ".join(ARROWS.get(key, key) for key in keys.split("+"))
