"""Other things that can be opened: a session file, a broker's configuration, an archive (a copy is unpacked).

Nothing is unpacked beside the archive or into the store. Copies go to the cache. No Qt.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine.config import MessageStoreConfig, read_properties
from engine.errors import BadArchive, StoreError
from engine.inspection import archives
from engine.sentences import sentence
from viewer.runtime.jobs import Control
from viewer.shell import session_file
from viewer.shell.session_file import Session

ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".txz", ".tar.bz2")
MAX_UNPACKED_BYTES = 64 << 30
"""Largest content (bytes) of an archive that is unpacked without asking."""


@dataclass(frozen=True, slots=True)
class StoreToOpen:
    """The store to open, with the configuration and the session if they were named."""

    store: Path
    config: MessageStoreConfig | None = None
    session: Session | None = None
    archive: Path | None = None
    """The archive that the store was unpacked from."""


def kind_of(path: Path) -> str:
    """Return ``session``, ``archive``, ``conf`` or an empty text, by the name alone."""
    name = path.name.lower()
    if name.endswith(session_file.SUFFIX):
        return "session"
    if name.endswith(ARCHIVES):
        return "archive"
    return "conf" if name.endswith((".conf", ".properties")) else ""


def take(control: Control, path: Path, cache: Path) -> StoreToOpen:
    """Find out what ``path`` refers to. Raises StoreError, OSError.

    Reads the disk and may unpack a copy below ``cache``.
    """
    if not path.is_file():
        return StoreToOpen(path)
    match kind_of(path):
        case "session":
            session = session_file.read(path)
            return StoreToOpen(Path(session.store), session=session)
        case "archive":
            return StoreToOpen(unpack(control, path, cache), archive=path.absolute())
        case "conf":
            config = read_properties(path)[0]
            if not config.store_path_root_dir:
                raise StoreError(sentence("expected storePathRootDir in the configuration, found none"), file=str(path))
            return StoreToOpen(Path(config.store_path_root_dir), config)
    return StoreToOpen(path)


def unpack(control: Control, archive: Path, cache: Path) -> Path:
    """Unpack ``archive`` into a folder below ``cache`` unless it is there already, and return the folder.

    The folder appears only when it is complete.
    """
    archive_stat = archive.stat()
    fingerprint = hashlib.sha256(
        f"{archive.absolute()}|{archive_stat.st_size}|{archive_stat.st_mtime_ns}".encode()
    ).hexdigest()[:12]
    folder = cache / "opened" / f"{archive.name.split('.')[0]}-{fingerprint}"
    if folder.is_dir():
        return folder

    def on_progress(done: int, total: int | None) -> None:
        control.check()
        control.report(done, total)

    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=folder.name, suffix=".part", dir=folder.parent))
    try:
        with archive.open("rb") as packed:
            archives.unpack(packed, partial, MAX_UNPACKED_BYTES, on_progress)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # another window was quicker, and its copy is the same
                raise
    except BadArchive as error:
        raise BadArchive(error.what, file=str(archive)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder
