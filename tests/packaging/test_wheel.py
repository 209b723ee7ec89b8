"""The wheel carries every file that the program reads, and the same tree gives the same bytes."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import engine

ROOT = Path(__file__).resolve().parents[2]
BUILT = 1_700_000_000
"""The time that the files in the wheel have (``SOURCE_DATE_EPOCH``)."""


def build(folder: Path) -> Path:
    """Return the wheel of this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(BUILT))
        return Path(next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


def files_of_the_program() -> set[str]:
    """Return the files of the three packages, without what Python and editors leave there."""
    return {
        (Path(folder) / name).relative_to(ROOT).as_posix()
        for package in ("engine", "viewer", "resources")
        for folder, _, names in os.walk(ROOT / package)
        if "__pycache__" not in folder
        for name in names
        if not name.endswith((".pyc", "~", ".swp"))
    }


def test_the_wheel_has_the_files_of_the_program_and_no_others(wheel: Path) -> None:
    """A wheel without its pictures or catalogues installs and starts, and fails where they are read."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith("storescope-")}
    expected = files_of_the_program()
    assert sorted(expected - names) == []
    assert sorted(names - expected) == []
    kinds = {Path(name).suffix for name in names}
    assert {".py", ".svg", ".png", ".po", ".md", ".xz", ".json"} <= kinds


def test_desktops_find_the_entry_and_the_icon_that_it_names(wheel: Path) -> None:
    data = f"storescope-{engine.__version__}.data/data/share"
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.read(f"{data}/applications/storescope.desktop").decode()
        icon = archive.read(f"{data}/icons/hicolor/scalable/apps/storescope.svg")
    assert "\nIcon=storescope\n" in entry
    assert "\nExec=storescope view %f\n" in entry
    assert icon == (ROOT / "resources/icons/app.svg").read_bytes()


def test_the_version_of_the_wheel_is_that_of_the_engine(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"storescope-{engine.__version__}.dist-info/METADATA").decode()
    assert f"\nVersion: {engine.__version__}\n" in metadata


def test_the_same_tree_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert build(tmp_path).read_bytes() == wheel.read_bytes()
    finally:
        os.umask(before)
