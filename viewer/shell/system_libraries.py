"""What Qt lacks on this machine, in words, instead of a traceback or an abort.

Qt comes with PySide6; what it is linked to comes with the system, and a server has none of it. Without a library of
its own PySide6 cannot be imported; without one of the display's plug-in, or without the display, Qt ends the process
itself while the application is made. Imports no Qt: that may be what fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

EXIT_CODE = 3
PICTURE = "--screenshot OUT.png draws the window into a file"
PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libbrotlicommon.so.1": "libbrotli1",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
"""The Debian package of each library that some part of Qt here asks the system for."""
_MODULES = ("QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg")
_ABSENT = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_PLUGIN = re.compile(r'platform plugin "([\w-]+)"')


def without_display() -> str:
    """The lines for a window that nobody could see, with what even a picture of it lacks."""
    names = _lacking_for("offscreen")
    first = f"there is no display; {PICTURE}"
    return _lines(first, f"for which Qt lacks {', '.join(names)}", _on_debian(names)) if names else first


def instead_of_traceback(error: ImportError, *, picture: bool) -> str | None:
    """Lines for an import that failed for want of a system library; None where the error is our own.

    ``picture`` says that only a file is to be drawn, which needs fewer libraries than a window.
    """
    if ".so" not in str(error):
        return None
    few = _lacking_for("offscreen")
    names = few if picture else _lacking_for(_window_platform())
    if not names:
        names = few = _ABSENT.findall(str(error))
    if not names:
        return f"Qt cannot be loaded here: {str(error).splitlines()[0]}"
    return _words(names, None if picture else few)


@contextlib.contextmanager
def told_instead_of_aborted(*, picture: bool) -> Iterator[None]:
    """While Qt makes the application: where it would abort the process ends with these words and code 3."""
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler

    said: list[str] = []
    printed: list[str] = []

    def hear(kind: QtMsgType, context: QMessageLogContext, words: str) -> None:
        said.append(words)
        if kind == QtMsgType.QtFatalMsg:
            sys.stderr.write(f"storescope: {_why_not(said, picture=picture)}\n")
            sys.stderr.flush()
            os._exit(EXIT_CODE)  # Qt aborts as soon as this returns
        printed.append(qFormatLogMessage(kind, context, words))

    before = qInstallMessageHandler(hear)
    try:
        yield
    finally:
        qInstallMessageHandler(before)
        for line in printed:
            sys.stderr.write(f"{line}\n")


def _why_not(said: list[str], *, picture: bool) -> str:
    """Lines for what Qt said before it gave up."""
    from PySide6.QtCore import QCoreApplication

    places = [Path(place) for place in QCoreApplication.libraryPaths()]
    tried = {name for words in said for name in _PLUGIN.findall(words)}
    names = _lacking(_plugin_file(place, name) for name in sorted(tried) for place in places)
    if names:
        return _words(names, None if picture else [])
    offer = [] if picture else [PICTURE]
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if display and any("connect to display" in words or "wayland display" in words for words in said):
        return _lines(f"the display {display} cannot be opened", *offer)
    return _lines(f"Qt does not start: {said[0].splitlines()[0]}", *offer)


def _words(names: list[str], for_picture: list[str] | None) -> str:
    """What is missing, what installs it, and what is enough for a picture; None where a picture was asked for."""
    lines = [f"Qt lacks {', '.join(names)}", _on_debian(names)]
    if for_picture is not None:
        lines.append(f"{PICTURE} {'after ' + _install(for_picture) if for_picture else 'without them'}")
    return _lines(*lines)


def _on_debian(names: list[str]) -> str:
    return f"on Debian and its kin: {_install(names)}"


def _lines(first: str, *others: str) -> str:
    return "\n  ".join((first, *others))


def _install(names: list[str]) -> str:
    known = list(dict.fromkeys(PACKAGES[name] for name in names if name in PACKAGES))
    others = [name for name in names if name not in PACKAGES]
    commands = ["apt-get install " + " ".join(known)] if known else []
    return ", ".join([*commands, *(f"`apt-file search {name}` names its package" for name in others)])


def _window_platform() -> str:
    """Where Qt would draw a window: as the caller chose, or as the display asks."""
    chosen = re.match(r"[\w-]+", os.environ.get("QT_QPA_PLATFORM", ""))
    if chosen:
        return chosen[0]
    return "xcb" if os.environ.get("DISPLAY") or not os.environ.get("WAYLAND_DISPLAY") else "wayland"


def _lacking_for(platform: str) -> list[str]:
    """What PySide6 and the plug-in of ``platform`` lack; nothing where there is no PySide6."""
    found = importlib.util.find_spec("PySide6")
    if found is None or not found.origin:
        return []
    folder = Path(found.origin).parent
    modules = [folder / f"{name}.abi3.so" for name in _MODULES]
    return _lacking([*modules, _plugin_file(folder / "Qt/plugins", platform)])


def _plugin_file(plugins: Path, platform: str) -> Path:
    return plugins / "platforms" / f"libq{platform}.so"


def _lacking(files: Iterable[Path]) -> list[str]:
    """Names of the libraries that these files need, themselves or through others, and that are not here; sorted."""
    there = [file for file in files if file.is_file()]
    tool = shutil.which("ldd")
    missing: set[str] = set()
    for file in there:
        if tool is None:
            missing.update(_first_lacking(file))
            continue
        asked = subprocess.run([tool, str(file)], capture_output=True, text=True, check=False)  # noqa: S603 (a file of PySide6)
        missing.update(re.findall(r"^\s*(\S+) => not found", asked.stdout, re.MULTILINE))
    return sorted(missing)


def _first_lacking(file: Path) -> list[str]:
    """The loader's own answer, which names one library at a time."""
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        return _ABSENT.findall(str(error))
    return []
