"""Patches: what is to be changed in a store, as values. Nothing is read or written here.

A patch names one file of the store, what is there now and what will be there. Because it holds the old bytes too, it
can be checked before anything is written, and shown to a person. Patches are applied in their order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from engine.errors import StoreError
from engine.sentences import sentence

VERSION = 1
"""Version of the JSON form of a list of patches."""


class BadPatch(StoreError):
    """A list of patches that cannot be read, or a patch that does not fit to the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change of one file. ``file`` is its name below the store's folder, with ``/`` between folders.

    ``name`` is that of the repair to which it belongs, "" for none. ``why`` says what the change is for, ``gains``
    what one gets by it, ``costs`` what is lost by it, "" for nothing.
    """

    file: str
    why: str
    name: str = ""
    gains: str = ""
    costs: str = ""
    kind: ClassVar[str]

    @property
    def action(self) -> str:
        """The kind of change of the file, as JSON has it."""
        return self.kind

    def record(self, number: int = 1) -> dict[str, Any]:
        """Return the JSON record of the patch with this number: bytes are hexadecimal digits."""
        values = {_JSON_NAMES.get(part.name, part.name): getattr(self, part.name) for part in fields(self)}
        texts = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
        return {"type": "patch", "n": number, "action": self.action, **texts}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBytes(Patch):
    """Bytes at ``offset`` of a file change from ``old`` to ``new``, which have the same length."""

    kind: ClassVar[str] = "writeBytes"
    offset: int
    old: bytes = field(repr=False)
    new: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.old) != len(self.new):
            raise ValueError(f"expected as many new bytes as old ones, found {len(self.new)} for {len(self.old)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile(Patch):
    """The content of a small file changes from ``old`` to ``new``, then ``zeros`` zero bytes. ``old`` is None if there
    is no such file yet. Only then there may be zeros: a new file of the log is long, and nearly empty.
    """

    kind: ClassVar[str] = "replaceFile"
    old: bytes | None = field(repr=False)
    new: bytes = field(repr=False)
    zeros: int = 0

    def __post_init__(self) -> None:
        if self.zeros < 0 or (self.zeros and self.old is not None):
            raise ValueError(f"expected zeros in a new file only, found {self.zeros}")

    @property
    def action(self) -> str:
        return "createFile" if self.old is None else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile(Patch):
    """A file of ``size`` bytes is removed; ``sample`` is its :func:`sample_digest`."""

    kind: ClassVar[str] = "removeFile"
    size: int
    sample: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFile(Patch):
    """A file of ``size`` bytes gets the name ``target``; ``sample`` is its :func:`sample_digest`."""

    kind: ClassVar[str] = "moveFile"
    target: str
    size: int
    sample: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeFile(Patch):
    """A file of ``size`` bytes gets ``new_size`` bytes: zeros are added, or the bytes behind are cut off; ``sample`` is
    its :func:`sample_digest`.
    """

    kind: ClassVar[str] = "resizeFile"
    size: int
    new_size: int
    sample: str


_KINDS: Mapping[str, type[Patch]] = {
    "createFile": WriteFile,
    **{kind.kind: kind for kind in (WriteBytes, WriteFile, RemoveFile, MoveFile, ResizeFile)},
}
SAMPLE_BYTES = 64 << 10
MAX_FILE_BYTES = 1 << 40
"""Maximum size of a file that a patch makes longer: a list of patches from elsewhere must not fill the disk."""
_BYTES_FIELDS = ("old", "new")
_JSON_NAMES = {"new_size": "newSize"}
Kind = TypeVar("Kind", bound=Patch)


def sample_digest(head: bytes, tail: bytes) -> str:
    """Return the SHA-256 of the first and the last :data:`SAMPLE_BYTES` of a file: files of a store are too long to be
    hashed before each look.
    """
    return hashlib.sha256(head + tail).hexdigest()


class PatchList:
    """Patches in their order, with undo and redo."""

    def __init__(self, patches: Iterable[Patch] = ()) -> None:
        self._patches = list(patches)
        self._undone: list[Patch] = []

    def __iter__(self) -> Iterator[Patch]:
        return iter(tuple(self._patches))

    def __len__(self) -> int:
        return len(self._patches)

    def __repr__(self) -> str:
        return f"PatchList({len(self._patches)} patches, {len(self._undone)} undone)"

    def add(self, patch: Patch) -> None:
        """Add a patch behind the others. Patches that were undone before are forgotten."""
        self._patches.append(patch)
        self._undone.clear()

    def undo(self) -> Patch | None:
        """Take back the last patch and return it; None if there is none."""
        if not self._patches:
            return None
        self._undone.append(self._patches.pop())
        return self._undone[-1]

    def redo(self) -> Patch | None:
        """Add the patch again that was undone last, and return it; None if there is none."""
        if not self._undone:
            return None
        self._patches.append(self._undone.pop())
        return self._patches[-1]

    def dumps(self) -> str:
        """Return the JSON text that :func:`loads` reads."""
        content = {
            "storescopePatches": VERSION,
            "patches": [patch.record(n) for n, patch in enumerate(self._patches, 1)],
        }
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def loads(text: str | bytes) -> PatchList:
    """Read a list of patches from its JSON text. Raises :class:`BadPatch`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadPatch(sentence("expected a list of patches in JSON, found: {error}", error=str(error))) from error
    if not isinstance(content, dict) or "storescopePatches" not in content:
        raise BadPatch(sentence("expected a list of patches, found other JSON"))
    if content["storescopePatches"] != VERSION or not isinstance(content.get("patches"), list):
        raise BadPatch(
            sentence(
                "expected a list of patches of version {version}, found {found}",
                version=VERSION,
                found=str(content["storescopePatches"])[:40],
            )
        )
    return PatchList(_patch_of(row, number) for number, row in enumerate(content["patches"], 1))


