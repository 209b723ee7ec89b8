"""Handlers of the commands that no single part of the window owns. The table of commands names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog

from viewer.look import assets
from viewer.look.assets import tr
from viewer.look.theme import desktop_contrast, desktop_still, theme
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell.tab_window import tab_window_of
from viewer.shell.window_theme import windows_of_program
from viewer.shell.windows import open_tab

if TYPE_CHECKING:
    from viewer.shell.lab_stores import WindowLab
    from viewer.shell.layout import Layout
    from viewer.shell.main_window import MainWindow
    from viewer.shell.store_changes import StoreChanges
    from viewer.shell.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Parts:
    """The window and its parts, as command handlers need them."""

    window: MainWindow
    workspace: Workspace
    lab: WindowLab
    layouts: Layout
    changes: StoreChanges


def close_store(parts: Parts) -> None:
    """Return to the welcome page. If this would close a lab store that serves clients, ask first."""
    window = parts.window

    def agreed() -> None:
        window.close_store()
        window.show_welcome()

    parts.lab.ask_leave(agreed)


def drop_config(window: MainWindow) -> None:
    """Open the store again without its broker configuration, at the current place."""
    session, place = window.session, window.history.current
    if session is None or session.config is None:
        window.say(tr("This store is read without a broker.conf."))
        return
    place_text = places.text_of(place) if place is not None else None
    window.jobs.start(window.open(session.archive or session.path, place_text))


def in_findings(window: MainWindow, name: str) -> None:
    """Run a command of the findings view from anywhere."""
    window.show_view("findings")
    _run_in_front(window, name)


def refresh_view(window: MainWindow) -> None:
    """Read the store again even if nothing seems to have changed, and what else the current view shows."""
    if window.session is not None:
        window.session.look(anyway=True)
    _run_in_front(window, "view.refresh")


def go_to(window: MainWindow) -> None:
    """Move the focus into the go-to box."""
    window.top.goto.setFocus()
    window.top.goto.selectAll()


def trace_key(window: MainWindow) -> None:
    """Move the focus into the field for the key to trace."""
    window.show_view("index")
    _run_in_front(window, "trace.open")


def show_logs(window: MainWindow) -> None:
    """Open the folder of settings and last words in the desktop's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(window.settings.folder)))


def quit_all() -> None:
    """Close every window. A window whose pipeline still runs asks first and stays open until it is answered."""
    closing: list[object] = []
    for window in windows_of_program():
        tabs = tab_window_of(window)
        if tabs is None:
            window.ask_close()
        elif tabs not in closing:
            closing.append(tabs)
            tabs.ask_close()


def close_tabs(window: MainWindow) -> None:
    """Close the window with all its tabs."""
    tabs = tab_window_of(window)
    if tabs is None:
        window.ask_close()
    else:
        tabs.ask_close()


def new_tab(window: MainWindow, store: Path | None = None) -> None:
    """Open ``store``, or the first page, in a new tab."""
    if open_tab(window, store) is None:
        window.say(tr("There are too many windows: close one first."))


def open_dropped(window: MainWindow, paths: Sequence[Path]) -> None:
    """Open the first path here if no store is open, and each other one in a new tab."""
    for path in paths:
        if window.session is None and not window.opening:
            window.ask_open(path)
        else:
            new_tab(window, path)


def reopen_tab(window: MainWindow) -> None:
    """Open the tab that was closed last, at its place."""
    tabs = tab_window_of(window)
    if tabs is not None and tabs.closed_tabs:
        closed = tabs.closed_tabs.pop()
        open_tab(window, closed.store, closed.place_text, config=closed.config)


def step_tab(window: MainWindow, step: int) -> None:
    """Show the next (1) or previous (-1) tab."""
    tabs = tab_window_of(window)
    if tabs is not None:
        tabs.step(step)


