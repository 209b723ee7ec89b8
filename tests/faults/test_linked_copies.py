"""A copy made with hard links shares its bytes with the original: no command writes into it."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from pathlib import Path

import golden_stores
import handmade_stores
import pytest
import recorded_requests
from writing_commands import WRITERS

from engine.cli.main import main
from engine.config import MessageStoreConfig
from engine.errors import LinkedFile
from engine.lab.server import OwnStore
from engine.message_store import MessageStore
from engine.remoting.recording import Recorder


def answer(words: list[str]) -> tuple[int, str]:
    """Return exit code and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, err.getvalue()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Make a copy by ``cp -al`` of a store after a crash; the original must stay unchanged."""
    original = handmade_stores.healthy().write(tmp_path / "original")
    (original / "abort").write_text("1")
    (original / "lock").touch()
    return Path(shutil.copytree(original, tmp_path / "copies" / "copy", copy_function=os.link))


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    recorder = Recorder(tmp_path / "talk.requests")
    recorded_requests.seen_in_a_talk(tmp_path / "first", recorder.take)
    recorder.close()
    return tmp_path / "talk.requests"


def test_no_command_writes_into_a_copy_of_hard_links(copy: Path, recording: Path, tmp_path: Path) -> None:
    """``cp -al LIVE COPY`` counted as a copy. ``recover COPY --apply`` cut the log of the live store."""
    fingerprint_before = golden_stores.fingerprint(tmp_path)
    for name, row in WRITERS.items():
        code, err = answer([{"STORE": str(copy), "RECORDING": str(recording)}.get(word, word) for word in row])
        assert code == 3, (name, err)
        assert err.count("storescope: ") == 1, (name, err)
        assert "has a second name (a hard link)" in err, (name, err)
        assert f"cp -a {copy} NEW" in err, (name, err)
        assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(tmp_path)) == [], name
    for opened in (lambda: MessageStore(copy), lambda: OwnStore(copy, MessageStoreConfig(), "5.3")):
        with pytest.raises(LinkedFile, match="second name"):
            opened()
        assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(tmp_path)) == []


def test_one_linked_file_is_enough_and_a_real_copy_is_written(copy: Path, tmp_path: Path) -> None:
    real = Path(shutil.copytree(copy, tmp_path / "real"))
    words = ["recover", str(real), "--apply", "--yes", "--no-backup"]
    queue = next((real / "consumequeue").glob("*/*/*"))
    os.link(queue, tmp_path / "beside")
    code, err = answer(words)
    assert code == 3
    assert str(queue) in err
    (tmp_path / "beside").unlink()
    assert answer(words)[0] == 0


def test_a_store_that_is_only_read_may_be_linked(copy: Path) -> None:
    assert answer(["info", str(copy)])[0] == 0
    assert answer(["recover", str(copy), "--plan"])[0] == 0
    assert answer(["copy", str(copy), str(copy.parent / "new")])[0] == 0
    assert answer(["dispatch", str(copy), "--to", str(copy.parent / "built")])[0] == 0
