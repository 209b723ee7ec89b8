"""Last words of a run that ended badly: found at the next start, kept, and offered to whoever sits there. No Qt.

They stay on this machine; nothing is sent.
"""

from __future__ import annotations

from pathlib import Path

NAME = "last-words.txt"
OLD = "last-words.old.txt"
LARGEST = 1 << 20
SIGNS = ("Fatal Python error", "Windows fatal exception", "uncaught at ")
"""What stands in the notes where the program crashed or an error was caught by nobody."""


def take(folder: Path) -> str:
    """The last words below ``folder``, which are put aside; empty where the last run ended well."""
    file = folder / NAME
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - LARGEST))
            text = stream.read().decode("utf-8", "replace")
        if not any(sign in text for sign in SIGNS):
            return ""
        file.replace(folder / OLD)
    except OSError:
        return ""
    return text
