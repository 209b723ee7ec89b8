"""Sizes and positions of the windows and their parts.

Each part has a default size and returns to its last one. Narrow windows leave some parts out. Windows are placed
beside each other and inside the screen. Named layouts store the splitters, whether the tree is shown, and the
current view. All of it is kept in the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QMargins, QRect, Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QListWidget, QSplitter, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import px, ui
from viewer.pane import Pane
from viewer.runtime.settings import NamedLayout
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Button, Field, Label, row
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow


FIRST_SIZE = (1600, 1000)
SLIM_BELOW = 1400
TREE, SLIM_TREE = 264, 216
SIDE = "side"
FRAME_MS = (0, 300, 1500)
"""Delays after which a new window's position is checked. A window manager adds its frame some time after the window
is shown, and does not always report it.
"""


class Layout:
    """Positions of a window's splitters. They are stored in the settings only if the window ``remembers``."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._states: dict[str, QByteArray] = {}
        self._laid_out = False
        self.tied = False
        """True if the window shares the screen with another one that shows the same places."""

    def tie(self, on: bool) -> None:
        """Share the screen with another window, so that a narrow half is enough; or use the whole screen again."""
        self.tied = on
        self._window.setMinimumSize(*(TIED_SMALLEST if on else SMALLEST))
        self.fit()
        if not on:
            QTimer.singleShot(0, self._window, self.keep_inside)

    @property
    def tree_fits(self) -> bool:
        """True if there is room for the tree beside the views."""
        return not self.tied or self._window.width() >= SMALLEST[0]

    def first_size(self, size: tuple[int, int] | None) -> None:
        """Set the window's size: the requested one, the last one, or the default."""
        window = self._window
        if size is not None:
            window.resize(*size)
        elif not window.remembers or not window.restoreGeometry(window.settings.geometry):
            window.resize(*FIRST_SIZE)
        if window.remembers:
            for wait in FRAME_MS:
                QTimer.singleShot(wait, window, self.keep_inside)

    def keep_inside(self) -> None:
        """Move the window, with its frame, inside the screen. Do nothing if the screen is too small."""
        window = self._window
        room, frame = window.screen().availableGeometry(), window.frameGeometry()
        fits = room.width() >= SMALLEST[0] and room.height() >= SMALLEST[1]
        if fits and not window.isMaximized() and not room.contains(frame):
            window.setGeometry(inside(frame, room).marginsRemoved(margins_of(window)))

    def resized(self, old_width: int) -> None:
        """Fit the window after a change of size. It was ``old_width`` px wide."""
        self.fit()
        if not self._laid_out:
            self._laid_out = True
            self.restore_side()
        elif old_width > 0 and (old_width < px(SLIM_BELOW)) != (self._window.width() < px(SLIM_BELOW)):
            self._default_side()

    def fit(self) -> None:
        """Use a slim rail, a short go-to box and no path in a narrow window, and no tree in half a screen."""
        window = self._window
        slim = window.width() < px(SLIM_BELOW)
        for part in (window.rail, window.top, window.strip):
            part.set_slim(slim)
        window.top.set_folded(window.width() < SMALLEST[0])
        window.side.setMinimumWidth(px(SLIM_TREE))
        window.fit_side()

    def restore_side(self) -> None:
        """Restore the width of the tree."""
        state = self._state(SIDE)
        if state.isEmpty() or not self._window.split.restoreState(state):
            self._default_side()

    def restore_pane(self, view: str, pane: Pane) -> None:
        """Restore the splitters and columns of a view."""
        for number, splitter in enumerate(pane.findChildren(QSplitter)):
            state = self._state(f"{view}.{number}")
            if not state.isEmpty():
                splitter.restoreState(state)
        for table in pane.findChildren(RecordView):
            self.remember_columns(table)

    def remember_columns(self, table: RecordView) -> None:
        """Restore the columns of a table and save each change. They belong to the view, not to the window."""
        if table.fitting.remembered:
            return
        settings, name, table.fitting.remembered = self._window.settings, table.objectName(), True
        columns = settings.columns(name)
        if columns is not None:
            table.fitting.take(columns)
        table.fitting.changed.connect(lambda: settings.set_columns(name, table.fitting.kept.record()))

    def keep(self) -> None:
        """Note the position of every splitter that the user has seen."""
        window = self._window
        if window.session is None:
            return
        self._states[SIDE] = window.split.saveState()
        for view, pane in window.panes.items():
            if pane.session is not None and pane.width() > px(SLIM_TREE):
                for number, splitter in enumerate(pane.findChildren(QSplitter)):
                    self._states[f"{view}.{number}"] = splitter.saveState()

    def write(self) -> None:
        """Write the noted positions into the settings."""
        if self._window.remembers:
            self._window.settings.geometry = self._window.saveGeometry()
            for name, state in self._states.items():
                self._window.settings.set_splitter(name, state)

    def states(self) -> dict[str, bytes]:
        """Return the current position of every splitter, to be stored elsewhere."""
        self.keep()
        return {name: bytes(state.data()) for name, state in self._states.items()}

    def take(self, states: Mapping[str, bytes]) -> None:
        """Restore the positions that :meth:`states` returned."""
        if not states:
            return
        self._states |= {name: QByteArray(state) for name, state in states.items()}
        self.restore_side()
        for view, pane in self._window.panes.items():
            self.restore_pane(view, pane)

    def reset(self) -> None:
        """Restore the default layout."""
        window = self._window
        self._states.clear()
        window.settings.reset_layout()
        window.resize(*FIRST_SIZE)
        window.rebuild()
        self._default_side()

    def _default_side(self) -> None:
        width = px(SLIM_TREE if self._window.width() < px(SLIM_BELOW) else TREE)
        self._window.split.setSizes([width, max(px(400), self._window.width() - width)])

    def _state(self, name: str) -> QByteArray:
        state = self._states.get(name)
        if state is not None:
            return state
        return self._window.settings.splitter(name) if self._window.remembers else QByteArray()


