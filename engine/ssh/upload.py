"""A Python for a machine that has none: taken from the small archive, sent through ssh, removed with the connection.

The file server needs only the standard library, so the packages of the archive stay here. Nothing is sent before the
user agreed: :mod:`engine.cli.uploading` asks, and :data:`UPLOAD_VARIABLE` holds the archive afterwards.
"""

from __future__ import annotations

import functools
import io
import lzma
import os
import shlex
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from engine.errors import CannotRead, UsageError
from engine.sentences import sentence

UPLOAD_VARIABLE = "STORESCOPE_SSH_UPLOAD"
"""Environment variable with the archive whose Python may be sent: the user agreed to it."""
FOLDERS = {"/tmp": "/tmp", "/var/tmp": "/var/tmp", '"$HOME"': "the home folder"}  # noqa: S108 (of the other machine)
"""Words of the shell there → names: the private folder is made below the first of them where programs may run."""
FOLDER_NAMES = tuple(FOLDERS.values())
UNPACKED = b"\0STORESCOPE-UNPACKED\n"
PYTHON = "python/bin/python3"
_PACKAGES = frozenset({"dist-packages", "site-packages"})


class NoPython(CannotRead):
    """The machine has no Python that can answer for its files."""


def agreed_archive() -> Path | None:
    """Return the archive whose Python may be sent, None if the user did not agree to one."""
    archive = os.environ.get(UPLOAD_VARIABLE)
    return Path(archive) if archive else None


@functools.lru_cache(maxsize=1)
def pack_python(archive: Path) -> bytes:
    """Return the Python of a small or full archive as a ``.tar.gz``, which more machines unpack than ``.tar.xz``.

    Raises :class:`UsageError` if the file is no such archive.
    """
    packed = io.BytesIO()
    names: set[str] = set()
    try:
        with (
            tarfile.open(archive, "r|*") as source,
            tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as python,
        ):
            for member in source:
                path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                is_package = not _PACKAGES.isdisjoint(path.parts)
                if is_package and _has_library(names):
                    break  # packaging/archive.py puts the packages last
                if is_package or not path.is_relative_to("python") or ".." in path.parts:
                    continue
                member.name = str(path)
                names.add(member.name)
                python.addfile(member, source.extractfile(member) if member.isreg() else None)
    except OSError as error:
        raise UsageError(error.strerror or str(error), file=str(archive)) from error
    except (tarfile.TarError, lzma.LZMAError, EOFError, zlib.error) as error:
        raise UsageError(
            sentence("expected an archive of Storescope: {error}", error=error), file=str(archive)
        ) from error
    if PYTHON not in names or not _has_library(names):
        raise UsageError(sentence("expected an archive of Storescope with {python}", python=PYTHON), file=str(archive))
    return packed.getvalue()


def _has_library(names: Iterable[str]) -> bool:
    return any(name.endswith("/os.py") for name in names)


def uploaded_python_command(size: int, start: str) -> str:
    """Return the command for the shell there: it reads ``size`` bytes, unpacks them, prints :data:`UNPACKED`, and runs
    ``start`` in that Python.

    Its folder is removed when Python ends, and when the bytes end too early: then the connection is broken.
    """
    script = f"""umask 077
d=
trap '[ -z "$d" ] || rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM
for base in {" ".join(FOLDERS)}; do
d=$(mktemp -d "$base/storescope-upload-XXXXXXXX" 2>/dev/null) || continue
printf '#!/bin/sh\\n' >"$d/try" && chmod 700 "$d/try" && "$d/try" 2>/dev/null && break
rm -rf "$d"
d=
done
[ -n "$d" ] || {{ echo 'storescope: no folder on this machine where programs may run' >&2; exit 73; }}
head -c {size} | tar -xzf - -C "$d" || {{ echo 'storescope: the upload is incomplete' >&2; exit 74; }}
printf '\\000{UNPACKED[1:-1].decode("ascii")}\\n'
"$d/{PYTHON}" -u -c {shlex.quote(start)}
"""
    return f"exec sh -c {shlex.quote(script)}"
