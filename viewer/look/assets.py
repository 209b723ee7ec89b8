"""The only door to ``resources/``: icons in any colour, the application's icon, and the words in other languages.

Texts are written in English where they are used and pass through :func:`tr`; a catalogue is a plain JSON object from
English to the other language. Texts that stand in tables of data are marked with :func:`words` and translated where
they are shown.

The engine's sentences in the language of the window.

The engine speaks English and puts its values into its sentences. ``i18n/NAME.engine.json`` has each as a pattern with
named gaps, ``{n} bytes are no unit: {said_reason}``, and its translation; a gap whose name begins with ``said`` holds
a sentence itself, one whose name begins with ``one_`` a word without blanks, with ``span`` a stretch of time. A
sentence that fits no pattern is shown as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from PySide6.QtCore import QByteArray, QLocale, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap

from engine.counted import in_number, many_of, one_of

LANGUAGES = ("en", "zh_CN")


class _Language(QObject):
    """The language in force; ``changed`` tells who shows words."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = "en"
        self.catalogue: dict[str, str] = {}


language_state = _Language()


def tr(text: str, /, **values: Any) -> str:
    """``text`` in the language in force, its ``{names}`` filled: ``tr("{n:,} units would go", n=6)``; with 1 it says
    "1 unit would go".
    """
    said = language_state.catalogue.get(text)
    if not values:
        return text if said is None else said
    return (in_number(text, values) if said is None else said).format(**values)


def words(text: str) -> str:
    """Marks a text in a table of data as one to translate; it is given back as it is."""
    return text


def language() -> str:
    """The language in force: ``en`` or ``zh_CN``."""
    return language_state.name


def set_language(name: str) -> None:
    """Speak ``name`` from now on; a name that is not known means English."""
    name = name if name in LANGUAGES else "en"
    if name == language_state.name:
        return
    language_state.name = name
    language_state.catalogue = catalogue(name)
    language_state.changed.emit()


def system_language() -> str:
    """``zh_CN`` on a machine that speaks Chinese, else ``en``."""
    return "zh_CN" if QLocale.system().language() == QLocale.Language.Chinese else "en"


def catalogue(name: str) -> dict[str, str]:
    """English → ``name``, from ``i18n/NAME.json`` and the ``i18n/NAME.*.json`` beside it; empty for English."""
    found: dict[str, str] = {}
    if name != "en":
        for entry in sorted(files("resources").joinpath("i18n").iterdir(), key=lambda e: e.name):
            if entry.name.startswith(f"{name}.") and entry.name.endswith(".json"):
                found |= json.loads(entry.read_text("utf-8"))
    return found


def resource_bytes(path: str) -> bytes:
    """The bytes of ``resources/path``."""
    return files("resources").joinpath(path).read_bytes()


@lru_cache(maxsize=128)
def _svg(name: str) -> str:
    return files("resources").joinpath("icons", f"{name}.svg").read_text("utf-8")


