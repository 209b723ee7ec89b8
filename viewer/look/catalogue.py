"""Catalogues of texts: one gettext file a language, ``resources/i18n/LANG/LC_MESSAGES/storescope.po``.

The window reads the ``.po`` file itself, so that a checkout and a wheel need no compiled copy: one regular expression
over 4,000 entries takes 6 ms, gettext's own reader of compiled files 10 ms. Any gettext editor writes these files;
``packaging/catalogue.py`` adds new texts to them. Pure, no Qt.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_LINE = re.compile(r'^(#,|msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) (.*(?:\n".*)*)', re.MULTILINE)
"""A keyword with its text, which may go on in further lines, or the flags of an entry."""
_JOINT = re.compile(r'"\s*\n"')
CONTEXT_END = "\x04"
"""Stands between the context of a text and the text, as in the files that gettext compiles."""
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_PLURAL_RULE = re.compile(r"plural=([^;\n]+)")


def _only_form(_: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The texts of one language.

    ``texts`` has the translations by ``msgid``, with the context in front where there is one. ``plurals`` has those of
    the texts that count something, a translation for each plural form of the language. ``form_of`` is the language's
    plural rule: the number of the form for a count.
    """

    texts: dict[str, str] = field(default_factory=dict)
    plurals: dict[str, tuple[str, ...]] = field(default_factory=dict)
    form_of: Callable[[int], int] = _only_form

    def find(self, msgid: str) -> str | None:
        """Return the translation of ``msgid``; None if it is not translated."""
        return self.texts.get(msgid)

    def find_plural(self, msgid: str, n: int) -> str | None:
        """Return the translation of ``msgid``, the singular of a text that counts, for the count ``n``."""
        forms = self.plurals.get(msgid)
        if forms is None:
            return None
        return forms[self.form_of(n) if len(forms) > 1 else 0]


def read_catalogue(text: str) -> Catalogue:
    """Read the text of a ``.po`` file. Entries that are fuzzy, obsolete or not translated are left out."""
    texts: dict[str, str] = {}
    plurals: dict[str, tuple[str, ...]] = {}
    rule: Callable[[int], int] = _only_form
    is_fuzzy = is_next_fuzzy = counts = False
    msgid = context = ""
    forms: list[str] = []
    for keyword, quoted in [*_LINE.findall(text), ("msgid", "")]:
        if keyword == "msgid":
            if msgid and not is_fuzzy and forms and all(forms):
                if counts:
                    plurals[msgid] = tuple(forms)
                else:
                    texts[msgid] = forms[0]
            elif not msgid and forms and (header := _PLURAL_RULE.search(forms[0])) is not None:
                rule = gettext.c2py(header[1].strip())
            msgid, forms, counts = context + _unquoted(quoted), [], False
            context = ""
            is_fuzzy, is_next_fuzzy = is_next_fuzzy, False
        elif keyword == "msgid_plural":
            counts = True
        elif keyword == "msgctxt":
            context = _unquoted(quoted) + CONTEXT_END
        elif keyword == "#,":
            is_next_fuzzy = "fuzzy" in quoted
        else:
            forms.append(_unquoted(quoted))
    return Catalogue(texts, plurals, rule)


def _unquoted(quoted: str) -> str:
    text = _JOINT.sub("", quoted)[1:-1] if "\n" in quoted else quoted[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text) if "\\" in text else text
