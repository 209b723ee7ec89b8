"""Sizes of the window and its parts: as on the first day, as they were left, and what narrow windows leave out;
and where windows stand: beside each other and inside the screen.

Layouts with names: where splitters stand, whether the tree is shown and which view is in front.

They are kept in the settings, beside the reset to the layout of the first day.
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
    from viewer.shell.framed_window import FramedWindow


FIRST_SIZE = (1600, 1000)
SLIM_BELOW = 1400
TREE, SLIM_TREE = 264, 216
SIDE = "side"
FRAME_MS = (0, 300, 1500)
"""When it is looked where a new window stands: a window manager puts its frame around it some time after it is shown,
and does not always say so.
"""


class Layout:
    """Where the splitters of a window stand. Kept in the settings only where the window ``remembers``."""

    def __init__(self, window: FramedWindow) -> None:
        self._window = window
        self._states: dict[str, QByteArray] = {}
        self._laid_out = False
        self.tied = False
        """Whether the window shares the screen with another one that goes where it goes."""

    def tie(self, on: bool) -> None:
        """Share the screen with another window: a narrow half is enough then; or have it alone again."""
        self.tied = on
        self._window.setMinimumSize(*(TIED_SMALLEST if on else SMALLEST))
        self.fit()
        if not on:
            QTimer.singleShot(0, self._window, self.keep_inside)

    @property
    def tree_fits(self) -> bool:
        """Whether there is room for the tree beside the views."""
        return not self.tied or self._window.width() >= SMALLEST[0]

    def first_size(self, size: tuple[int, int] | None) -> None:
        """The window's size: as asked, as it was left, or as on the first day."""
        window = self._window
        if size is not None:
            window.resize(*size)
        elif not window.remembers or not window.restoreGeometry(window.settings.geometry):
            window.resize(*FIRST_SIZE)
        if window.remembers:
            for wait in FRAME_MS:
                QTimer.singleShot(wait, window, self.keep_inside)

    def keep_inside(self) -> None:
        """No edge of the window lies outside the screen, its frame included; a screen too small is left alone."""
        window = self._window
        room, frame = window.screen().availableGeometry(), window.frameGeometry()
        fits = room.width() >= SMALLEST[0] and room.height() >= SMALLEST[1]
        if fits and not window.isMaximized() and not room.contains(frame):
            window.setGeometry(inside(frame, room).marginsRemoved(margins_of(window)))

    def resized(self, before: int) -> None:
        """The window was ``before`` px wide and has another size now."""
        self.fit()
        if not self._laid_out:
            self._laid_out = True
            self.restore_side()
        elif before > 0 and (before < px(SLIM_BELOW)) != (self._window.width() < px(SLIM_BELOW)):
            self._default_side()

    def fit(self) -> None:
        """Narrow windows have a slim rail, a short go-to box and no path; half a screen has no tree."""
        window = self._window
        slim = window.width() < px(SLIM_BELOW)
        for part in (window.rail, window.top, window.strip):
            part.set_slim(slim)
        window.top.set_folded(window.width() < SMALLEST[0])
        window.side.setMinimumWidth(px(SLIM_TREE))
        window.fit_side()

    def restore_side(self) -> None:
        """The tree as wide as it was left."""
        state = self._state(SIDE)
        if state.isEmpty() or not self._window.split.restoreState(state):
            self._default_side()

    def restore_pane(self, view: str, pane: Pane) -> None:
        """The parts of a view as they were left."""
        for number, splitter in enumerate(pane.findChildren(QSplitter)):
            state = self._state(f"{view}.{number}")
            if not state.isEmpty():
                splitter.restoreState(state)
        for table in pane.findChildren(RecordView):
            self.remember_columns(table)

    def remember_columns(self, table: RecordView) -> None:
        """Columns as they were left, and from now on kept as they are changed: they are a view's, not a window's."""
        if table.fitting.remembered:
            return
        settings, name, table.fitting.remembered = self._window.settings, table.objectName(), True
        kept = settings.columns(name)
        if kept is not None:
            table.fitting.take(kept)
        table.fitting.changed.connect(lambda: settings.set_columns(name, table.fitting.kept.record()))

    def keep(self) -> None:
        """Note where everything stands that somebody has seen."""
        window = self._window
        if window.session is None:
            return
        self._states[SIDE] = window.split.saveState()
        for view, pane in window.panes.items():
            if pane.session is not None and pane.width() > px(SLIM_TREE):
                for number, splitter in enumerate(pane.findChildren(QSplitter)):
                    self._states[f"{view}.{number}"] = splitter.saveState()

    def write(self) -> None:
        """Put what was noted into the settings."""
        if self._window.remembers:
            self._window.settings.geometry = self._window.saveGeometry()
            for name, state in self._states.items():
                self._window.settings.set_splitter(name, state)

    def states(self) -> dict[str, bytes]:
        """Where everything stands now, to be kept elsewhere."""
        self.keep()
        return {name: bytes(state.data()) for name, state in self._states.items()}

    def take(self, states: Mapping[str, bytes]) -> None:
        """Put everything where :meth:`states` said it stood."""
        if not states:
            return
        self._states |= {name: QByteArray(state) for name, state in states.items()}
        self.restore_side()
        for view, pane in self._window.panes.items():
            self.restore_pane(view, pane)

    def reset(self) -> None:
        """Everything as on the first day."""
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
        kept = self._states.get(name)
        if kept is not None:
            return kept
        return self._window.settings.splitter(name) if self._window.remembers else QByteArray()


