"""The sample stores that ship with the program, unpacked to the user's cache at first use. No Qt.

``resources/samples/samples.json`` lists them: name, archive, title, text, state (a mark) and word. Archives are tar
files compressed with xz whose only top folder is the store.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

LARGEST = 1 << 30
"""Bytes that an archive may unpack to."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A store to look at: English texts, ``state`` is the mark of its chip and ``word`` its word."""

    name: str
    archive: str
    title: str
    text: str
    state: str
    word: str


def samples() -> list[Sample]:
    """The samples that are installed."""
    listing = files("resources").joinpath("samples", "samples.json")
    if not listing.is_file():
        return []
    return [Sample(**item) for item in json.loads(listing.read_text("utf-8"))]


def unpacked(sample: Sample, cache: Path) -> Path:
    """The sample's directory in ``cache``, unpacked where it is not there yet; whole or not at all."""
    packed = files("resources").joinpath("samples", sample.archive).read_bytes()
    target = cache / "samples" / f"{sample.name}-{_fingerprint(packed)}"
    if target.is_dir():
        return target
    half = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as archive:
        if sum(member.size for member in archive.getmembers()) > LARGEST:
            raise ValueError(f"{sample.archive} would unpack to more than {LARGEST:,} bytes")
        archive.extractall(half, filter="data") if hasattr(tarfile, "data_filter") else _extract_plain(archive, half)
    try:
        half.rename(target)
    except OSError:
        shutil.rmtree(half, ignore_errors=True)  # another window was quicker
    return target


def _extract_plain(archive: tarfile.TarFile, folder: Path) -> None:
    """Where tarfile has no filters yet: only plain files and folders, only below ``folder``."""
    for member in archive.getmembers():
        path = (folder / member.name).resolve()
        if not path.is_relative_to(folder.resolve()) or not (member.isfile() or member.isdir()):
            raise ValueError(f"{member.name} leads out of the archive's folder")
        archive.extract(member, folder)


def _fingerprint(packed: bytes) -> str:
    import hashlib

    return hashlib.sha256(packed).hexdigest()[:12]
