"""The sample stores that ship with the program, unpacked to the user's cache at first use.

``resources/samples/samples.json`` lists them with the texts of the welcome page. Each archive is a tar file packed with
xz, whose only top folder is the store. This module is their only door; what it unpacks may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from engine.errors import BadArchive, CannotRead, UsageError
from engine.inspection.archives import unpack

LARGEST = 1 << 28
"""Bytes that an archive may unpack to."""
_DONE = "unpacked"


@dataclass(frozen=True, slots=True)
class Sample:
    """A store to look at: English texts; ``state`` is the mark of its chip and ``word`` the chip's word."""

    name: str
    archive: str
    sha256: str  # of the archive, in hex
    title: str
    text: str
    state: str
    word: str


def samples() -> list[Sample]:
    """The samples that are installed, in the order in which they are shown."""
    listing = _folder() / "samples.json"
    if not listing.is_file():
        return []
    return [Sample(**item) for item in json.loads(listing.read_text("utf-8"))]


def names() -> list[str]:
    """Names of the samples that are installed."""
    return [item.name for item in samples()]


def default_cache() -> Path:
    """Where this user's samples are unpacked."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("storescope", appauthor=False))


def sample(name: str, cache_dir: Path | None = None) -> Path:
    """The store directory of the sample ``name``, unpacked below ``cache_dir`` where it is not there yet.

    It appears whole or not at all, also where two programs ask at once. A directory that lacks a file or has one of
    another length is replaced. Raises :class:`UsageError` for a name that is none, :class:`CannotRead` where the cache
    cannot be written or the archive is not what was packed.
    """
    known = {item.name: item for item in samples()}
    if name not in known:
        raise UsageError(f"there is no sample {name!r}; there are {', '.join(known) or 'none'}")
    try:
        parent = (cache_dir or default_cache()) / "samples"
        home = parent / f"{name}-{known[name].sha256[:12]}"
        if not _is_whole(home):
            packed = (_folder() / known[name].archive).read_bytes()
            if hashlib.sha256(packed).hexdigest() != known[name].sha256:
                raise ValueError(f"expected an archive with SHA-256 {known[name].sha256}")
            parent.mkdir(parents=True, exist_ok=True)
            _unpack(packed, home)
        return _stores(home)[0]
    except OSError as error:
        why = error.strerror or error
        raise CannotRead(f"the sample {name} cannot be unpacked: {why}", file=error.filename) from error
    except (BadArchive, ValueError) as error:
        raise CannotRead(f"the sample {name} is damaged: {error}", file=known[name].archive) from error


def _folder() -> Traversable:
    return files("resources") / "samples"


def _unpack(packed: bytes, home: Path) -> None:
    """Beside its place, then moved there in one step."""
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.", dir=home.parent) as scratch:
        half = Path(scratch) / "half"
        half.mkdir()
        told = unpack(io.BytesIO(packed), half, LARGEST)
        if len(_stores(half)) != 1:
            raise ValueError("one store is expected in it as its only folder")
        (half / _DONE).write_text(json.dumps(told), "utf-8")
        if home.exists() and not _is_whole(home):
            shutil.rmtree(home)
        try:
            half.rename(home)
        except OSError:
            if not _is_whole(home):  # somebody else was quicker: theirs is as good
                raise


def _is_whole(home: Path) -> bool:
    """Every file that was unpacked is there with its length."""
    try:
        told = json.loads((home / _DONE).read_text("utf-8"))
        return all((home / name).stat().st_size == size for name, size in told.items())
    except (OSError, ValueError):
        return False


def _stores(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
