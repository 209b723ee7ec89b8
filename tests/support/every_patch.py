"""A small folder of files, and patches of every kind for it."""

from __future__ import annotations

from pathlib import Path

from engine.patching.patches import MoveFile, PatchList, RemoveFile, ResizeFile, WriteBytes, WriteFile, sample_digest


def write_store(root: Path) -> Path:
    """Write the files that :func:`every_kind` changes."""
    (root / "commitlog").mkdir(parents=True)
    (root / "config").mkdir()
    (root / "commitlog" / f"{0:020d}").write_bytes(b"log " * 4096)
    (root / "checkpoint").write_bytes(bytes(4096))
    (root / "config" / "topics.json").write_bytes(b"{}")
    return root


def every_kind(root: Path) -> PatchList:
    """Return patches of every kind, for a store whose files are larger than what is patched in memory."""
    log = root / "commitlog" / f"{0:020d}"
    content = log.read_bytes()
    sample = sample_digest(content, content)
    return PatchList(
        [
            WriteBytes(file="checkpoint", offset=8, old=bytes(8), new=b"12345678", why="a small file"),
            WriteBytes(file=f"commitlog/{log.name}", offset=4, old=b"log ", new=b"LOG ", why="a large file"),
            WriteFile(file="config/topics.json", old=b"{}", new=b"{ }", why="a table"),
            WriteFile(file="config/new.json", old=None, new=b"{}", why="a new table"),
            WriteFile(file=f"commitlog/{1 << 20:020d}", old=None, new=b"head", zeros=8188, why="a new file of the log"),
            WriteBytes(file=f"commitlog/{1 << 20:020d}", offset=4, old=bytes(4), new=b"more", why="in its zeros"),
            WriteFile(file="config/new/deep/table", old=None, new=b"new", why="a table in new folders"),
            MoveFile(
                file="checkpoint",
                target="config/checkpoint.old",
                size=4096,
                sample=sample_digest(*[bytes(8) + b"12345678" + bytes(4080)] * 2),
                why="a move",
            ),
            WriteBytes(file=f"commitlog/{log.name}", offset=4, old=b"LOG ", new=b"log ", why="and back"),
            ResizeFile(file=f"commitlog/{log.name}", size=len(content), new_size=9000, sample=sample, why="a cut"),
            ResizeFile(
                file=f"commitlog/{log.name}",
                size=9000,
                new_size=len(content),
                sample=sample_digest(content[:9000], content[:9000]),
                why="zeros",
            ),
            RemoveFile(
                file=f"commitlog/{log.name}",
                size=len(content),
                sample=sample_digest(*[content[:9000].ljust(len(content), b"\0")] * 2),
                why="a removal",
            ),
        ]
    )
