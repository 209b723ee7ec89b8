"""What each command of the window does. Commands of the view in front are handed to its pane."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from viewer.shell.commands import COMMANDS
from viewer.shell.dressing import windows_of_program
from viewer.shell.views import VIEWS

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

Deed = Callable[..., object]


def deeds(window: MainWindow) -> dict[str, Deed]:
    """Command id → what it does, for every command."""
    own: dict[str, Deed] = {
        "store.open": lambda: _ask_directory(window),
        "store.openFile": lambda: _ask_file(window),
        "store.close": lambda: (window.close_store(), window.show_welcome()),
        "window.close": window.desk.close,
        "window.menus": lambda: window.strip.open_menus(),  # noqa: PLW0108 (made anew with the language)
        "app.quit": _quit,
        "copy.place": lambda: _copy_place(window),
        "filter.focus": lambda: _focus_filter(window),
        "view.tree": lambda on: _show_tree(window, on),
        "view.follow": lambda on: _follow(window, on),
        "view.refresh": lambda: window.session.look(anyway=True) if window.session else None,
        "zoom.in": lambda: window.zoom(theme.wished_zoom + 10),
        "zoom.out": lambda: window.zoom(theme.wished_zoom - 10),
        "zoom.reset": lambda: window.zoom(100),
        "go.back": lambda: window.step(window.history.back()),
        "go.forward": lambda: window.step(window.history.forward()),
        "go.to": lambda: (window.top.goto.setFocus(), window.top.goto.selectAll()),
        "trace.open": lambda: (window.show_view("index"), _focus(window, "trace.key")),
        "check.run": lambda: (window.show_view("findings"), _pane_deed(window, "check.run")),
        "recovery.preview": lambda: (window.show_view("findings"), _pane_deed(window, "recovery.preview")),
        "recovery.save": lambda: (window.show_view("findings"), _pane_deed(window, "recovery.save")),
        "recovery.try": lambda: (window.show_view("findings"), _pane_deed(window, "recovery.try")),
        "jobs.cancel": window.jobs.cancel_all,
        **window.desk.deeds(),
        **window.lab.deeds(),
        "pane.next": lambda: _next_pane(window, 1),
        "pane.previous": lambda: _next_pane(window, -1),
        "layout.reset": lambda: (window.layouts.reset(), show_choices(window)),
        "palette.open": lambda: _open_palette(window),
        "help.keys": lambda: _show_keys(window),
        "go.beside": lambda: window.top.crumbs.drop(),  # noqa: PLW0108
        "view.operations": lambda: _show_operations(window),
        "help.logs": lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(window.settings.folder))),
        "help.about": lambda: _show_about(window),
    }
    for view in VIEWS:
        own[view.command] = lambda _on=False, kind=view.kind: window.show_view(kind)
    for scheme in ("system", "light", "dark"):
        own[f"theme.{scheme}"] = lambda _on=False, scheme=scheme: set_scheme(window, scheme)
    own["theme.contrast"] = lambda: set_contrast(window, not theme.contrast)
    own["theme.motion"] = lambda: set_motion(window, theme.still)
    for language in assets.LANGUAGES:
        own[f"language.{language}"] = lambda _on=False, language=language: set_language(window, language)
    for command in COMMANDS:
        if command.view:
            own[command.id] = lambda _on=False, name=command.id: _pane_deed(window, name)
    return {
        name: _without_state(deed) if name not in {"view.tree", "view.follow"} else deed for name, deed in own.items()
    }


def _without_state(deed: Deed) -> Deed:
    return lambda *_state: deed()


def _pane_deed(window: MainWindow, name: str) -> None:
    deed = window.pane_commands().get(name)
    if deed is not None:
        deed()


def _quit() -> None:
    """Close every window; one whose pipeline still works asks first, and stays until it is answered."""
    for window in windows_of_program():
        window.desk.close()


def _ask_directory(window: MainWindow) -> None:
    dialog = QFileDialog(window, tr("Open a store"), _last_folder(window))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
    _run_dialog(window, dialog)


def _ask_file(window: MainWindow) -> None:
    dialog = QFileDialog(window, tr("Open one file of a log"), _last_folder(window))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    _run_dialog(window, dialog)


def _run_dialog(window: MainWindow, dialog: QFileDialog) -> None:
    dialog.setObjectName("open.dialog")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: window.jobs.start(window.open(Path(path))))
    dialog.open()


def _last_folder(window: MainWindow) -> str:
    recent = window.settings.recent
    return str(Path(recent[0].path).parent) if recent else str(Path.home())


def _copy_place(window: MainWindow) -> None:
    place = window.history.current
    if place is not None:
        QGuiApplication.clipboard().setText(places.text_of(place))
        window.say(tr("Copied {text}", text=places.text_of(place)))


def _focus_filter(window: MainWindow) -> None:
    window.show_view("log")
    _focus(window, "filter.field")


def _focus(window: MainWindow, name: str) -> None:
    field = window.findChild(QWidget, name)
    if field is not None:
        field.setFocus()
        if isinstance(field, QLineEdit):
            field.selectAll()


def _show_tree(window: MainWindow, on: bool) -> None:
    window.settings.tree_shown = on
    window.fit_side()


def _follow(window: MainWindow, on: bool) -> None:
    if window.session is not None:
        window.session.follow(on)
        if on:
            _go_to_end(window)


def _go_to_end(window: MainWindow) -> None:
    session = window.session
    if session is None:
        return

    def work() -> int:
        log = session.snapshot.log
        before = log.items_before(log.max_offset, 1, crc=False)
        return before[-1].offset if before else max(log.max_offset, 0)

    session.jobs.read(work, lambda offset: window.go(Place("log", offset=offset)))


def _next_pane(window: MainWindow, step: int) -> None:
    """The next of the parts a person looks at: tree, tables, tree of fields, bytes, box."""
    parts = [w for name in _PARTS if (w := window.findChild(QWidget, name)) is not None and w.isVisible()]
    if not parts:
        return
    at = next((n for n, w in enumerate(parts) if w.hasFocus() or w.isAncestorOf(QApplication.focusWidget() or w)), -1)
    parts[(at + step) % len(parts)].setFocus()


_PARTS = (
    "goto.field", "store.tree", "filter.field", "units.table", "unit.detail", "unit.hex", "queue.table", "index.files",
    "trace.key", "trace.steps", "positions.ruler", "findings.table", "recovery.plan", "groups.table", "config.tables",
    "config.values", "lab.put.topic", "lab.load.producers", "lab.hex", "lab.comparison",
)  # fmt: skip


def set_scheme(window: MainWindow, scheme: str) -> None:
    """Colours, now and at the next start."""
    window.settings.theme = scheme
    theme.set_scheme(scheme)
    show_choices(window)


def set_contrast(window: MainWindow, on: bool) -> None:
    """Fills off and frames on, now and at the next start; what the desktop says too goes on following it."""
    theme.contrast_follows = on == desktop_contrast()
    window.settings.contrast = None if theme.contrast_follows else on
    theme.set_contrast(on)
    show_choices(window)


def set_motion(window: MainWindow, on: bool) -> None:
    """Whether things may move and fade, now and at the next start; what the desktop says too goes on following it."""
    window.settings.motion = None if on == (not desktop_still()) else on
    theme.set_motion(window.settings.motion)
    show_choices(window)


def set_language(window: MainWindow, language: str) -> None:
    """Words, now and at the next start; the window in front speaks first, then one after the other at turns."""
    window.settings.language = language
    if language != assets.language():
        assets.set_language(language)
        for one in windows_of_program():
            one.dressing.take(one.layouts.keep, *one.rebuilding(), partial(_tick, one))
    show_choices(window)


def show_choices(_window: MainWindow) -> None:
    """Ticks before the colours and the language in force, in the menus of every window."""
    for window in windows_of_program():
        _tick(window)


def _tick(window: MainWindow) -> None:
    for scheme in ("system", "light", "dark"):
        window.actions_by_id[f"theme.{scheme}"].setChecked(theme.scheme == scheme)
    for language in assets.LANGUAGES:
        window.actions_by_id[f"language.{language}"].setChecked(assets.language() == language)
    window.actions_by_id["view.tree"].setChecked(window.settings.tree_shown)
    window.actions_by_id["theme.contrast"].setChecked(theme.contrast)
    window.actions_by_id["theme.motion"].setChecked(theme.still)
    window.actions_by_id["session.restore"].setChecked(window.settings.restore)


def _open_palette(window: MainWindow) -> None:
    """The box is made anew with the language."""
    window.palette_box.open()


def _show_operations(window: MainWindow) -> None:
    from viewer.shell.operation_log_box import OperationsBox

    OperationsBox(window.news.operations, window).show()


def _show_keys(window: MainWindow) -> None:
    from viewer.shell.key_sheet import KeySheet

    KeySheet(window).open()


def _show_about(window: MainWindow) -> None:
    from viewer.widgets.about_box import AboutBox

    AboutBox(window).open()


def wire(window: MainWindow) -> None:
    """What is pressed in the window's frame does what the commands do."""
    act = window.actions_by_id
    window.strip.recent = lambda: window.settings.recent
    window.strip.storeAsked.connect(lambda path: window.jobs.start(window.open(Path(path))))
    window.top.back.clicked.connect(act["go.back"].trigger)
    window.top.forward.clicked.connect(act["go.forward"].trigger)
    window.top.refresh.clicked.connect(act["view.refresh"].trigger)
    window.top.follow.clicked.connect(act["view.follow"].trigger)
    window.top.close_lab.clicked.connect(act["lab.close"].trigger)
    window.top.bookmark.clicked.connect(act["bookmark.here"].trigger)
    window.top.crumbs.followed.connect(window.go)
    window.top.goto.asked.connect(window.news.asked)
    window.top.goto.left.connect(lambda: window.pane(window.view).setFocus())
    window.rail.chosen.connect(window.show_view)
    window.side.placeRequested.connect(window.go)
    window.side.statusMessage.connect(window.say)
    window.side.helpAsked.connect(window.desk.show_help)
    window.status.counters.clicked.connect(lambda: window.show_view("findings"))
