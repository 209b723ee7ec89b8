"""The self-contained archive brings the packages that the program names, its file types and its manual page.

``packaging/try_archive.sh`` tries what is built, on bare systems.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from engine.capsule.recognition import MAGIC
from engine.cli.main import build_parser
from viewer.shell.session_file import SUFFIX

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """Return a module of ``packaging/``."""
    spec = importlib.util.spec_from_file_location(f"packaging_{name}", ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "packaging"))
        spec.loader.exec_module(module)
    sys.modules.pop("docs", None)
    return module


def locked(*, is_small: bool) -> dict[str, str]:
    """Return the version of each locked package."""
    text = script("archive").locked_packages(is_small=is_small)
    assert all("--hash=sha256:" in block for block in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:])
    return {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}


@pytest.mark.parametrize("is_small", [False, True])
def test_an_archive_has_every_package_of_the_program_in_a_version_that_it_accepts(*, is_small: bool) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + [
        line for name in ("codecs", "metrics", "rocksdb", "sql", "decoders") for line in extras[name]
    ]
    packages = locked(is_small=is_small)
    for requirement in map(Requirement, lines):
        name = canonicalize_name(requirement.name)
        if name not in script("archive").NOT_IN_SMALL or not is_small:
            assert requirement.specifier.contains(packages[name]), requirement


def test_the_lock_has_nothing_that_no_package_of_the_program_needs() -> None:
    """A package that was dropped from pyproject.toml stayed in the archive if nobody made the lock anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [
        line for name in ("codecs", "metrics", "rocksdb", "sql", "decoders") for line in extras[name]
    ]
    names = {canonicalize_name(Requirement(line).name) for line in wanted}
    below = {"shiboken6", "colorama"}  # of PySide6, and of pyqtgraph
    assert set(locked(is_small=False)) == names | below


def test_the_parts_list_names_debian_s_libraries_and_the_version() -> None:
    parts: dict[str, Any] = {"metadata": {"component": {"name": "storescope"}}, "components": [], "dependencies": []}
    manifest = "commit 1\n\nFrom the Python package index:\nnumpy-2.4.6\n\nFrom Debian 12:\nzlib1g_1%3a1.2.13-1_amd64\n"
    parts_list = script("parts_list")
    parts_list.complete(parts, manifest, "1.0.0")
    assert parts["metadata"]["component"]["version"] == "1.0.0"
    assert [(part["name"], part["version"]) for part in parts["components"]] == [("zlib1g", "1:1.2.13-1")]
    assert parts["dependencies"] == [{"ref": "pkg:deb/debian/zlib1g@1%3A1.2.13-1?arch=amd64&distro=debian-12"}]
    with pytest.raises(ValueError, match="found none"):
        parts_list.complete(parts, "commit 1\n", "1.0.0")


def test_the_small_archive_has_neither_qt_nor_sql() -> None:
    small, full = locked(is_small=True), locked(is_small=False)
    assert {name for name in small if small[name] != full[name]} == {"llvmlite", "numba", "numpy"}
    assert set(full) - set(small) == set(script("archive").NOT_IN_SMALL)


def test_nothing_of_the_program_is_removed_as_unused() -> None:
    archive = script("archive")
    files = [
        PurePosixPath(archive.SITE) / path.relative_to(ROOT)
        for package in ("engine", "viewer", "resources")
        for path in (ROOT / package).rglob("*")
        if "__pycache__" not in path.parts
    ]
    assert len(files) > 500
    assert [str(path) for path in files for pattern in archive.own_list("unused") if path.match(pattern)] == []


def test_desktops_know_the_files_of_the_program() -> None:
    kinds = ET.parse(ROOT / "packaging/desktop/storescope.xml").getroot()
    name = "{http://www.freedesktop.org/standards/shared-mime-info}"
    globs = {glob.get("pattern") for glob in kinds.iter(f"{name}glob")}
    assert globs == {f"*{SUFFIX}", "*.capsule"}
    (magic,) = (match.get("value") or "" for match in kinds.iter(f"{name}match"))
    assert magic.encode().decode("unicode_escape").encode("latin-1") == MAGIC
    entry = (ROOT / "packaging/desktop/storescope.desktop").read_text("utf-8")
    for kind in kinds.iter(f"{name}mime-type"):
        assert f"{kind.get('type')};" in entry


def test_the_manual_page_describes_every_command_and_option() -> None:
    page = script("man_page").manual_page(build_parser())
    commands = {line.split()[2].replace(r"\-", "-") for line in page.splitlines() if line.startswith(".SS storescope ")}
    assert commands == {path.stem for path in (ROOT / "resources/docs/commands").glob("*.md")}
    assert r"\fB\-\-ignore\-config\-paths\fR" in page
    macros = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert macros == {".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi"}
