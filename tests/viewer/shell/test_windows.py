"""Several windows of one program."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from panes import wait_until

from viewer.shell import windows
from viewer.shell.commands import BY_ID
from viewer.shell.main_window import MainWindow

Run = Callable[[Any], Any]


Golden = Callable[..., Path]


async def opened(window: MainWindow, path: Path) -> None:
    assert await window.open(path)
    assert await window.settled(60)


def test_quit_closes_every_window_and_ctrl_w_one(run: Run, window: MainWindow, golden: Golden) -> None:
    """Quit closed the window in front, and four others stayed."""

    async def close() -> None:
        path = golden("broker-orders")
        await opened(window, path)
        others = [windows.open_beside(window, path, "log") for _ in range(2)]
        assert all(others)
        for other in others:
            assert other is not None
            await other.settled(60)
        assert others[0] is not None
        others[0].actions_by_id["window.close"].trigger()
        assert [window is not None and window.closed for window in others] == [True, False]
        assert not window.closed
        window.actions_by_id["app.quit"].trigger()
        assert window.closed
        assert all(window is not None and window.closed for window in others)
        await windows.close_all()

    assert BY_ID["window.close"].keys == ("Ctrl+W",)
    run(close())


def test_tied_windows_say_so_until_they_are_untied(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path
) -> None:
    async def tie() -> None:
        path = golden("broker-orders")
        await opened(window, path)
        store = Path(shutil.copytree(path, tmp_path / "other"))
        other_window = window.workspace.comparison.begin(store)
        assert other_window is not None
        await wait_until(
            lambda: other_window.session is not None and str(store) in window.tied.accessibleName(), "they are tied"
        )
        await wait_until(lambda: str(path) in other_window.tied.accessibleName(), "the other says so too")
        assert not window.tied.isHidden()
        assert window.tied.state is not None
        window.tied.step([title for title, _ in window.tied.state.steps].index("Unlink"))
        assert window.tied.isHidden()
        assert other_window.tied.isHidden()
        assert window.workspace.comparison.other_window is None
        await windows.close_all()

    run(tie())
