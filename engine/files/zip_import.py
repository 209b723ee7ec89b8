"""Import modules of the engine from a zip, under file names that last.

Machine code is cached per file, by path and time. From a zip with a new place in every session it would be
compiled again each time, for seconds on every core. So each module gets a file in the user's cache, for which its
machine code is cached. That file is only checked by name, length and time, and never executed: a user who can
write it gains nothing.

"""

from __future__ import annotations

import contextlib
import os
import sys
import zipfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from zipimport import zipimporter

from engine.files.own_folders import own_folder, user_cache, user_temporary


def import_from(archive: str, digest: str) -> None:
    """Import modules of ``engine`` from ``archive`` from now on; ``digest`` identifies the engine in it."""
    places = (user_cache() / "storescope", Path(archive).parent, user_temporary())
    folder = own_folder(places, "engine", digest)
    sys.meta_path.insert(0, ZipFinder(archive, folder))


class ZipFinder(MetaPathFinder):
    """Finds the modules of one zip; ``folder`` holds the files after which they are named."""

    def __init__(self, archive: str, folder: Path) -> None:
        self._code, self._folder = _Code(archive, folder), folder
        with zipfile.ZipFile(archive) as packed:
            self._sizes = {member.filename: member.file_size for member in packed.infolist()}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  the name is enough
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the module below ``engine``, None for all others."""
        stem = fullname.replace(".", "/")
        for member, package in ((f"{stem}.py", False), (f"{stem}/__init__.py", True)):
            if member in self._sizes and "/" in stem:
                file = self._stand_in(member)
                inner = [str(file.parent)] if package else None
                return spec_from_file_location(fullname, file, loader=self._code, submodule_search_locations=inner)
        return None

    def _stand_in(self, member: str) -> Path:
        """Return the file that stands for ``member``, with its length; its time is that of its creation."""
        file = self._folder / member
        with contextlib.suppress(OSError):
            if file.is_file() and file.lstat().st_size == self._sizes[member]:
                return file
            file.parent.mkdir(0o700, parents=True, exist_ok=True)
            growing = file.with_name(f".{file.name}.{os.getpid()}")
            growing.write_bytes(self._code.get_data(str(file)))
            growing.replace(file)
        return file


class _Code(SourceLoader):
    """The code of modules that were found: compiled from the zip each time, never cached."""

    def __init__(self, archive: str, folder: Path) -> None:
        self._archive, self._folder = archive, folder

    def get_filename(self, fullname: str) -> str:
        """Return the file that stands for a loaded module."""
        return str(sys.modules[fullname].__file__)

    def get_data(self, path: str | bytes) -> bytes:
        """Return the content in the zip for a file that stands for it. Raises ``OSError``."""
        member = Path(os.fsdecode(path)).relative_to(self._folder).as_posix()
        return bytes(zipimporter(self._archive).get_data(f"{self._archive}{os.sep}{member}"))
