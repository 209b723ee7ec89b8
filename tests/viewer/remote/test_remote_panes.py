"""The detail of a message at a broker has no links into the open store, and says whose log its offset is in."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QWidget

from viewer.cluster.access import NO_FILES
from viewer.remote.remote_panes import RemotePanes
from viewer.remote.remote_session import RemoteSession


def test_the_names_of_the_log_view_stay_its_own(qtbot: Any, themed_app: Any) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    panes = RemotePanes(parent)
    session = RemoteSession(("127.0.0.1:1",), NO_FILES, None, parent)
    panes.begin(session)
    assert panes.detail.objectName() == "remote.detail"
    assert not panes.detail.has_links
    session.close()
