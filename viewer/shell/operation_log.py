"""The operation log: every command that was given, with its parameters and the command line that does the same."""

from __future__ import annotations

import shlex
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction

LONGEST = 2000
"""Operations that are kept; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One: when (ms), the command's id, its words, its parameters, the equal command line ("" for none)."""

    at: int
    id: str
    words: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    cli: str = ""

    @property
    def shown(self) -> str:
        """``filter=size > 3 · rows=12``."""
        return " · ".join(f"{name}={value}" for name, value in self.parameters.items() if value not in ("", None))


class Operations(QObject):
    """``noted()`` when one was added. ``path`` gives the path of the open store, "" for none."""

    noted = Signal()

    def __init__(self, path: Callable[[], str]) -> None:
        super().__init__()
        self._path = path
        self.list: deque[Operation] = deque(maxlen=LONGEST)

    def listen(self, action: QAction, line: Sequence[str] = ()) -> None:
        """Note the command of ``action`` each time it is given. ``line``: what the command line says for the same,
        ``STORE`` stands for the store.
        """
        name = action.objectName()
        action.triggered.connect(lambda _on=False: self._given(name, action.text(), line))

    def note(self, name: str, words: str, parameters: object, cli: str) -> None:
        """Add one; ``parameters`` is a dictionary."""
        made = dict(parameters) if isinstance(parameters, Mapping) else {}
        self.list.append(Operation(time.time_ns() // 1_000_000, name, words, made, cli))
        self.noted.emit()

    def went(self, text: str, words: str) -> None:
        """The go-to box was used."""
        path = self._path()
        if text.strip() and path:
            self.note("go.to", words, {"place": text}, shlex.join(["storescope", "view", path, "--at", text]))

    def clear(self) -> None:
        """Forget all."""
        self.list.clear()
        self.noted.emit()

    def script(self) -> str:
        """The command lines of all that have one, in order, each once in a row."""
        lines: list[str] = []
        for one in self.list:
            if one.cli and (not lines or lines[-1] != one.cli):
                lines.append(one.cli)
        return "\n".join(lines)

    def _given(self, name: str, words: str, line: Sequence[str]) -> None:
        path = self._path()
        command = ["storescope", *(path if word == "STORE" else word for word in line)] if path and line else []
        self.note(name, words.replace("&&", "&"), {}, shlex.join(command))