def _patch_of(row: object, number: int) -> Patch:
    bad_row = BadPatch(sentence("patch {number}: its fields are not those of a patch", number=number))
    kind = _KINDS.get(str(row.get("action"))) if isinstance(row, dict) else None
    if kind is None or not isinstance(row, dict):
        raise bad_row
    field_names = {in_json: name for name, in_json in _JSON_NAMES.items()}
    values = {
        field_names.get(str(name), str(name)): value
        for name, value in row.items()
        if name not in {"type", "n", "action"}
    }
    try:
        for name in _BYTES_FIELDS:
            if isinstance(values.get(name), str):
                values[name] = bytes.fromhex(values[name])
        patch = kind(**values)
    except (TypeError, ValueError) as error:
        raise bad_row from error
    if not _is_sound(patch):
        raise bad_row
    return patch


def _is_sound(patch: Any) -> bool:
    """Return True if every field has its type and every name stays below the store's folder."""
    names = [patch.file, *([patch.target] if isinstance(patch, MoveFile) else [])]
    texts = [*names, patch.name, patch.why, patch.gains, patch.costs]
    if not all(isinstance(text, str) for text in texts) or not all(map(is_inside, names)):
        return False
    match patch:
        case WriteBytes(offset=int() as offset, old=bytes(), new=bytes()):
            return offset >= 0
        case WriteFile(old=bytes() | None, new=bytes(), zeros=int()):
            return True
        case RemoveFile(size=int(), sample=str()) | MoveFile(size=int(), sample=str()):
            return True
        case ResizeFile(size=int(), new_size=int() as new_size, sample=str()):
            return 0 <= new_size <= MAX_FILE_BYTES
        case _:
            return False


def is_inside(name: str) -> bool:
    """Return True if ``name`` is that of a file below the store's folder: a list of patches from elsewhere must not
    lead out of it.
    """
    pieces = name.split("/")
    return all(piece not in {"", ".", ".."} and "\0" not in piece for piece in pieces)
