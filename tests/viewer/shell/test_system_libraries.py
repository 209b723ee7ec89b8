"""If Qt lacks a system library, ``view`` prints a message: no traceback, no abort.

On a server, ``storescope view STORE`` ended with a traceback that named ``libglib-2.0.so.0`` in its last line. With a
missing display, or without ``libxcb-cursor.so.0``, it aborted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import PySide6
import pytest

from viewer.shell import system_libraries
from viewer.shell.system_libraries import PACKAGES

ROOT = Path(__file__).resolve().parents[3]
QT = Path(PySide6.__file__).parent
PICTURE = "--screenshot OUT.png draws the window into a file"
NOWHERE = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "QT_PLUGIN_PATH")


def view(tmp_path: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in NOWHERE}
    command = [sys.executable, "-m", "viewer", "--config-dir", str(tmp_path / "config"), str(tmp_path), *args]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=ROOT, env=clean | environment, check=False
    )


def refused(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines on standard error of a run that correctly refused to draw."""
    assert done.returncode == 3, done
    assert done.stdout == ""
    for word in ("Traceback", "Aborted", "qt.qpa", "ImportError"):
        assert word not in done.stderr
    return done.stderr.splitlines()


@pytest.fixture
def without_glib(tmp_path: Path) -> str:
    """A PySide6 that fails like on a machine without GLib, with the loader's own message."""
    folder = tmp_path / "site" / "PySide6"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("", "utf-8")
    words = "libglib-2.0.so.0: cannot open shared object file: No such file or directory"
    (folder / "QtCore.py").write_text(f"raise ImportError({words!r})\n", "utf-8")
    return str(folder.parent)


def test_a_library_that_qt_itself_lacks_is_named_with_its_package(tmp_path: Path, without_glib: str) -> None:
    lines = refused(view(tmp_path, DISPLAY=":7", PYTHONPATH=without_glib))
    assert lines == [
        "storescope: Qt lacks libglib-2.0.so.0",
        "  on Debian and its kin: apt-get install libglib2.0-0",
        f"  {PICTURE} after apt-get install libglib2.0-0",
    ]
    picture = refused(view(tmp_path, "--screenshot", str(tmp_path / "x.png"), PYTHONPATH=without_glib))
    assert picture == lines[:2]


def test_an_error_of_our_own_in_the_import_keeps_its_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "site" / "PySide6"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("", "utf-8")
    (folder / "QtCore.py").write_text("from json import no_such_name\n", "utf-8")
    done = view(tmp_path, DISPLAY=":7", PYTHONPATH=str(folder.parent))
    assert "ImportError: cannot import name 'no_such_name'" in done.stderr


@pytest.fixture
def qt_without_cursor(tmp_path: Path) -> str:
    """Qt's plug-in for X displays, linked to a missing library, like on a machine without ``libxcb-cursor0``."""
    plugins = tmp_path / "qt" / "plugins"
    (plugins / "platforms").mkdir(parents=True)
    (tmp_path / "qt" / "lib").symlink_to(QT / "Qt/lib")
    linked = (QT / "Qt/plugins/platforms/libqxcb.so").read_bytes()
    assert b"libxcb-cursor.so.0\0" in linked
    (plugins / "platforms/libqxcb.so").write_bytes(linked.replace(b"libxcb-cursor.so.0\0", b"libxcb-cursoR.so.0\0"))
    return str(plugins)


