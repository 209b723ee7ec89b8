"""What second starts say, who hears it, and that no start is kept waiting or from happening by it."""

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
    """Hand over from a process of its own: waiting in Qt holds the interpreter."""
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
    """A run-time folder of the test's own whose name leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="ss") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(second_start, "ANSWER_MS", 300)
        yield Path(folder)


def test_what_is_said_is_read_again() -> None:
    start = SecondStart(Path("/data/主题 store"), "queue:Orders/0/42")
    assert read_line(start.line()) == start
    assert read_line(SecondStart().line()) == SecondStart()


@pytest.mark.parametrize("line", [b"", b"\xff\n", b"[]\n", b"7\n", b'{"store": 5, "at": null}\n', b'{"at": "log"}\n'])
def test_anything_else_is_nothing(line: bytes) -> None:
    assert read_line(line) is None


def test_a_relative_path_is_sent_from_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(SecondStart(Path("store")).line())["store"] == str(tmp_path / "store")


def test_settings_elsewhere_are_another_address(short_runtime_folder: Path) -> None:
    assert address(short_runtime_folder / "a") != address(short_runtime_folder / "b")
    assert address(short_runtime_folder / "a") == address(short_runtime_folder / "a")
    assert address(short_runtime_folder / "a").startswith(str(short_runtime_folder))


def test_the_window_that_runs_hears_it(run: Run, short_runtime_folder: Path) -> None:
    bell = SecondStartListener(short_runtime_folder / "settings")
    emitted: list[SecondStart] = []
    bell.startReceived.connect(emitted.append)
    start = SecondStart(Path("/data/store"), "log:5")
    assert bell.listening
    assert run(asyncio.to_thread(called, short_runtime_folder / "settings", start))
    assert emitted == [start]
    bell.close()
    assert not hand_over(short_runtime_folder / "settings", start)


def test_where_nobody_runs_nothing_is_handed_over(short_runtime_folder: Path) -> None:
    assert not hand_over(short_runtime_folder / "settings", SecondStart())


def test_a_second_bell_leaves_the_first_one_alone(run: Run, short_runtime_folder: Path) -> None:
    first, second = SecondStartListener(short_runtime_folder), SecondStartListener(short_runtime_folder)
    assert (first.listening, second.listening) == (True, False)
    assert run(asyncio.to_thread(called, short_runtime_folder, SecondStart()))
    first.close()
    second.close()


def test_what_a_dead_process_left_behind_is_taken_away(run: Run, short_runtime_folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as remaining:
        remaining.bind(address(short_runtime_folder))
    assert Path(address(short_runtime_folder)).exists()
    assert not hand_over(short_runtime_folder, SecondStart())
    bell = SecondStartListener(short_runtime_folder)
    assert bell.listening
    assert run(asyncio.to_thread(called, short_runtime_folder, SecondStart()))
    bell.close()


def test_whoever_takes_the_call_and_says_nothing_keeps_no_start_waiting(short_runtime_folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(address(short_runtime_folder))
        mute.listen(1)
        assert not hand_over(short_runtime_folder, SecondStart())


def test_a_caller_who_says_something_else_is_cut_off(run: Run, short_runtime_folder: Path) -> None:
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
