"""Where machine code of the compiled twins is kept: the user's cache, one folder for each state of their sources.

numba itself looks at one source file only, so a change of :mod:`engine.codec.intrinsics` would not reach the code of
:mod:`engine.codec.compiled` that uses it: the folder is named after both.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import tempfile
from pathlib import Path

_SOURCES = (
    "compiled.py", "compiled_chains.py", "compiled_gather.py", "compiled_write.py", "gather_job.py", "intrinsics.py",
    "intrinsics_write.py", "write_job.py",
)  # fmt: skip


def prepare() -> None:
    """Tell numba, before it is imported, where to keep machine code; a folder set by the user's environment stays."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = _user_cache() / "storescope" / "numba" / _fingerprint()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    os.environ["NUMBA_CACHE_DIR"] = str(folder) if usable else tempfile.mkdtemp(prefix="storescope-numba-")


def _user_cache() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path("~").expanduser() / ".cache"


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
