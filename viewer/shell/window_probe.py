"""``python -m viewer.shell.window_probe``: print what the window finds here, as a JSON list: Qt, its plug-ins, fonts.

``storescope doctor`` runs it in a process of its own, because Qt ends a process that lacks a library.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from viewer.shell import system_libraries

FONTS = (("Inter", "fonts-inter"), ("JetBrains Mono", "fonts-jetbrains-mono"))
"""The fonts that the window is drawn for, and their Debian packages; it works with others."""
CHINESE_FONT_PACKAGE = "fonts-wqy-microhei"


def row(name: str, state: str, value: str | None, fix: str | None = None) -> dict[str, Any]:
    return {"name": name, "state": state, "value": value, "fix": fix}


def probe() -> list[dict[str, Any]]:
    """Return a row for each thing that the window needs."""
    try:
        from PySide6.QtCore import QLibraryInfo, qVersion
        from PySide6.QtGui import QFontDatabase, QGuiApplication
    except ImportError as error:
        words = system_libraries.instead_of_traceback(error, picture=False) or str(error)
        return [row("Qt", "problem", *_reason_and_fix(words))]
    with system_libraries.explained_instead_of_aborted(picture=True):
        application = QGuiApplication.instance() or QGuiApplication([])
    folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)) / "platforms"
    plugins = sorted(file.stem.removeprefix("libq") for file in folder.glob("*q*"))
    rows = [row("Qt", "ok", qVersion()), row("platform plug-ins", "ok", ", ".join(plugins))]
    lacking = system_libraries.lacking_on_display()
    if lacking is not None:
        rows.append(row("display", "missing", *_reason_and_fix(lacking)))
    rows += [
        row(f"font {family}", "ok", "installed")
        if QFontDatabase.hasFamily(family)
        else row(f"font {family}", "missing", "another one takes its place", f"apt-get install {package}")
        for family, package in FONTS
    ]
    chinese = QFontDatabase.families(QFontDatabase.WritingSystem.SimplifiedChinese)
    rows.append(
        row("Chinese fonts", "ok", f"{len(chinese)}")
        if chinese
        else row("Chinese fonts", "missing", "Chinese is drawn as boxes", f"apt-get install {CHINESE_FONT_PACKAGE}")
    )
    del application
    return rows


def _reason_and_fix(words: str) -> tuple[str, str | None]:
    """Return the first of the lines, and the command in the second one."""
    reason, _, details = words.partition("\n  ")
    command = details.partition("\n")[0].partition(": ")[2]
    return reason, command or None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe()))
