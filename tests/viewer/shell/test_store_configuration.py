"""A broker's configuration belongs to the store that was opened with it, is shown, and can be dropped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import golden_stores
import pytest

from engine.config import MessageStoreConfig, parse_properties
from engine.inspection.recovery import plan as plan_of
from tests.support.controls import FakeControl
from viewer.command import main
from viewer.findings.recovery_trial import trial
from viewer.look import assets
from viewer.runtime.places import Place
from viewer.shell import session_file, windows
from viewer.shell.main_window import MainWindow
from viewer.shell.session_file import Session
from viewer.shell.single_instance import SecondStart, answer
from viewer.shell.windows import close_all, open_beside, show_beside

Run = Callable[[Any], Any]
Golden = Callable[..., Path]


def conf(text: str = "mappedFileSizeCommitLog=2097152\n") -> MessageStoreConfig:
    return replace(parse_properties(text)[0], file="/etc/rocketmq/b.conf")


async def settled(window: Any) -> None:
    while window.session is None:
        await window.settled()
    assert await window.settled()


def chip(window: Any) -> str:
    shown = window.status.config
    return "" if shown.isHidden() else shown.accessibleName()


def archive_of(store: Path, folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder / "packed"), "tar", store.parent, store.name))


def session_of(store: Path, folder: Path) -> Path:
    file = folder / f"kept{session_file.SUFFIX}"
    session_file.write(file, Session(store=str(store)))
    return file


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize("entry", ["store", "archive", "session", "second start", "beside"])
def test_the_next_store_does_not_inherit_it(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """After `view broker-crash --config b.conf`, another healthy store in the same program had two errors, five queue
    files "deleted" and no start, because the first store's file sizes were used.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    other_store = golden("clean-5.3.3")

    async def journey() -> None:
        assert await window.open(golden("broker-crash"), None, conf())
        assert await window.settled()
        assert window.session is not None
        assert window.session.config is not None
        assert chip(window) == "broker.conf: b.conf ×"
        shown: Any = window
        match entry:
            case "store":
                assert await window.open(other_store)
            case "archive":
                assert await window.open(archive_of(other_store, tmp_path))
            case "session":
                assert await window.open(session_of(other_store, tmp_path))
            case "second start":
                shown = answer(window, SecondStart(other_store))
            case "beside":
                shown = open_beside(window, other_store)
        await settled(shown)
        assert shown.session.config is None
        assert shown.session.snapshot.config is None
        assert chip(shown) == ""
        await close_all()

    run(journey())


def test_the_same_store_in_a_window_of_its_own_keeps_it(run: Run, window: MainWindow, golden: Golden) -> None:
    async def journey() -> None:
        assert await window.open(golden("broker-crash"), None, conf())
        assert await window.settled()
        beside: Any = show_beside(window, Place("log"))
        await settled(beside)
        assert beside.session.config == conf()
        assert chip(beside) == "broker.conf: b.conf ×"
        assert windows.windows() == (beside,)
        await close_all()

    run(journey())


def test_the_chip_drops_the_configuration_and_keeps_the_place(run: Run, window: MainWindow, golden: Golden) -> None:
    async def journey() -> None:
        assert await window.open(golden("broker-crash"), "queue:OrderEvents/0", conf())
        assert await window.settled()
        drop = window.actions_by_id["store.dropConfig"]
        assert drop.isEnabled()
        assert drop.isVisible()
        session_before = window.session
        window.status.config.clicked.emit()
        while window.session is None or window.session is session_before:
            await window.settled()
        assert await window.settled()
        assert window.session.config is None
        assert chip(window) == ""
        assert window.view == "queue"
        assert not drop.isEnabled()
        assert not drop.isVisible(), "no disabled menu line about a file that was not given"

    run(journey())


def test_the_chip_survives_a_language_change_and_ends_with_the_store(
    run: Run, window: MainWindow, golden: Golden
) -> None:
    async def journey() -> None:
        assert await window.open(golden("broker-crash"), None, conf())
        assert await window.settled()
        assets.set_language("zh_CN")
        window.rebuild()
        assert chip(window) == "broker.conf：b.conf ×"
        assert "点击" in window.status.config.toolTip()
        window.close_store()
        assert chip(window) == ""

    run(journey())


def test_try_again_on_the_error_page_takes_the_same_configuration(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path
) -> None:
    async def journey() -> None:
        store = tmp_path / "store"
        assert not await window.open(store, None, conf())
        shutil.copytree(golden("broker-crash"), store)
        page: Any = window.findChild(object, "error.page")
        page.againRequested.emit()
        await settled(window)
        assert window.session is not None
        assert window.session.config == conf()

    run(journey())


def test_a_configuration_without_a_store_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("mappedFileSizeCommitLog=2097152\n")
    argv_before, sys.argv = (
        sys.argv,
        ["view", "--config", str(tmp_path / "b.conf"), "--screenshot", str(tmp_path / "p.png")],
    )
    try:
        assert main() == 2
    finally:
        sys.argv = argv_before
    assert "expected STORE" in capsys.readouterr().err


def test_a_copy_with_the_live_stores_configuration_is_read_alone(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path
) -> None:
    """Every view, opening for writing, and a trial of the plan leave the live store unchanged."""
    live = shutil.copytree(golden("clean-5.3.3"), tmp_path / "live")
    copy = shutil.copytree(golden("crash-5.3.3"), tmp_path / "copy")
    text = f"storePathRootDir={live}\nstorePathCommitLog={live}/commitlog\nstorePathIndex={live}/index\n"
    fingerprints_before = golden_stores.fingerprint(live), golden_stores.fingerprint(copy)

    async def journey() -> None:
        assert await window.open(copy, None, conf(text))
        assert await window.settled()
        session = window.session
        assert session is not None
        assert session.snapshot.commit_log.folders == (copy / "commitlog",)
        assert any("leads to another store" in note for note in session.snapshot.notes)
        for view in ("queue", "index", "positions", "findings", "groups", "config", "space", "lab"):
            window.show_view(view)
            assert await window.settled()
        await window.lab._open_users_store(copy)
        assert "storePathCommitLog" in window.status.message.text()
        assert session is window.session
        plan = plan_of(session.snapshot, "5.3", losses=False)
        tried = trial(FakeControl(), copy, session.config, plan, tmp_path / "tried")
        assert tried.as_expected

    run(journey())
    assert (golden_stores.fingerprint(live), golden_stores.fingerprint(copy)) == fingerprints_before