@lru_cache(maxsize=512)
def _picture(name: str, color: str, size: int, ratio: float) -> QPixmap:
    from PySide6.QtSvg import QSvgRenderer

    picture = QPixmap(round(size * ratio), round(size * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    text = _svg(name).replace("currentColor", color)
    QSvgRenderer(QByteArray(text.encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def icon_pixmap(name: str, color: QColor, size: int = 20, ratio: float | None = None) -> QPixmap:
    """The icon ``name`` drawn in ``color``, ``size`` logical pixels high."""
    app = QGuiApplication.instance()
    if ratio is None:
        ratio = app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0
    return _picture(name, color.name(), size, ratio)


def app_icon() -> QIcon:
    """The application's icon in the sizes that desktops ask for."""
    icon = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        icon.addPixmap(_picture("app", "#000000", size, 1.0))
    return icon


def app_pixmap(size: int) -> QPixmap:
    """The application's icon as one picture."""
    app = QGuiApplication.instance()
    return _picture("app", "#000000", size, app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0)


DEEPEST = 4
PARTS = (" · ", "; ")
"""What the engine joins sentences with, and the translation too."""
SAYING = 4
"""Letters of its own from which on a pattern says something; others only join sentences: ``{place}: {said_role}``"""

UNITS = {
    "ms": words("{n} ms"),
    "s": words("{n} s"),
    "min": words("{n} min"),
    "h": words("{n} h"),
    "days": words("{n} days"),
    "years": words("{n} years"),
}
"""Units of ``codec.words.lasting``, as a stretch of time is said with them."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    fits: re.Pattern[str]
    translation: str
    letters: int


def engine_words(text: str, depth: int = 0) -> str:
    """``text`` of the engine in the language in force; unchanged where nothing fits, and in English but for "1
    entries".
    """
    if language() == "en":
        return one_of(text)
    if not text or depth > DEEPEST:
        return text
    forms = dict.fromkeys((text, many_of(text)))
    for form in forms:
        known = _exactly(form)
        if known is not None:
            return known
    if PARTS[0] in text:
        return PARTS[0].join(engine_words(part, depth + 1) for part in text.split(PARTS[0]))
    patterns = _patterns(language())
    bare = next((n for n, one in enumerate(patterns) if one.letters < SAYING), len(patterns))
    said = _fitted(patterns[:bare], forms, depth)
    if said is None and PARTS[1] in text:
        return PARTS[1].join(engine_words(part, depth + 1) for part in text.split(PARTS[1]))
    return said or _fitted(patterns[bare:], forms, depth) or text


def _fitted(patterns: Iterable[_Pattern], forms: Iterable[str], depth: int) -> str | None:
    for pattern in patterns:
        for form in forms:
            found = pattern.fits.fullmatch(form)
            if found is not None:
                return pattern.translation.format(**_filled(found.groupdict(), depth))
    return None


def _exactly(text: str) -> str | None:
    """The translation of a sentence without gaps, however its first letter is written."""
    for form in (text, text[:1].lower() + text[1:], text[:1].upper() + text[1:]):
        known = tr(form)
        if known != form:
            return known
    return None


def _filled(gaps: dict[str, str], depth: int) -> dict[str, str]:
    return {name: _gap_words(name, value, depth) for name, value in gaps.items()}


def _gap_words(name: str, value: str, depth: int) -> str:
    if name.startswith("said"):
        return engine_words(value, depth + 1)
    return _span_words(value) if name.startswith("span") else value


def _span_words(value: str) -> str:
    """``2.8 h`` with its unit in words, in the language in force; anything else as it is."""
    count, _, unit = many_of(value).rpartition(" ")
    word = tr(UNITS[unit], n=count) if unit in UNITS else value
    return word if word != UNITS.get(unit) else value


@lru_cache(maxsize=4)
def _patterns(language: str) -> tuple[_Pattern, ...]:
    """Patterns with gaps, those with the most letters of their own first."""
    try:
        listed = json.loads(resource_bytes(f"i18n/{language}.engine.json"))
    except FileNotFoundError:
        return ()
    made = [_pattern(english, chinese) for english, chinese in listed.items() if "{" in english]
    return tuple(sorted(made, key=lambda one: -one.letters))


def _pattern(english: str, translation: str) -> _Pattern:
    pieces = re.split(r"\{(\w+)\}", english)
    first = pieces[0][:1]
    if first.isalpha():
        pieces[0] = pieces[0][1:]
    fits = "".join(re.escape(piece) if at % 2 == 0 else _gap(piece, pieces[:at]) for at, piece in enumerate(pieces))
    fits = f"[{first.lower()}{first.upper()}]{fits}" if first.isalpha() else fits
    return _Pattern(re.compile(fits, re.DOTALL), translation, sum(len(piece) for piece in pieces[::2]))


def _gap(name: str, before: list[str]) -> str:
    """A named group the first time, the same text again after that; only a sentence goes on behind a joint, and the
    name of a field is one word.
    """
    if name in before[1::2]:
        return f"(?P={name})"
    if name == "field":
        return r"(?P<field>[\w.]+)"
    if name.startswith("one_"):
        return rf"(?P<{name}>\S+)"
    return f"(?P<{name}>.+?)" if name.startswith("said") else rf"(?P<{name}>(?:(?!{'|'.join(PARTS)}).)+?)"
