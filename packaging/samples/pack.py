"""Packs a store into an archive with its own name as the only top folder.

    python pack.py STORE ARCHIVE

Names are in order, nobody owns the files, times of the files are kept: RocketMQ 4.9 reads them. The archive's hash goes
into ``samples.json`` beside it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
import tarfile
from pathlib import Path


def pack(store: Path, archive: Path) -> int:
    """Writes ``archive`` and gives its length in bytes."""
    with tarfile.open(archive, "w:xz", preset=9 | lzma.PRESET_EXTREME, format=tarfile.PAX_FORMAT) as tar:
        for path in [store, *sorted(store.rglob("*"))]:
            tar.add(path, f"{store.name}/{path.relative_to(store).as_posix()}".removesuffix("/."), False, filter=_plain)
    return archive.stat().st_size


def note_hash(archive: Path) -> str:
    """Writes the archive's SHA-256 where the program looks for it."""
    listing = archive.with_name("samples.json")
    items = json.loads(listing.read_text("utf-8"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    for item in items:
        if item["archive"] == archive.name:
            item["sha256"] = digest
    listing.write_text(json.dumps(items, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return digest


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    member.mtime = int(member.mtime)
    return member


if __name__ == "__main__":
    target = Path(sys.argv[2])
    size = pack(Path(sys.argv[1]), target)
    sys.stdout.write(f"{target.name}: {size:,} bytes, SHA-256 {note_hash(target)}\n")