def enabled_tab_commands(window: MainWindow) -> dict[str, bool]:
    """Return which commands for tabs can run."""
    tabs = tab_window_of(window)
    several = tabs is not None and len(tabs.pages) > 1
    pair = tabs is not None and window.session is not None and tabs.last_other(window) is not None
    return {
        "tab.reopen": tabs is not None and bool(tabs.closed_tabs),
        **dict.fromkeys(("tab.next", "tab.previous", "tab.own"), several),
        **dict.fromkeys(("tab.compare", "tab.link"), pair),
    }


def ask_directory(window: MainWindow) -> None:
    """Ask which store to open."""
    dialog = QFileDialog(window, tr("Open a store"), _last_folder(window))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
    _run_dialog(window, dialog)


def ask_file(window: MainWindow) -> None:
    """Ask which capsule, or which file of a log, to open."""
    dialog = QFileDialog(window, tr("Open a capsule or one file of a log"), _last_folder(window))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    _run_dialog(window, dialog)


def ask_address(window: MainWindow) -> None:
    """Ask for the address of a store on another machine."""
    from viewer.shell.ssh_box import SshBox

    SshBox(window).open()


def _run_dialog(window: MainWindow, dialog: QFileDialog) -> None:
    dialog.setObjectName("open.dialog")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: window.ask_open(Path(path)))
    dialog.open()


def _last_folder(window: MainWindow) -> str:
    recent = window.settings.recent
    return str(Path(recent[0].path).parent) if recent else str(Path.home())


def copy_place(window: MainWindow) -> None:
    """Copy the current place in the form that ``--at`` takes."""
    place = window.history.current
    if place is not None:
        QGuiApplication.clipboard().setText(places.text_of(place))
        window.say(tr("Copied {text}", text=places.text_of(place)))


def focus_filter(window: MainWindow) -> None:
    """Move the focus into the filter of the current view, or into the log's filter if the view has none."""
    if not _run_in_front(window, "filter.focus"):
        window.show_view("log")
        _run_in_front(window, "filter.focus")


def _run_in_front(window: MainWindow, name: str) -> bool:
    """Run a command of the current view. Return False if the view does not have it."""
    handler = window.pane_commands().get(name)
    if handler is not None:
        handler()
    return handler is not None


def show_tree(window: MainWindow) -> None:
    """Show or hide the tree beside the views."""
    window.settings.tree_shown = window.actions_by_id["view.tree"].isChecked()
    window.fit_side()


def follow_end(window: MainWindow) -> None:
    """Start or stop following the end of the log."""
    if window.session is not None:
        on = window.actions_by_id["view.follow"].isChecked()
        if on:
            window.go(Place("log"))
        window.session.follow(on)


def open_view(window: MainWindow, kind: str) -> None:
    """Show a view. In the view itself, give the focus to its leading part."""
    if window.view == kind:
        window.focus_view()
    window.show_view(kind)


def next_pane(window: MainWindow, step: int) -> None:
    """Move the focus to the next part: tree, tables, tree of fields, bytes, box."""
    pane = window.panes.get(window.view)
    stops = (window.top.goto, window.side.tree, *(pane.focus_stops() if pane is not None else ()))
    parts = [part for part in stops if part.isVisible()]
    if not parts:
        return
    before_first = -1 if step > 0 else 0  # with no part focused: the first part, or backwards the last
    focused = QApplication.focusWidget()
    index = next(
        (n for n, w in enumerate(parts) if focused is not None and (w is focused or w.isAncestorOf(focused))),
        before_first,
    )
    parts[(index + step) % len(parts)].setFocus(Qt.FocusReason.ShortcutFocusReason)


def set_scheme(window: MainWindow, scheme: str) -> None:
    """Set the colours now and for the next start."""
    window.settings.theme = scheme
    theme.set_scheme(scheme)
    show_choices()


