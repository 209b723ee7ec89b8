"""Where machine code of the compiled twins is kept: the user's cache, one folder for each state of their sources.

numba itself looks at one source file only, so a change of :mod:`engine.codec.intrinsics` would not reach the code of
:mod:`engine.codec.compiled` that uses it: the folder is named after both.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
from pathlib import Path

from engine.own_folders import find_own, for_a_while, own_folder, user_cache
from engine.whole_file import PRIVATE, put_whole

_SOURCES = (
    "compiled.py",
    "compiled_chains.py",
    "compiled_dispatch.py",
    "compiled_texts.py",
    "compiled_put.py",
    "compiled_write.py",
    "intrinsics.py",
    "machine_code.py",
    "machine_code_build.py",
    "object_put.py",
    "unit_fields.py",
    "unit_flavours.py",
    "write_job.py",
)


def folder() -> Path:
    """Where machine code is kept: :func:`prepare` has seen to it. Raises ``OSError``."""
    prepare()
    return Path(os.environ["NUMBA_CACHE_DIR"])


def kept(name: str) -> bytes | None:
    """What :func:`keep` has put there by this name; None for nothing. Raises ``OSError``."""
    try:
        return (folder() / name).read_bytes()
    except FileNotFoundError:
        return None


def keep(name: str, content: bytes) -> None:
    """Have ``content`` stand in the folder by this name, whole or not at all. Raises ``OSError``."""
    put_whole(folder() / name, content, PRIVATE)


def prepare() -> None:
    """Tell numba, before it is imported, where to keep machine code: where the user's environment says, else in the
    user's cache, else among temporary files, in the first of them that nobody else can write and has written, else in a
    new folder of this process. Raises ``OSError`` where that cannot be made either.

    Machine code is code: whoever can write it would run in this process.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given and find_own(Path(given)) is not None:
        return
    places = (user_cache() / "storescope", for_a_while())
    os.environ["NUMBA_CACHE_DIR"] = str(own_folder(places, "numba", _fingerprint()))


def _fingerprint() -> str:
    """Sixteen hex digits that differ where the sources of the twins differ."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        try:
            source = pkgutil.get_data(__package__, name)  # also where the engine came as a zip
        except OSError:
            source = None
        digest.update(source or name.encode())
    return digest.hexdigest()[:16]
