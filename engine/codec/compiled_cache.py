"""The folder for machine code of the compiled twins: in the user's cache, one folder per state of their sources.

numba itself checks only one source file. A change of :mod:`engine.codec.intrinsics` would not reach the code of
:mod:`engine.codec.compiled` that uses it, so the folder's name is a hash of all sources.

"""

from __future__ import annotations

import hashlib
import os
import pkgutil
from collections.abc import Callable
from pathlib import Path

from engine.files.atomic_file import PRIVATE, write_atomically
from engine.files.own_folders import find_own, own_folder, user_cache, user_temporary

_SOURCES = (
    "compiled.py",
    "compiled_chains.py",
    "compiled_copies.py",
    "compiled_dispatch.py",
    "compiled_texts.py",
    "compiled_put.py",
    "compiled_search.py",
    "compiled_survey.py",
    "compiled_times.py",
    "compiled_write.py",
    "intrinsics.py",
    "intrinsics_crc.py",
    "log_copies.py",
    "machine_code.py",
    "machine_code_build.py",
    "object_put.py",
    "unit_fields.py",
    "unit_flavours.py",
    "unit_runs.py",
    "unit_survey.py",
    "write_job.py",
)


on_first_compilation: Callable[[], None] | None = None
"""Called once, by the thread that compiles, where machine code is not in the cache and has to be compiled now."""


def note_compilation() -> None:
    """Call the listeners: machine code is compiled now."""
    global on_first_compilation
    tell, on_first_compilation = on_first_compilation, None
    if tell is not None:
        tell()


def folder() -> Path:
    """Return the folder of machine code, after :func:`prepare`. Raises ``OSError``."""
    prepare()
    return Path(os.environ["NUMBA_CACHE_DIR"])


def read_saved(name: str) -> bytes | None:
    """Return the content that :func:`save` saved under ``name``, or None. Raises ``OSError``."""
    try:
        return (folder() / name).read_bytes()
    except FileNotFoundError:
        return None


def save(name: str, content: bytes) -> None:
    """Save ``content`` in the folder under ``name``, completely or not at all. Raises ``OSError``."""
    write_atomically(folder() / name, content, PRIVATE)


def prepare() -> None:
    """Set numba's cache folder; must run before numba is imported. Raises ``OSError`` if no folder can be made.

    The candidates are the folder in the user's environment, the user's cache, and temporary files. The first is
    taken that no other user can write or has written; else a new folder of this process. Machine code is code: a
    user who can write it could run code in this process.

    """
    chosen_folder = os.environ.get("NUMBA_CACHE_DIR")
    if chosen_folder and find_own(Path(chosen_folder)) is not None:
        return
    candidates = (user_cache() / "storescope", user_temporary())
    os.environ["NUMBA_CACHE_DIR"] = str(own_folder(candidates, "numba", _fingerprint()))


def _fingerprint() -> str:
    """Return sixteen hex digits that change with the sources of the twins."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        try:
            source = pkgutil.get_data(__package__, name)  # also works if the engine is in a zip
        except OSError:
            source = None
        digest.update(source or name.encode())
    return digest.hexdigest()[:16]
