"""The journal of a backup folder, ``kept.jsonl``: how the store was, and each change."""

from __future__ import annotations

from pathlib import Path

import golden_stores
import pytest
from undone_stores import kept_in, made, same

from engine.cli.main import main
from engine.mapped.backup_journal import JOURNAL


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


@pytest.fixture
def store_of_kept_folder(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


@pytest.fixture
def applied(store_of_kept_folder, tmp_path, capsys) -> tuple[Path, Path]:
    assert main(["recover", str(store_of_kept_folder), "--apply", "--yes"]) == 0
    capsys.readouterr()
    return store_of_kept_folder, kept_in(tmp_path)[0]


def refuses(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 3
    assert same(store, before) == []
    return capsys.readouterr().err


@pytest.mark.parametrize("how", ["missing", "damaged", "journal"])
def test_what_is_missing_or_damaged_in_the_folder_is_named(applied, capsys, how):
    store, folder = applied
    file = folder / JOURNAL if how == "journal" else max((folder / "files").iterdir(), key=lambda f: f.stat().st_size)
    if how == "missing":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2 if how == "journal" else next(n for n, byte in enumerate(data) if byte)] ^= 0xFF
        file.write_bytes(data)
    assert str(file) in refuses(store, folder, capsys)