SMALLEST = (900, 600)
TIED_SMALLEST = (600, 480)
"""Minimum size of tied windows, which fit side by side on any screen."""
STEP = 32
"""Shift (px) to the right and down of a window that has no room beside the first."""


def inside(frame: QRect, room: QRect) -> QRect:
    """Return ``frame``, shrunk to fit into ``room`` and moved inside it."""
    fitted = QRect(frame)
    fitted.setSize(frame.size().boundedTo(room.size()))
    fitted.moveLeft(min(max(fitted.left(), room.left()), room.right() + 1 - fitted.width()))
    fitted.moveTop(min(max(fitted.top(), room.top()), room.bottom() + 1 - fitted.height()))
    return fitted


def margins_of(window: QWidget) -> QMargins:
    """Return how far a window's frame extends around it."""
    frame, inner = window.frameGeometry(), window.geometry()
    return QMargins(
        inner.left() - frame.left(),
        inner.top() - frame.top(),
        frame.right() - inner.right(),
        frame.bottom() - inner.bottom(),
    )


def beside(frame: QRect, room: QRect, *, tied: bool) -> tuple[QRect, QRect]:
    """Return the frames of a window and of a second one beside it.

    Tied windows share the screen: side by side, or one above the other if the screen is higher than wide.
    Otherwise the first window stays, and the second takes the free side. If that is too narrow, it is shifted a
    step, inside the screen.
    """
    frame = inside(frame, room)
    if tied and room.width() >= 2 * TIED_SMALLEST[0]:
        half = room.width() // 2
        left_half = QRect(room.left(), room.top(), half, room.height())
        return left_half, left_half.translated(half, 0)
    if tied and room.height() >= 2 * TIED_SMALLEST[1]:
        half = room.height() // 2
        upper_half = QRect(room.left(), room.top(), room.width(), half)
        return upper_half, upper_half.translated(0, half)
    space_right = room.right() - frame.right()
    space_left = frame.left() - room.left()
    if max(space_right, space_left) >= SMALLEST[0]:
        width = min(max(space_right, space_left), frame.width())
        left_edge = frame.right() + 1 if space_right >= space_left else frame.left() - width
        return frame, QRect(left_edge, frame.top(), width, frame.height())
    second = QRect(frame.topLeft(), frame.size()).translated(STEP, STEP)
    shrunk = second.intersected(room)
    if shrunk.width() >= SMALLEST[0] and shrunk.height() >= SMALLEST[1]:
        return frame, shrunk
    return frame, inside(second, room)