def set_contrast(window: MainWindow, on: bool) -> None:
    """Turn high contrast (no fills, but frames) on or off, now and for the next start.

    The desktop's setting still applies.
    """
    theme.contrast_follows = on == desktop_contrast()
    window.settings.contrast = None if theme.contrast_follows else on
    theme.set_contrast(on)
    show_choices()


def set_motion(window: MainWindow, on: bool) -> None:
    """Allow or forbid animation, now and for the next start. The desktop's setting still applies."""
    window.settings.motion = None if on == (not desktop_still()) else on
    theme.set_motion(window.settings.motion)
    show_choices()


def set_language(window: MainWindow, language: str) -> None:
    """Set the language now and for the next start. The front window changes first, then one window after another."""
    window.settings.language = language
    if language != assets.language():
        assets.set_language(language)
        for open_window in windows_of_program():
            open_window.speak_anew()
    show_choices()


def show_choices() -> None:
    """Tick the current colours and language in the menus of every window."""
    for window in windows_of_program():
        tick(window)


def tick(window: MainWindow) -> None:
    """Tick the current choices in one window."""
    for scheme in ("system", "light", "dark"):
        window.actions_by_id[f"theme.{scheme}"].setChecked(theme.scheme == scheme)
    for language in assets.LANGUAGES:
        window.actions_by_id[f"language.{language}"].setChecked(assets.language() == language)
    window.actions_by_id["view.tree"].setChecked(window.settings.tree_shown)
    window.actions_by_id["theme.contrast"].setChecked(theme.contrast)
    window.actions_by_id["theme.motion"].setChecked(theme.still)
    window.actions_by_id["session.restore"].setChecked(window.settings.restore)


def reset_layout(parts: Parts) -> None:
    """Restore the default layout."""
    parts.layouts.reset()
    show_choices()


def save_layout(parts: Parts) -> None:
    """Ask for a name and save the layout as a profile under it."""
    from viewer.shell.named_layouts import ask_save

    ask_save(parts.window, parts.layouts)


def choose_layout(parts: Parts) -> None:
    """Show the profiles."""
    from viewer.shell.named_layouts import ask_choose

    ask_choose(parts.window, parts.layouts)


def use_profile(parts: Parts, name: str) -> None:
    """Use a profile that comes with the program."""
    from viewer.shell.named_layouts import use_built_in

    use_built_in(parts.window, parts.layouts, name)


def show_operations(parts: Parts) -> None:
    """Show the operation log in a box beside the window."""
    from viewer.shell.operation_log import OperationsBox

    OperationsBox(parts.changes.operations, parts.window).show()


def show_about(window: MainWindow) -> None:
    """Show the program's version and the versions of the libraries that it runs with."""
    from viewer.widgets.about_box import AboutBox

    AboutBox(window).open()


def wire(parts: Parts) -> None:
    """Connect the buttons of the window's frame to the commands."""
    window, act = parts.window, parts.window.actions_by_id
    window.strip.storeRequested.connect(lambda path: window.ask_open(Path(path)))
    window.top.back.clicked.connect(act["go.back"].trigger)
    window.top.forward.clicked.connect(act["go.forward"].trigger)
    window.top.refresh.clicked.connect(act["view.refresh"].trigger)
    window.top.follow.clicked.connect(act["view.follow"].trigger)
    window.top.close_lab.clicked.connect(act["lab.close"].trigger)
    window.top.bookmark.clicked.connect(act["bookmark.here"].trigger)
    window.top.crumbs.placeRequested.connect(window.go)
    window.top.goto.goRequested.connect(parts.changes.asked)
    window.top.goto.leaveRequested.connect(lambda: window.pane(window.view).setFocus())
    window.rail.chosen.connect(window.show_view)
    window.side.placeRequested.connect(window.go)
    window.side.statusMessage.connect(window.say)
    window.side.helpRequested.connect(parts.workspace.show_help)
    window.status.counters.clicked.connect(lambda: window.show_view("findings"))
    window.status.config.clicked.connect(act["store.dropConfig"].trigger)
