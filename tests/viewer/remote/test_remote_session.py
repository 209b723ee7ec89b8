"""Work of a window with messages runs in its own threads; its errors are sentences, and nothing comes after its end."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

from PySide6.QtCore import QObject

from viewer.cluster.access import NO_FILES
from viewer.remote.remote_session import RemoteSession, Stopped


def test_errors_are_sentences_and_a_cancelled_call_is_stopped(qtbot: Any, themed_app: Any) -> None:
    session = RemoteSession(("127.0.0.1:1",), NO_FILES, None, QObject())
    errors: list[Exception] = []

    def fail(error: Exception) -> None:
        raise error

    session.read(lambda: fail(ConnectionRefusedError("refused")), errors.append, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 1)
    assert str(errors[0]).startswith("the broker cannot be reached: ")
    session.read(lambda: fail(CancelledError()), errors.append, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 2)
    assert isinstance(errors[1], Stopped)
    session.close()
    session.read(lambda: 1, errors.append, errors.append)
    assert len(errors) == 2
