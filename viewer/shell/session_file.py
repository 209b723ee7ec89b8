"""Session file: store, place, history, bookmarks, notes, filter and layout as readable JSON. No Qt.

Its name ends with ``.storescope``. It contains no data of the store except what the user wrote into names and
notes.
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
from engine.files.atomic_file import write_atomically
from engine.sentences import sentence
from viewer.runtime.bookmarks import Bookmark, from_records, records

SUFFIX = ".storescope"
FORMAT = "storescope-session"
VERSION = 1
MAX_BYTES = 16 << 20
MAX_PLACES = 200


@dataclass(frozen=True, slots=True)
class Session:
    """Content of a session file. Places are in their text form. ``layout`` maps a name to Qt's state of a splitter."""

    store: str
    place: str = "log"
    places: tuple[str, ...] = ()
    bookmarks: tuple[Bookmark, ...] = ()
    notes: str = ""
    filter: str = ""
    size: tuple[int, int] = (0, 0)
    layout: Mapping[str, bytes] = field(default_factory=dict)
    saved: int = 0
    in_front: bool = True
    """False if another tab was in front."""


def to_text(session: Session) -> str:
    """Return the text of the file."""
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "program": f"storescope {__version__}",
        "saved": session.saved,
        "store": session.store,
        "place": session.place,
        "places": list(session.places[-MAX_PLACES:]),
        "filter": session.filter,
        "notes": session.notes,
        "bookmarks": records(session.bookmarks),
        "window": {
            "size": list(session.size),
            "inFront": session.in_front,
            "splitters": {name: base64.b64encode(state).decode("ascii") for name, state in session.layout.items()},
        },
    }
    return json.dumps(fields, ensure_ascii=False, indent=1) + "\n"


def from_text(text: str, file: str) -> Session:
    """Parse the text of ``file``; raises :class:`StoreError` if it is not a session file."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise StoreError(sentence("expected a session file: {error}", error=error), file=file) from error
    if not isinstance(fields, dict) or fields.get("format") != FORMAT or not isinstance(fields.get("store"), str):
        raise StoreError(
            sentence("expected a session file (format {format}), found other JSON", format=FORMAT), file=file
        )
    if not isinstance(fields.get("version"), int) or fields["version"] > VERSION:
        raise StoreError(
            sentence(
                "expected a session file of version {version}, found {value}",
                version=VERSION,
                value=fields.get("version"),
            ),
            file=file,
        )
    window = _object_or_empty(fields.get("window"))
    return Session(
        store=fields["store"],
        place=_text_or_empty(fields.get("place")) or "log",
        places=tuple(place for place in _list_or_empty(fields.get("places")) if isinstance(place, str)),
        bookmarks=tuple(from_records(fields.get("bookmarks"))),
        notes=_text_or_empty(fields.get("notes")),
        filter=_text_or_empty(fields.get("filter")),
        size=_window_size(window.get("size")),
        layout=_layout(window.get("splitters")),
        saved=fields["saved"] if isinstance(fields.get("saved"), int) else 0,
        in_front=window.get("inFront") is not False,
    )


def read(file: Path) -> Session:
    """Read the session in ``file``; raises OSError, or :class:`StoreError` if it is not a session file.

    If the store is not at its path, it is searched beside the file, because both may have been moved together.
    """
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise StoreError(
            sentence("expected a session file of at most {limit} MiB, found more", limit=MAX_BYTES >> 20),
            file=str(file),
        )
    session = from_text(raw.decode("utf-8", "replace"), str(file))
    store = Path(session.store)
    if not store.exists():
        candidates = (file.parent / store.name, file.parent / store.parent.name / store.name)
        new_path = next((path for path in candidates if path.exists()), None)
        if new_path is None:
            raise StoreError(sentence("the session is about {store}, which is not here", store=store), file=str(file))
        return Session(**{name: getattr(session, name) for name in session.__slots__} | {"store": str(new_path)})
    return session


def write(file: Path, session: Session) -> None:
    """Write ``file`` atomically; raises OSError."""
    write_atomically(file, to_text(session))


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object_or_empty(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _list_or_empty(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _window_size(value: object) -> tuple[int, int]:
    match value:
        case [int(width), int(height)] if 0 < width < 1 << 15 and 0 < height < 1 << 15:
            return width, height
    return (0, 0)


def _layout(value: object) -> dict[str, bytes]:
    states = {}
    for name, state in value.items() if isinstance(value, dict) else ():
        with suppress(ValueError, TypeError):
            states[str(name)] = base64.b64decode(state, validate=True)
    return states
