"""A second start sends its request to the running window, and is never delayed or prevented by it."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from viewer.shell import single_instance as second_start
from viewer.shell.single_instance import SecondStart, SecondStartListener, address, hand_over, read_line

ROOT = Path(__file__).resolve().parents[3]
Run = Callable[[Any], Any]


def called(folder: Path, start: SecondStart) -> bool:
    """Hand over from another process, because waiting in Qt blocks the interpreter."""
    code = (
        "import sys; from pathlib import Path; from viewer.shell.single_instance import SecondStart, hand_over\n"
        "store, at = (text or None for text in sys.argv[2:])\n"
        "print(hand_over(Path(sys.argv[1]), SecondStart(Path(store) if store else None, at)))"
    )
    parts = (str(folder), str(start.store or ""), start.at or "")
    done = subprocess.run([sys.executable, "-c", code, *parts], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout == "True\n"


@pytest.fixture
def short_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a runtime folder of the test whose name leaves room for the socket's name."""
    with tempfile.TemporaryDirectory(prefix="ss") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(second_start, "ANSWER_MS", 300)
        yield Path(folder)


def test_a_request_round_trips() -> None:
    start = SecondStart(Path("/data/主题 store"), "queue:Orders/0/42")
    assert read_line(start.line()) == start
    assert read_line(SecondStart().line()) == SecondStart()


@pytest.mark.parametrize("line", [b"", b"\xff\n", b"[]\n", b"7\n", b'{"store": 5, "at": null}\n', b'{"at": "log"}\n'])
def test_any_other_line_is_ignored(line: bytes) -> None:
    assert read_line(line) is None


def test_a_relative_path_is_sent_from_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(SecondStart(Path("store")).line())["store"] == str(tmp_path / "store")


def test_other_settings_have_another_address(short_runtime_folder: Path) -> None:
    assert address(short_runtime_folder / "a") != address(short_runtime_folder / "b")
    assert address(short_runtime_folder / "a") == address(short_runtime_folder / "a")
    assert address(short_runtime_folder / "a").startswith(str(short_runtime_folder))


def test_the_running_window_gets_the_request(run: Run, short_runtime_folder: Path) -> None:
    bell = SecondStartListener(short_runtime_folder / "settings")
    emitted: list[SecondStart] = []
    bell.startReceived.connect(emitted.append)
    start = SecondStart(Path("/data/store"), "log:5")
    assert bell.listening
    assert run(asyncio.to_thread(called, short_runtime_folder / "settings", start))
    assert emitted == [start]
    bell.close()
    assert not hand_over(short_runtime_folder / "settings", start)


def test_without_a_running_window_nothing_is_handed_over(short_runtime_folder: Path) -> None:
    assert not hand_over(short_runtime_folder / "settings", SecondStart())


def test_a_second_listener_does_not_disturb_the_first(run: Run, short_runtime_folder: Path) -> None:
    first_listener, second_listener = (
        SecondStartListener(short_runtime_folder),
        SecondStartListener(short_runtime_folder),
    )
    assert (first_listener.listening, second_listener.listening) == (True, False)
    assert run(asyncio.to_thread(called, short_runtime_folder, SecondStart()))
    first_listener.close()
    second_listener.close()


def test_leftovers_of_a_dead_process_are_removed(run: Run, short_runtime_folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as remaining:
        remaining.bind(address(short_runtime_folder))
    assert Path(address(short_runtime_folder)).exists()
    assert not hand_over(short_runtime_folder, SecondStart())
    bell = SecondStartListener(short_runtime_folder)
    assert bell.listening
    assert run(asyncio.to_thread(called, short_runtime_folder, SecondStart()))
    bell.close()


def test_a_silent_listener_does_not_delay_a_start(short_runtime_folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(address(short_runtime_folder))
        mute.listen(1)
        assert not hand_over(short_runtime_folder, SecondStart())


def test_a_caller_with_an_invalid_request_is_disconnected(run: Run, short_runtime_folder: Path) -> None:
    bell = SecondStartListener(short_runtime_folder)
    emitted: list[SecondStart] = []
    bell.startReceived.connect(emitted.append)

    def call() -> bytes:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(60)
            caller.connect(address(short_runtime_folder))
            caller.sendall(b"GET / HTTP/1.1\n")
            return caller.recv(10)

    assert run(asyncio.to_thread(call)) == b""
    assert not emitted
    bell.close()
