"""What commands do that no part of the window does by itself; the table of commands names who does what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QWidget

from viewer.look import assets
from viewer.look.assets import tr
from viewer.look.theme import desktop_contrast, desktop_still, theme
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.dressing import windows_of_program

if TYPE_CHECKING:
    from viewer.shell.framed_window import FramedWindow
    from viewer.shell.lab_stores import LabRoom
    from viewer.shell.layout import Layout
    from viewer.shell.store_changes import StoreChanges
    from viewer.shell.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Parts:
    """The window and its parts, as commands need them."""

    window: FramedWindow
    workspace: Workspace
    lab: LabRoom
    layouts: Layout
    changes: StoreChanges


def close_store(parts: Parts) -> None:
    """Back to the welcome page; where the lab's store is closed by that while it serves, it is asked first."""
    window = parts.window

    def agreed() -> None:
        window.close_store()
        window.show_welcome()

    parts.lab.ask_leave(agreed)


def drop_config(window: FramedWindow) -> None:
    """Open the store again without the configuration that it was looked at with, at the place in front."""
    session, place = window.session, window.history.current
    if session is None or session.config is None:
        window.say(tr("This store is read without a broker.conf."))
        return
    at = places.text_of(place) if place is not None else None
    window.jobs.start(window.open(session.archive or session.path, at))


def in_findings(window: FramedWindow, name: str) -> None:
    """A command that the findings answer, from anywhere."""
    window.show_view("findings")
    answer = window.pane_commands().get(name)
    if answer is not None:
        answer()


def look_again(window: FramedWindow) -> None:
    """Look at the store anew, though nothing seems to have changed; at what else the view in front shows, too."""
    if window.session is not None:
        window.session.look(anyway=True)
    answer = window.pane_commands().get("view.refresh")
    if answer is not None:
        answer()


def go_to(window: FramedWindow) -> None:
    """The focus into the go-to box."""
    window.top.goto.setFocus()
    window.top.goto.selectAll()


def trace_key(window: FramedWindow) -> None:
    """The focus into the key that is traced."""
    window.show_view("index")
    _focus(window, "trace.key")


def show_logs(window: FramedWindow) -> None:
    """The folder of settings and last words, in the desktop's own way."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(window.settings.folder)))


def quit_all() -> None:
    """Close every window; one whose pipeline still works asks first, and stays until it is answered."""
    for window in windows_of_program():
        window.ask_close()


def ask_directory(window: FramedWindow) -> None:
    """Ask which store is to be opened."""
    dialog = QFileDialog(window, tr("Open a store"), _last_folder(window))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
    _run_dialog(window, dialog)


def ask_file(window: FramedWindow) -> None:
    """Ask which file of a log is to be opened."""
    dialog = QFileDialog(window, tr("Open one file of a log"), _last_folder(window))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    _run_dialog(window, dialog)


def _run_dialog(window: FramedWindow, dialog: QFileDialog) -> None:
    dialog.setObjectName("open.dialog")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: window.ask_open(Path(path)))
    dialog.open()


def _last_folder(window: FramedWindow) -> str:
    recent = window.settings.recent
    return str(Path(recent[0].path).parent) if recent else str(Path.home())


def copy_place(window: FramedWindow) -> None:
    """The place in front, as ``--at`` writes it."""
    place = window.history.current
    if place is not None:
        QGuiApplication.clipboard().setText(places.text_of(place))
        window.say(tr("Copied {text}", text=places.text_of(place)))


def focus_filter(window: FramedWindow) -> None:
    """The focus into the filter of the view in front where that has one, else into the log's."""
    answer = window.pane_commands().get("filter.focus")
    if answer is not None:
        answer()
        return
    window.show_view("log")
    _focus(window, "filter.field")


def _focus(window: FramedWindow, name: str) -> None:
    field = window.findChild(QWidget, name)
    if field is not None:
        field.setFocus()
        if isinstance(field, QLineEdit):
            field.selectAll()


def show_tree(window: FramedWindow) -> None:
    """The tree beside the views, as the command is ticked."""
    window.settings.tree_shown = window.actions_by_id["view.tree"].isChecked()
    window.fit_side()


def follow_end(window: FramedWindow) -> None:
    """Follow the end of the log, as the command is ticked."""
    if window.session is not None:
        on = window.actions_by_id["view.follow"].isChecked()
        if on:
            window.go(Place("log"))
        window.session.follow(on)


def next_pane(window: FramedWindow, step: int) -> None:
    """The next of the parts a person looks at: tree, tables, tree of fields, bytes, box."""
    parts = [w for name in _PARTS if (w := window.findChild(QWidget, name)) is not None and w.isVisible()]
    if not parts:
        return
    outside = -1 if step > 0 else 0  # from none of them one comes to the first, or backwards to the last
    held = QApplication.focusWidget()
    at = next((n for n, w in enumerate(parts) if held is not None and (w is held or w.isAncestorOf(held))), outside)
    parts[(at + step) % len(parts)].setFocus()


