"""The folder for machine code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.codec import compiled_cache
from engine.files import own_folders


@pytest.fixture
def place(tmp_path):
    """A folder that only this user can write."""
    return Path(os.path.realpath(tmp_path))


def test_machine_code_is_saved_where_only_this_user_can_write(place, monkeypatch):
    """Machine code runs in this process, so a ``NUMBA_CACHE_DIR`` that others can write is ignored."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    private_folder = place / "cache" / "storescope" / "numba" / compiled_cache._fingerprint()
    for arguments, expected in (
        (place / "mine", place / "mine"),
        (place / "shared", private_folder),
        (None, private_folder),
    ):
        if arguments is None:
            monkeypatch.delenv("NUMBA_CACHE_DIR")
        else:
            arguments.mkdir()
            arguments.chmod(0o777 if arguments.name == "shared" else 0o700)
            monkeypatch.setenv("NUMBA_CACHE_DIR", str(arguments))
        compiled_cache.prepare()
        assert os.environ["NUMBA_CACHE_DIR"] == str(expected)
    (private_folder / "theirs.nbi").touch()
    private_folder.chmod(0o777)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(own_folders.tempfile, "gettempdir", lambda: str(place / "tmp"))
    compiled_cache.prepare()
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_relative_to(place / "tmp")


def test_a_compilation_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(compiled_cache, "on_first_compilation", lambda: texts.append("compiled"))
    compiled_cache.note_compilation()
    compiled_cache.note_compilation()
    assert texts == ["compiled"]
