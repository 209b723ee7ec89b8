"""Says in words which system libraries Qt lacks, instead of a traceback or an abort.

PySide6 brings Qt, but the libraries that Qt links to come with the system, and a server has none of them. If a
library of PySide6 itself is missing, the import fails. If one of the display's plug-in or the display itself is
missing, Qt ends the process while the application is made. This module imports no Qt, because that may be what
fails.
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
"""The Debian package of each system library that Qt needs here."""
_MODULES = ("QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg")
_ABSENT = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_PLUGIN = re.compile(r'platform plugin "([\w-]+)"')


def without_display() -> str:
    """Return the lines for a machine without a display, and what even a picture lacks there."""
    names = _lacking_for("offscreen")
    reason = f"there is no display; {PICTURE}"
    return _lines(reason, f"for which Qt lacks {', '.join(names)}", _on_debian(names)) if names else reason


def instead_of_traceback(error: ImportError, *, picture: bool) -> str | None:
    """Return the lines for an import that failed because of a missing system library, otherwise None.

    ``picture``: only a file is drawn, which needs fewer libraries than a window.
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


def lacking_on_display() -> str | None:
    """Return the lines for libraries that a window on a display lacks, None if there are all."""
    names = _lacking_for("xcb")
    return _words(names, None) if names else None


@contextlib.contextmanager
def explained_instead_of_aborted(*, picture: bool) -> Iterator[None]:
    """While Qt makes the application, print these lines and exit with code 3 instead of an abort."""
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler

    messages: list[str] = []
    printed: list[str] = []

    def hear(kind: QtMsgType, context: QMessageLogContext, words: str) -> None:
        messages.append(words)
        if kind == QtMsgType.QtFatalMsg:
            sys.stderr.write(f"storescope: {_why_not(messages, picture=picture)}\n")
            sys.stderr.flush()
            os._exit(EXIT_CODE)  # Qt aborts as soon as this returns
        printed.append(qFormatLogMessage(kind, context, words))

    old_handler = qInstallMessageHandler(hear)
    try:
        yield
    finally:
        qInstallMessageHandler(old_handler)
        for line in printed:
            sys.stderr.write(f"{line}\n")


def _why_not(messages: list[str], *, picture: bool) -> str:
    """Return lines that explain Qt's last messages."""
    from PySide6.QtCore import QCoreApplication

    places = [Path(place) for place in QCoreApplication.libraryPaths()]
    tried = {name for words in messages for name in _PLUGIN.findall(words)}
    names = _lacking(_plugin_file(place, name) for name in sorted(tried) for place in places)
    if names:
        return _words(names, None if picture else [])
    offer = [] if picture else [PICTURE]
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if display and any("connect to display" in words or "wayland display" in words for words in messages):
        return _lines(f"the display {display} cannot be opened", *offer)
    return _lines(f"Qt does not start: {messages[0].splitlines()[0]}", *offer)


def _words(names: list[str], for_picture: list[str] | None) -> str:
    """Return what is missing, what installs it, and what is enough for a picture (None if a picture was asked for)."""
    lines = [f"Qt lacks {', '.join(names)}", _on_debian(names)]
    if for_picture is not None:
        lines.append(f"{PICTURE} {'after ' + _install(for_picture) if for_picture else 'without them'}")
    return _lines(*lines)


def _on_debian(names: list[str]) -> str:
    return f"on Debian and its kin: {_install(names)}"


def _lines(head: str, *details: str) -> str:
    return "\n  ".join((head, *details))


def _install(names: list[str]) -> str:
    packages = list(dict.fromkeys(PACKAGES[name] for name in names if name in PACKAGES))
    unknown = [name for name in names if name not in PACKAGES]
    commands = ["apt-get install " + " ".join(packages)] if packages else []
    return ", ".join([*commands, *(f"`apt-file search {name}` names its package" for name in unknown)])


def _window_platform() -> str:
    """Return the platform on which Qt would draw a window: the caller's choice, or the display's."""
    chosen = re.match(r"[\w-]+", os.environ.get("QT_QPA_PLATFORM", ""))
    if chosen:
        return chosen[0]
    return "xcb" if os.environ.get("DISPLAY") or not os.environ.get("WAYLAND_DISPLAY") else "wayland"


def _lacking_for(platform: str) -> list[str]:
    """Return the libraries that PySide6 and the plug-in of ``platform`` lack. Empty if there is no PySide6."""
    spec = importlib.util.find_spec("PySide6")
    if spec is None or not spec.origin:
        return []
    folder = Path(spec.origin).parent
    modules = [folder / f"{name}.abi3.so" for name in _MODULES]
    return _lacking([*modules, _plugin_file(folder / "Qt/plugins", platform)])


def _plugin_file(plugins: Path, platform: str) -> Path:
    return plugins / "platforms" / f"libq{platform}.so"


def _lacking(files: Iterable[Path]) -> list[str]:
    """Return the sorted names of missing libraries that these files need, directly or through others."""
    existing = [file for file in files if file.is_file()]
    tool = shutil.which("ldd")
    missing: set[str] = set()
    for file in existing:
        if tool is None:
            missing.update(_first_lacking(file))
            continue
        result = subprocess.run([tool, str(file)], capture_output=True, text=True, check=False)  # noqa: S603 (a file of PySide6)
        missing.update(re.findall(r"^\s*(\S+) => not found", result.stdout, re.MULTILINE))
    return sorted(missing)


def _first_lacking(file: Path) -> list[str]:
    """Ask the loader, which names one missing library at a time."""
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        return _ABSENT.findall(str(error))
    return []
