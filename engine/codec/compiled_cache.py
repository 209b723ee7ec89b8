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
    """Tell numba, before it is imported, where to keep machine code: where the user's environment says, else in the
    user's cache, else in a new folder of this process. Raises ``OSError`` where that cannot be made either.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given and _usable(Path(given)):
        return
    folder = _user_cache() / "storescope" / "numba" / _fingerprint()
    os.environ["NUMBA_CACHE_DIR"] = str(folder) if _usable(folder) else tempfile.mkdtemp(prefix="storescope-numba-")


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


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
