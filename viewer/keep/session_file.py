"""The session file: which store, where in it, what was marked and noted, the filter and the layout, as readable JSON.

Its name ends with ``.storescope``. Nothing of the store's content stands in it but what somebody wrote into names and
notes. No Qt.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine import __version__
from engine.errors import StoreError
from engine.whole_file import put_whole
from viewer.runtime.bookmarks import Bookmark, from_records, records

SUFFIX = ".storescope"
FORMAT = "storescope-session"
VERSION = 1
LARGEST = 16 << 20
MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class Session:
    """What a session file says; places in their written form, ``layout`` name → Qt's state of a splitter."""

    store: str
    place: str = "log"
    places: tuple[str, ...] = ()
    bookmarks: tuple[Bookmark, ...] = ()
    notes: str = ""
    filter: str = ""
    size: tuple[int, int] = (0, 0)
    layout: Mapping[str, bytes] = field(default_factory=dict)
    saved: int = 0


def to_text(session: Session) -> str:
    """The file's text."""
    said = {
        "format": FORMAT,
        "version": VERSION,
        "program": f"storescope {__version__}",
        "saved": session.saved,
        "store": session.store,
        "place": session.place,
        "places": list(session.places[-MOST_PLACES:]),
        "filter": session.filter,
        "notes": session.notes,
        "bookmarks": records(session.bookmarks),
        "window": {
            "size": list(session.size),
            "splitters": {name: base64.b64encode(state).decode("ascii") for name, state in session.layout.items()},
        },
    }
    return json.dumps(said, ensure_ascii=False, indent=1) + "\n"


def from_text(text: str, file: str) -> Session:
    """What the text of ``file`` says; raises :class:`StoreError` where it is no session file."""
    try:
        said = json.loads(text)
    except ValueError as error:
        raise StoreError(f"expected a session file: {error}", file=file) from error
    if not isinstance(said, dict) or said.get("format") != FORMAT or not isinstance(said.get("store"), str):
        raise StoreError(f"expected a session file (format {FORMAT}), found other JSON", file=file)
    if not isinstance(said.get("version"), int) or said["version"] > VERSION:
        raise StoreError(f"expected a session file of version {VERSION}, found {said.get('version')}", file=file)
    window = _object(said.get("window"))
    return Session(
        store=said["store"],
        place=_word(said.get("place")) or "log",
        places=tuple(one for one in _list(said.get("places")) if isinstance(one, str)),
        bookmarks=tuple(from_records(said.get("bookmarks"))),
        notes=_word(said.get("notes")),
        filter=_word(said.get("filter")),
        size=_size(window.get("size")),
        layout=_layout(window.get("splitters")),
        saved=said["saved"] if isinstance(said.get("saved"), int) else 0,
    )


def read(file: Path) -> Session:
    """The session in ``file``; raises OSError, or :class:`StoreError` where it is none.

    A store that is not where it was is looked for beside the file: both may have been moved together.
    """
    with file.open("rb") as stream:
        raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise StoreError(f"expected a session file of at most {LARGEST:,} bytes, found more", file=str(file))
    found = from_text(raw.decode("utf-8", "replace"), str(file))
    store = Path(found.store)
    if not store.exists():
        beside = (file.parent / store.name, file.parent / store.parent.name / store.name)
        moved = next((one for one in beside if one.exists()), None)
        if moved is None:
            raise StoreError(f"the session is about {store}, which is not here", file=str(file))
        return Session(**{name: getattr(found, name) for name in found.__slots__} | {"store": str(moved)})
    return found


def write(file: Path, session: Session) -> None:
    """Write ``file`` at once, or leave it as it was; raises OSError."""
    put_whole(file, to_text(session))


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _size(value: object) -> tuple[int, int]:
    match value:
        case [int(width), int(height)] if 0 < width < 1 << 15 and 0 < height < 1 << 15:
            return width, height
    return (0, 0)


def _layout(value: object) -> dict[str, bytes]:
    found = {}
    for name, state in value.items() if isinstance(value, dict) else ():
        with suppress(ValueError, TypeError):
            found[str(name)] = base64.b64decode(state, validate=True)
    return found
