"""Catalogues of sentences: one gettext file a language, ``resources/i18n/LANG/LC_MESSAGES/storescope.po``.

The window reads the ``.po`` file itself, so that a checkout and a wheel need no compiled copy. Any gettext editor
writes these files; ``packaging/catalogue.py`` adds new sentences to them. Pure, no Qt.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_PLURAL_RULE = re.compile(r"plural=([^;\n]+)")


def _only_form(_: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The sentences of one language.

    ``forms`` has the translations by ``msgid``: one, or one a plural form of the language. ``counting`` are the
    ``msgid`` with a plural. ``form_of`` is the language's plural rule: the number of the form for a count.
    """

    forms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counting: frozenset[str] = frozenset()
    form_of: Callable[[int], int] = _only_form

    def find(self, msgid: str, n: int | None = None) -> str | None:
        """Return the translation of ``msgid`` for the count ``n``; None if it is not translated."""
        forms = self.forms.get(msgid)
        if forms is None:
            return None
        return forms[self.form_of(n) if n is not None and len(forms) > 1 else 0]


def read_catalogue(text: str) -> Catalogue:
    """Read the text of a ``.po`` file. Entries that are fuzzy, obsolete or not translated are left out."""
    forms: dict[str, tuple[str, ...]] = {}
    counting: set[str] = set()
    rule: Callable[[int], int] = _only_form
    for entry in text.split("\n\n"):
        fields, is_fuzzy = _fields(entry)
        msgid = fields.get("msgid")
        if msgid is None or is_fuzzy:
            continue
        translations = tuple(value for name, value in fields.items() if name.startswith("msgstr"))
        if msgid == "":
            header = _PLURAL_RULE.search(translations[0] if translations else "")
            rule = gettext.c2py(header[1].strip()) if header is not None else rule
        elif translations and all(translations):
            forms[msgid] = translations
            counting |= {msgid} if "msgid_plural" in fields else set()
    return Catalogue(forms, frozenset(counting), rule)


def _fields(entry: str) -> tuple[dict[str, str], bool]:
    """Return keyword → text of one entry, and True if the entry is fuzzy."""
    fields: dict[str, str] = {}
    keyword, is_fuzzy = "", False
    for line in entry.splitlines():
        if line.startswith("#"):
            is_fuzzy = is_fuzzy or (line.startswith("#,") and "fuzzy" in line)
            continue
        if not line.startswith('"'):
            keyword, _, line = line.partition(" ")  # noqa: PLW2901 (the quoted rest of the line)
            fields[keyword] = ""
        if keyword:
            fields[keyword] += _unescaped(line[1:-1])
    return fields, is_fuzzy


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text) if "\\" in text else text
