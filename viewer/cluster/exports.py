"""Exports of the Cluster view: Markdown to the clipboard or a file, and the history of lag as CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.files.atomic_file import atomic_text
from viewer.cluster.lag_panel import write_csv, written_words
from viewer.cluster.replay import file_dialog
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words

if TYPE_CHECKING:
    from viewer.cluster.watch import ClusterWatch


class ClusterExports(QObject):
    """Asks for files, and writes them off the loop. ``markdown`` returns the shown content; ``watch`` is set later."""

    statusText = Signal(str)

    def __init__(self, view: QWidget, markdown: Callable[[], str]) -> None:
        super().__init__(view)
        self._view, self._markdown = view, markdown
        self.watch: ClusterWatch | None = None

    def copy_markdown(self) -> None:
        """Copy the picture with its figures to the clipboard."""
        QGuiApplication.clipboard().setText(self._markdown())
        self.statusText.emit(tr("Copied the cluster as Markdown."))

    def ask_markdown(self) -> None:
        """Ask for the file of a Markdown export."""
        if self.watch is None or self.watch.model.state is None:
            self.statusText.emit(tr("There is nothing to export yet."))
            return
        dialog = file_dialog(self._view, tr("Export the cluster as Markdown"), "cluster.export.dialog", "cluster.md")
        dialog.fileSelected.connect(lambda path: self.write_markdown(Path(path)))
        dialog.open()

    def write_markdown(self, target: Path) -> None:
        """Write the Markdown file."""
        text = self._markdown()

        def write() -> None:
            with atomic_text(target) as out:
                out.write(text)

        self._run(write, target, lambda _none: tr("Written: {path}", path=str(target)))

    def ask_lag_file(self) -> None:
        """Ask for the file of the lag's history."""
        dialog = file_dialog(self._view, tr("Export the lag of this session"), "cluster.lag.dialog", "lag.csv")
        dialog.fileSelected.connect(lambda path: self.write_lag(Path(path)))
        dialog.open()

    def write_lag(self, target: Path) -> None:
        """Write the lag's history as CSV."""
        if self.watch is not None:
            points = list(self.watch.model.lag.rows())
            self._run(
                lambda: write_csv(points, target), target, lambda count: written_words(cast("int", count), target)
            )

    def _run(self, write: Callable[[], object], target: Path, success_words: Callable[[object], str]) -> None:
        if self.watch is not None:
            self.watch.run(
                write,
                lambda result: self.statusText.emit(success_words(result)),
                lambda error: self.statusText.emit(f"{target}: {engine_words(str(error))}"),
            )