_PARTS = (
    "goto.field",
    "store.tree",
    "filter.field",
    "units.table",
    "unit.detail",
    "unit.hex",
    "queue.table",
    "index.files",
    "trace.key",
    "trace.steps",
    "positions.ruler",
    "findings.table",
    "recovery.plan",
    "groups.table",
    "config.tables",
    "config.values",
    "lab.put.topic",
    "lab.load.producers",
    "lab.hex",
    "lab.comparison",
)


def set_scheme(window: FramedWindow, scheme: str) -> None:
    """Colours, now and at the next start."""
    window.settings.theme = scheme
    theme.set_scheme(scheme)
    show_choices()


def set_contrast(window: FramedWindow, on: bool) -> None:
    """Fills off and frames on, now and at the next start; what the desktop says too goes on following it."""
    theme.contrast_follows = on == desktop_contrast()
    window.settings.contrast = None if theme.contrast_follows else on
    theme.set_contrast(on)
    show_choices()


def set_motion(window: FramedWindow, on: bool) -> None:
    """Whether things may move and fade, now and at the next start; what the desktop says too goes on following it."""
    window.settings.motion = None if on == (not desktop_still()) else on
    theme.set_motion(window.settings.motion)
    show_choices()


def set_language(window: FramedWindow, language: str) -> None:
    """Words, now and at the next start; the window in front speaks first, then one after the other at turns."""
    window.settings.language = language
    if language != assets.language():
        assets.set_language(language)
        for one in windows_of_program():
            one.speak_anew()
    show_choices()


def show_choices() -> None:
    """Ticks before the colours and the language in force, in the menus of every window."""
    for window in windows_of_program():
        tick(window)


def tick(window: FramedWindow) -> None:
    """Ticks before what is chosen, in one window."""
    for scheme in ("system", "light", "dark"):
        window.actions_by_id[f"theme.{scheme}"].setChecked(theme.scheme == scheme)
    for language in assets.LANGUAGES:
        window.actions_by_id[f"language.{language}"].setChecked(assets.language() == language)
    window.actions_by_id["view.tree"].setChecked(window.settings.tree_shown)
    window.actions_by_id["theme.contrast"].setChecked(theme.contrast)
    window.actions_by_id["theme.motion"].setChecked(theme.still)
    window.actions_by_id["session.restore"].setChecked(window.settings.restore)


def reset_layout(parts: Parts) -> None:
    """Everything where it stood on the first day."""
    parts.layouts.reset()
    show_choices()


def save_layout(parts: Parts) -> None:
    """Ask for the name under which the layout is kept."""
    from viewer.shell.layout import ask_save

    ask_save(parts.window, parts.layouts)


def choose_layout(parts: Parts) -> None:
    """Show the layouts that are kept."""
    from viewer.shell.layout import ask_choose

    ask_choose(parts.window, parts.layouts)


def show_operations(parts: Parts) -> None:
    """The operation log, beside the window."""
    from viewer.shell.operation_log import OperationsBox

    OperationsBox(parts.changes.operations, parts.window).show()


def show_about(window: FramedWindow) -> None:
    """What the program is, and with what it runs."""
    from viewer.widgets.about_box import AboutBox

    AboutBox(window).open()


def wire(parts: Parts) -> None:
    """What is pressed in the window's frame does what the commands do."""
    window, act = parts.window, parts.window.actions_by_id
    window.strip.recent = lambda: window.settings.recent
    window.strip.storeAsked.connect(lambda path: window.ask_open(Path(path)))
    window.top.back.clicked.connect(act["go.back"].trigger)
    window.top.forward.clicked.connect(act["go.forward"].trigger)
    window.top.refresh.clicked.connect(act["view.refresh"].trigger)
    window.top.follow.clicked.connect(act["view.follow"].trigger)
    window.top.close_lab.clicked.connect(act["lab.close"].trigger)
    window.top.bookmark.clicked.connect(act["bookmark.here"].trigger)
    window.top.crumbs.followed.connect(window.go)
    window.top.goto.asked.connect(parts.changes.asked)
    window.top.goto.left.connect(lambda: window.pane(window.view).setFocus())
    window.rail.chosen.connect(window.show_view)
    window.side.placeRequested.connect(window.go)
    window.side.statusMessage.connect(window.say)
    window.side.helpAsked.connect(parts.workspace.show_help)
    window.status.counters.clicked.connect(lambda: window.show_view("findings"))
    window.status.config.clicked.connect(act["store.dropConfig"].trigger)
