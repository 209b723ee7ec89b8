"""A sentence of the engine: finished English that remembers the template and the values it was made from.

The command line prints it as the text that it is. The window looks the template up in the catalogue of its language
(``resources/i18n/LANG/LC_MESSAGES/storescope.po``) and fills the same values into the translation. Values may be
sentences themselves. Pure, no Qt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any, Self

_PORTABLE = frozenset({str, int, float})
_CHAIN = "{first}{second}"


class Sentence(str):
    """English text with its template.

    ``id`` is the template: the ``msgid`` of the catalogue. ``plural_id`` is its ``msgid_plural`` where the sentence
    counts ``params["n"]``, else "". ``release`` is the release that was put behind each "the next start" of the
    text, "" if none was.

    ``+`` keeps both sides. Whatever else makes a new text out of it (an f-string, ``replace``, ``str.join``) gives a
    plain ``str``, which the window shows in English: use :func:`sentence`, :func:`join`, :func:`with_text` instead.
    """

    __slots__ = ("id", "params", "plural_id", "release")

    id: str
    plural_id: str
    params: Mapping[str, Any]
    release: str

    def __new__(cls, text: str, id_: str, params: Mapping[str, Any], plural_id: str = "", release: str = "") -> Self:
        new = super().__new__(cls, text)
        new.id, new.params, new.plural_id, new.release = id_, params, plural_id, release
        return new

    def __str__(self) -> str:
        """Return the sentence itself: ``str(error)`` of an error whose message it is keeps the template."""
        return self

    def __add__(self, text: str) -> Sentence:
        """Return both texts one behind the other, as a sentence of two values."""
        return _chain(self, text)

    def __radd__(self, text: str) -> Sentence:
        return _chain(text, self)

    def __reduce__(self) -> tuple[type[Sentence], tuple[Any, ...]]:
        return Sentence, (plain(self), self.id, self.params, self.plural_id, self.release)


def sentence(template: str, /, **params: Any) -> Sentence:
    """Return ``template`` with its ``{gaps}`` filled: ``sentence("{file} is empty", file="topics.json")``."""
    if isinstance(template, Sentence):
        return template
    _make_portable(params)
    return Sentence(template.format(**params) if params else template, template, params)


def msgid(template: str) -> str:
    """Mark ``template`` of a table for the catalogue; it is returned as it is, and :func:`sentence` fills it later."""
    return template


def plural(singular: str, several: str, /, n: int, **params: Any) -> Sentence:
    """Return ``singular`` if ``n`` is 1, else ``several``, with the gaps filled.

    A sentence that counts two things takes the second as a value: ``plural("{n:,} queue lacks {units}", …,
    units=plural("{n:,} unit", "{n:,} units", n=units))``.
    """
    _make_portable(params)
    params["n"] = n
    return Sentence((singular if n == 1 else several).format(**params), singular, params, several)


def join(separator: str, parts: Iterable[str]) -> str:
    """Join sentences with a separator that needs no translation: ``" · "``, ``"; "``, ``", "``."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    if not any(isinstance(part, Sentence) for part in listed):
        return separator.join(listed)
    params = {f"part{number}": part for number, part in enumerate(listed)}
    return sentence(separator.join(f"{{{name}}}" for name in params), **params)


def with_and(parts: Iterable[str]) -> str:
    """Return the parts with "and" between them: ``4.9 and 5.5``; "" for none."""
    listed = list(parts)
    text = listed[0] if listed else ""
    for part in listed[1:]:
        text = sentence("{first} and {second}", first=text, second=part)
    return text


def _make_portable(params: dict[str, Any]) -> None:
    """Turn values that are neither text nor numbers, such as paths and errors, into text that any process can read."""
    for name, value in params.items():
        if type(value) not in _PORTABLE and not isinstance(value, str | Number):
            params[name] = str(value)


def _chain(beginning: str, ending: str) -> Sentence:
    return Sentence(plain(beginning) + plain(ending), _CHAIN, {"first": beginning, "second": ending})


def without_beginning(text: str, beginning: str) -> str:
    """Return what was added behind ``beginning`` with ``+``; ``text`` itself if it does not begin so."""
    if not text.startswith(beginning):
        return text
    remainder = plain(text).removeprefix(beginning)
    if isinstance(text, Sentence) and text.id == _CHAIN and plain(text.params["first"]) == beginning:
        second = text.params["second"]
        if isinstance(second, Sentence):
            return Sentence(remainder, second.id, second.params, second.plural_id, text.release or second.release)
    return remainder


def with_text(text: str, change: Callable[[str], str]) -> str:
    """Return ``text`` changed in its English only, by a capital for example: a sentence keeps its template."""
    if not isinstance(text, Sentence):
        return change(text)
    return Sentence(change(plain(text)), text.id, text.params, text.plural_id, text.release)


_MARK = "$sentence"
TEMPLATES_IN_JSON = "STORESCOPE_SENTENCES"
"""Environment variable with which the window asks a command for records of :func:`to_json`."""


def to_json(value: Any) -> Any:
    """Return a record in which each sentence is an object that :func:`object_hook` reads back."""
    if isinstance(value, Sentence):
        text = {_MARK: plain(value), "id": value.id, "params": to_json(dict(value.params))}
        return text | {"plural": value.plural_id, "release": value.release}
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


def object_hook(value: dict[str, Any]) -> dict[str, Any] | Sentence:
    """Read objects of :func:`to_json`: ``json.loads(line, object_hook=object_hook)``."""
    if _MARK not in value:
        return value
    return Sentence(value[_MARK], value["id"], value["params"], value["plural"], value["release"])


def plain(text: str) -> str:
    """Return ``text`` without a template: for records that leave the program."""
    return str.__str__(text)
