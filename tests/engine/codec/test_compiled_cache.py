"""Where machine code is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.codec import compiled_cache
from engine.files import own_folders


@pytest.fixture
def place(tmp_path):
    """A folder of this user alone, by its own name."""
    return Path(os.path.realpath(tmp_path))


def test_machine_code_is_kept_where_nobody_else_writes(place, monkeypatch):
    """Machine code that others can write runs in this process: a shared ``NUMBA_CACHE_DIR`` is passed over."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    own = place / "cache" / "storescope" / "numba" / compiled_cache._fingerprint()
    for arguments, expected in ((place / "mine", place / "mine"), (place / "shared", own), (None, own)):
        if arguments is None:
            monkeypatch.delenv("NUMBA_CACHE_DIR")
        else:
            arguments.mkdir()
            arguments.chmod(0o777 if arguments.name == "shared" else 0o700)
            monkeypatch.setenv("NUMBA_CACHE_DIR", str(arguments))
        compiled_cache.prepare()
        assert os.environ["NUMBA_CACHE_DIR"] == str(expected)
    (own / "theirs.nbi").touch()
    own.chmod(0o777)
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