def save(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Save the window's layout as ``name``, replacing one with this name.

    Returns False if there is no name or no store.
    """
    name = name.strip()
    if not name or window.session is None:
        return False
    named_layout = NamedLayout(name, window.view, window.settings.tree_shown, layouts.states())
    window.settings.named_layouts = [
        *(saved for saved in window.settings.named_layouts if saved.name != name),
        named_layout,
    ]
    window.say(tr("Layout saved: {name}", name=name))
    return True


def take(window: MainWindow, layouts: Layout, name: str) -> bool:
    """Restore the layout ``name``. Return False if there is none."""
    saved = next((candidate for candidate in window.settings.named_layouts if candidate.name == name), None)
    if saved is None or window.session is None:
        return False
    window.settings.tree_shown = saved.tree
    window.actions_by_id["view.tree"].setChecked(saved.tree)
    if saved.view in BY_KIND:
        window.show_view(saved.view)
    window.fit_side()
    layouts.take(saved.states)
    window.say(tr("Layout: {name}", name=name))
    return True


def delete(window: MainWindow, name: str) -> None:
    """Delete the layout ``name``."""
    window.settings.named_layouts = [saved for saved in window.settings.named_layouts if saved.name != name]
    window.say(tr("Layout deleted: {name}", name=name))


class SaveBox(QDialog):
    """Asks for the name of a layout."""

    def __init__(self, window: MainWindow, layouts: Layout) -> None:
        super().__init__(window)
        self.setObjectName("layout.saveBox")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Save the layout"))
        self.setAccessibleName(tr("Save the layout"))
        self.setMinimumWidth(px(420))
        self.name = Field(tr("Name"))
        self.name.setObjectName("layout.name")
        self.note = Label("", 12, "text3", wrap=True)
        keep, close = Button(tr("Save"), "primary"), Button(tr("Cancel"))
        keep.setObjectName("layout.keep")
        close.setObjectName("layout.cancel")
        self._known = {saved.name for saved in window.settings.named_layouts}

        def accept() -> None:
            if save(window, layouts, self.name.text()):
                self.accept()

        keep.clicked.connect(accept)
        self.name.returnPressed.connect(accept)
        self.name.textChanged.connect(self._told)
        close.clicked.connect(self.reject)
        _column(self, self.name, self.note, row(None, close, keep))

    def _told(self, text: str) -> None:
        is_known = text.strip() in self._known
        self.note.setText(tr("There is a layout of this name: it is replaced.") if is_known else "")


class ChooseBox(QDialog):
    """Lists the saved layouts by name. Enter restores one, Del deletes it."""

    def __init__(self, window: MainWindow, layouts: Layout) -> None:
        super().__init__(window)
        self._window, self._layouts = window, layouts
        self.setObjectName("layout.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Layouts"))
        self.setAccessibleName(tr("Layouts"))
        self.resize(px(460), px(340))
        self.list = QListWidget()
        self.list.setObjectName("layout.list")
        self.list.setAccessibleName(tr("Layouts"))
        self.list.setFont(ui(13))
        self.list.itemActivated.connect(lambda _item: self._take())
        self.list.currentRowChanged.connect(lambda _n: self._able())
        self.note = Label(tr("No layout was saved yet."), 12, "text3", wrap=True)
        self.use, self.forget, close = Button(tr("Use"), "primary"), Button(tr("Delete")), Button(tr("Close"))
        for button, name in ((self.use, "use"), (self.forget, "delete"), (close, "close")):
            button.setObjectName(f"layout.{name}")
        self.use.clicked.connect(self._take)
        self.forget.clicked.connect(self._delete)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.list, self._delete)
        close.clicked.connect(self.reject)
        _column(self, self.list, self.note, row(self.forget, None, close, self.use))
        self._fill()

    def _fill(self) -> None:
        names = [saved.name for saved in self._window.settings.named_layouts]
        self.list.clear()
        self.list.addItems(names)
        self.list.setCurrentRow(0 if names else -1)
        self.note.setVisible(not names)
        self._able()

    def _able(self) -> None:
        self.use.setEnabled(self._name() != "")
        self.forget.setEnabled(self._name() != "")

    def _name(self) -> str:
        return self.list.currentItem().text() if self.list.currentRow() >= 0 else ""

    def _take(self) -> None:
        if take(self._window, self._layouts, self._name()):
            self.accept()

    def _delete(self) -> None:
        if self._name():
            delete(self._window, self._name())
            self._fill()


def _column(box: QDialog, *parts: QWidget) -> None:
    layout = QVBoxLayout(box)
    layout.setContentsMargins(px(16), px(14), px(16), px(12))
    layout.setSpacing(px(8))
    for part in parts:
        layout.addWidget(part)


def ask_save(window: MainWindow, layouts: Layout) -> None:
    """Ask for a name and save the layout under it."""
    if window.session is not None:
        box = SaveBox(window, layouts)
        box.open()
        box.name.setFocus()


def ask_choose(window: MainWindow, layouts: Layout) -> None:
    """Show the saved layouts, to restore or delete one."""
    box = ChooseBox(window, layouts)
    box.open()
    box.list.setFocus()