SMALLEST = (900, 600)
TIED_SMALLEST = (600, 480)
"""Of two windows that are tied: they stand side by side on any screen."""
STEP = 32
"""Px by which a window that has no room beside the first stands right of and below it."""


def inside(frame: QRect, room: QRect) -> QRect:
    """``frame`` no larger than ``room``, and moved into it."""
    made = QRect(frame)
    made.setSize(frame.size().boundedTo(room.size()))
    made.moveLeft(min(max(made.left(), room.left()), room.right() + 1 - made.width()))
    made.moveTop(min(max(made.top(), room.top()), room.bottom() + 1 - made.height()))
    return made


def margins_of(window: QWidget) -> QMargins:
    """What the frame of a window takes around it."""
    frame, own = window.frameGeometry(), window.geometry()
    return QMargins(
        own.left() - frame.left(), own.top() - frame.top(), frame.right() - own.right(), frame.bottom() - own.bottom()
    )


def beside(first: QRect, room: QRect, *, tied: bool) -> tuple[QRect, QRect]:
    """The frames of the first window and of one beside it. Tied windows share the screen: side by side, or one over
    the other where it is higher than wide. Else the first stays, and the second takes the free side, or stands a step
    further, inside the screen.
    """
    first = inside(first, room)
    if tied and room.width() >= 2 * TIED_SMALLEST[0]:
        half = room.width() // 2
        left = QRect(room.left(), room.top(), half, room.height())
        return left, left.translated(half, 0)
    if tied and room.height() >= 2 * TIED_SMALLEST[1]:
        half = room.height() // 2
        upper = QRect(room.left(), room.top(), room.width(), half)
        return upper, upper.translated(0, half)
    after = room.right() - first.right()
    before = first.left() - room.left()
    if max(after, before) >= SMALLEST[0]:
        wide = min(max(after, before), first.width())
        left_edge = first.right() + 1 if after >= before else first.left() - wide
        return first, QRect(left_edge, first.top(), wide, first.height())
    second = QRect(first.topLeft(), first.size()).translated(STEP, STEP)
    shrunk = second.intersected(room)
    if shrunk.width() >= SMALLEST[0] and shrunk.height() >= SMALLEST[1]:
        return first, shrunk
    return first, inside(second, room)


def save(window: FramedWindow, layouts: Layout, name: str) -> bool:
    """Keep what stands in the window as ``name``, in the place of one of this name; False without a name."""
    name = name.strip()
    if not name or window.session is None:
        return False
    made = NamedLayout(name, window.view, window.settings.tree_shown, layouts.states())
    window.settings.named_layouts = [*(one for one in window.settings.named_layouts if one.name != name), made]
    window.say(tr("Layout saved: {name}", name=name))
    return True


def take(window: FramedWindow, layouts: Layout, name: str) -> bool:
    """Put everything where it stood in the layout ``name``; False where there is none."""
    found = next((one for one in window.settings.named_layouts if one.name == name), None)
    if found is None or window.session is None:
        return False
    window.settings.tree_shown = found.tree
    window.actions_by_id["view.tree"].setChecked(found.tree)
    if found.view in BY_KIND:
        window.show_view(found.view)
    window.fit_side()
    layouts.take(found.states)
    window.say(tr("Layout: {name}", name=name))
    return True


def delete(window: FramedWindow, name: str) -> None:
    """Forget the layout ``name``."""
    window.settings.named_layouts = [one for one in window.settings.named_layouts if one.name != name]
    window.say(tr("Layout deleted: {name}", name=name))


class SaveBox(QDialog):
    """Asks for the name."""

    def __init__(self, window: FramedWindow, layouts: Layout) -> None:
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
        self._known = {one.name for one in window.settings.named_layouts}

        def accept() -> None:
            if save(window, layouts, self.name.text()):
                self.accept()

        keep.clicked.connect(accept)
        self.name.returnPressed.connect(accept)
        self.name.textChanged.connect(self._told)
        close.clicked.connect(self.reject)
        _column(self, self.name, self.note, row(None, close, keep))

    def _told(self, text: str) -> None:
        known = text.strip() in self._known
        self.note.setText(tr("There is a layout of this name: it is replaced.") if known else "")


class ChooseBox(QDialog):
    """The layouts by name: Enter takes one up, Del forgets it."""

    def __init__(self, window: FramedWindow, layouts: Layout) -> None:
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
        names = [one.name for one in self._window.settings.named_layouts]
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


def ask_save(window: FramedWindow, layouts: Layout) -> None:
    """Ask for the name under which the layout is kept."""
    if window.session is not None:
        box = SaveBox(window, layouts)
        box.open()
        box.name.setFocus()


def ask_choose(window: FramedWindow, layouts: Layout) -> None:
    """Show the layouts, to be taken up or forgotten."""
    box = ChooseBox(window, layouts)
    box.open()
    box.list.setFocus()
