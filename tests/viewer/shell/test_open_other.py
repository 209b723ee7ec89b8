"""Other inputs than a store: archives are unpacked to the cache, and a configuration names its store."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StoreError
from viewer.shell import open_other as taking
from viewer.shell.open_other import kind_of, take
from viewer.shell.session_file import Session, write


class CountingControl:
    """Counts progress reports."""

    def __init__(self) -> None:
        self.done = 0.0

    def check(self) -> None: ...

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        self.done = done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to be packed."""
    path = tmp_path / "broker" / "store" / "commitlog"
    path.mkdir(parents=True)
    (path / "00000000000000000000").write_bytes(b"x" * 100)
    return tmp_path / "broker"


def take_with_control(path: Path, cache: Path) -> Any:
    """Call ``take`` with a new control."""
    return take(CountingControl(), path, cache)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.storescope", "session"),
        ("A.TAR.XZ", "archive"),
        ("b.zip", "archive"),
        ("broker.conf", "conf"),
        ("store", ""),
    ],
)
def test_the_name_shows_the_kind(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind


def test_archives_are_unpacked_once_and_elsewhere(tmp_path: Path, folder: Path) -> None:
    packed = [tmp_path / "a.tar.gz", tmp_path / "b.zip"]
    with tarfile.open(packed[0], "w:gz") as out:
        out.add(folder, "broker")
    with zipfile.ZipFile(packed[1], "w") as zipped:
        for file in folder.rglob("*"):
            zipped.write(file, file.relative_to(tmp_path))
    entries_before = sorted(tmp_path.iterdir())
    for file in packed:
        cache = tmp_path / "cache" / file.name
        store = take_with_control(file, cache).store
        assert (store / "broker/store/commitlog/00000000000000000000").read_bytes() == b"x" * 100
        assert store.is_relative_to(cache)
        assert take_with_control(file, cache).store == store
        assert [part for part in store.parent.iterdir() if part.suffix == ".part"] == []
    assert sorted(set(tmp_path.iterdir()) - {tmp_path / "cache"}) == entries_before


def test_an_archive_cannot_reach_out_of_its_folder(tmp_path: Path) -> None:
    evil = tmp_path / "evil.tar"
    with tarfile.open(evil, "w") as out:
        info = tarfile.TarInfo("../../outside")
        info.size = 0
        out.addfile(info)
    with pytest.raises(StoreError, match="cannot be read"):
        take_with_control(evil, tmp_path / "cache")
    assert not (tmp_path / "outside").exists()


def test_broken_and_huge_archives_are_refused(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.zip").write_bytes(b"no archive")
    with pytest.raises(StoreError, match="expected an archive"):
        take_with_control(tmp_path / "x.zip", tmp_path / "cache")
    packed = tmp_path / "big.tar"
    with tarfile.open(packed, "w") as out:
        out.add(folder, "broker")
    monkeypatch.setattr(taking, "MAX_UNPACKED_BYTES", 10)
    with pytest.raises(StoreError, match="unpack it yourself"):
        take_with_control(packed, tmp_path / "cache")
    assert not any((tmp_path / "cache" / "opened").iterdir())


def test_a_configuration_names_its_store(tmp_path: Path, folder: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathRootDir={folder}/store\nmappedFileSizeCommitLog=1048576\n", "utf-8")
    results = take_with_control(conf, tmp_path)
    assert results.store == folder / "store"
    assert results.config.mapped_file_size_commit_log == 1 << 20
    conf.write_text("brokerName=a\n", "utf-8")
    with pytest.raises(StoreError, match="storePathRootDir"):
        take_with_control(conf, tmp_path)


def test_a_session_leads_to_its_store(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "x.storescope"
    write(file, Session(str(folder), "positions"))
    results = take_with_control(file, tmp_path)
    assert (results.store, results.session.place) == (folder, "positions")
    assert take_with_control(tmp_path / "not there.zip", tmp_path).store == tmp_path / "not there.zip"