@pytest.mark.parametrize("tool", ["ldd", "no ldd"])
def test_a_library_that_the_display_lacks_is_named_where_qt_would_abort(
    tmp_path: Path, qt_without_cursor: str, tool: str
) -> None:
    code = (
        "import os, sys\n"
        "from PySide6.QtCore import QCoreApplication\n"
        f"QCoreApplication.setLibraryPaths([{qt_without_cursor!r}])\n"
        "sys.argv[0] = 'viewer'\n"
        "from viewer.command import main\n"
        "sys.exit(main())\n"
    )
    clean = {name: value for name, value in os.environ.items() if name not in NOWHERE}
    clean |= {"DISPLAY": ":7", "PATH": clean["PATH"] if tool == "ldd" else str(tmp_path)}
    command = [sys.executable, "-c", code, "--config-dir", str(tmp_path / "config"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, env=clean, check=False)
    lines = refused(done)
    assert lines == [
        "storescope: Qt lacks libxcb-cursoR.so.0",
        "  on Debian and its kin: `apt-file search libxcb-cursoR.so.0` names its package",
        f"  {PICTURE} without them",
    ]


def test_a_missing_display_is_named_instead_of_an_abort(tmp_path: Path) -> None:
    assert refused(view(tmp_path, DISPLAY=":60077")) == [
        "storescope: the display :60077 cannot be opened",
        f"  {PICTURE}",
    ]


def test_an_unknown_platform_is_reported_with_qts_message(tmp_path: Path) -> None:
    lines = refused(view(tmp_path, QT_QPA_PLATFORM="sand"))
    assert "sand" in lines[0]
    assert lines[1:] == [f"  {PICTURE}"]


def test_a_picture_is_drawn_although_the_display_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(bytes(4096))
    done = view(tmp_path, "--screenshot", str(tmp_path / "x.png"), DISPLAY=":60077")
    assert (tmp_path / "x.png").stat().st_size > 1000, done


def test_all_missing_libraries_are_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks = {"xcb": ["libEGL.so.1", "libxcb-cursor.so.0", "libxcb.so.1"], "offscreen": ["libEGL.so.1"]}
    monkeypatch.setattr(system_libraries, "_lacking_for", lacks.__getitem__)
    monkeypatch.setattr(system_libraries, "_window_platform", lambda: "xcb")
    error = ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")
    assert system_libraries.instead_of_traceback(error, picture=False) == (
        "Qt lacks libEGL.so.1, libxcb-cursor.so.0, libxcb.so.1\n"
        "  on Debian and its kin: apt-get install libegl1 libxcb-cursor0 libxcb1\n"
        f"  {PICTURE} after apt-get install libegl1"
    )
    assert system_libraries.without_display() == (
        f"there is no display; {PICTURE}\n  for which Qt lacks libEGL.so.1\n"
        "  on Debian and its kin: apt-get install libegl1"
    )


def test_the_packages_are_those_of_the_setup_script() -> None:
    """The list in the messages and the list in the script must agree."""
    script = (ROOT / "packaging" / "environment.sh").read_text("utf-8")
    lists = re.findall(r'^qt_(?:offscreen|display)="([^"]*)"', script, re.MULTILINE)
    installed = {name for package_list in lists for name in package_list.split()}
    # libbrotli1 comes with libfreetype6; a machine with a Wayland display has Wayland's libraries.
    indirect_packages = {"libbrotli1", "libwayland-client0", "libwayland-cursor0"}
    assert set(PACKAGES.values()) - indirect_packages == installed


def test_every_library_of_the_plug_ins_has_its_package() -> None:
    """The libraries are read from the installed files, so a new Qt that needs one more fails here."""
    needed: set[str] = set()
    files = [QT / f"Qt/plugins/platforms/libq{name}.so" for name in ("offscreen", "xcb", "wayland")]
    for name in ("Core", "Gui", "Widgets", "Network", "Svg", "DBus", "OpenGL", "XcbQpa", "WaylandClient"):
        files.append(QT / f"Qt/lib/libQt6{name}.so.6")
    known_values = re.compile(rb"\0(lib(?:xcb|xkb|X11|wayland|EGL|GL|glib|dbus|brotli|font|free)[\w.+-]*\.so\.\d+)\0")
    for file in files:
        needed.update(name.decode() for name in known_values.findall(file.read_bytes()))
    assert {"libxcb-cursor.so.0", "libEGL.so.1", "libwayland-client.so.0"} <= needed
    assert needed <= set(PACKAGES)
