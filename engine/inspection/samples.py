"""The sample stores that ship with the program, unpacked to the user's cache at first use.

``resources/samples/samples.json`` lists them with the texts of the welcome page. Each archive is a tar file packed with
xz, whose only top folder is the store. All access goes through this module; unpacked samples may be deleted at any
time.
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
from engine.sentences import sentence

MAX_UNPACKED_BYTES = 1 << 28
"""Largest unpacked size of an archive, in bytes."""
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
    """Folder into which this user's samples are unpacked."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("storescope", appauthor=False))


def sample(name: str, cache_dir: Path | None = None) -> Path:
    """Return the store directory of the sample ``name``; unpacks it below ``cache_dir`` if it is not there yet.

    The directory appears completely or not at all, even if two programs ask at once. A directory with missing files or
    files of another length is replaced. Raises :class:`UsageError` for an unknown name, :class:`CannotRead` if the
    cache cannot be written or the archive is damaged.
    """
    by_name = {item.name: item for item in samples()}
    if name not in by_name:
        raise UsageError(
            sentence(
                "there is no sample {name}; there are {value}", name=repr(name), value=", ".join(by_name) or "none"
            )
        )
    try:
        parent = (cache_dir or default_cache()) / "samples"
        home = parent / f"{name}-{by_name[name].sha256[:12]}"
        if not _is_whole(home):
            packed = (_folder() / by_name[name].archive).read_bytes()
            if hashlib.sha256(packed).hexdigest() != by_name[name].sha256:
                raise ValueError(sentence("expected an archive with SHA-256 {sha256}", sha256=by_name[name].sha256))
            parent.mkdir(parents=True, exist_ok=True)
            _unpack(packed, home)
        return _stores(home)[0]
    except OSError as error:
        why = error.strerror or error
        raise CannotRead(
            sentence("the sample {name} cannot be unpacked: {why}", name=name, why=why), file=error.filename
        ) from error
    except (BadArchive, ValueError) as error:
        raise CannotRead(
            sentence("the sample {name} is damaged: {error}", name=name, error=error), file=by_name[name].archive
        ) from error


def _folder() -> Traversable:
    return files("resources") / "samples"


def _unpack(packed: bytes, home: Path) -> None:
    """Unpack next to the final place, then move there in one step."""
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.", dir=home.parent) as scratch:
        half = Path(scratch) / "half"
        half.mkdir()
        sizes = unpack(io.BytesIO(packed), half, MAX_UNPACKED_BYTES)
        if len(_stores(half)) != 1:
            raise ValueError(sentence("one store is expected in it as its only folder"))
        (half / _DONE).write_text(json.dumps(sizes), "utf-8")
        if home.exists() and not _is_whole(home):
            shutil.rmtree(home)
        try:
            half.rename(home)
        except OSError:
            if not _is_whole(home):  # another program was faster: its result is as good
                raise


def _is_whole(home: Path) -> bool:
    """Return True if every unpacked file is there with its length."""
    try:
        sizes = json.loads((home / _DONE).read_text("utf-8"))
        return all((home / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def _stores(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
