"""Which words may come next in a question, and what its words are. No Qt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from viewer.sql.answers import Vocabulary

MAX_SUGGESTIONS = 40
Part = Literal["comment", "text", "number", "keyword", "function", "relation", "column"]
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<text>'(?:[^']|'')*(?:'|\Z))"
    r'|(?P<quoted>"(?:[^"]|"")*(?:"|\Z))'
    r"|(?P<number>\b\d+(?:\.\d+)?\b)"
    r"|(?P<word>\b[^\W\d]\w*)",
    re.DOTALL,
)
_LAST_WORD = re.compile(r"(?:(?P<owner>\w+)\.)?(?P<word>\w*)\Z")
_AFTER_FROM = re.compile(r"\b(?:FROM|JOIN|DESCRIBE)\s+\w*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Words that may stand from character ``start`` on, up to the cursor."""

    start: int
    words: tuple[str, ...] = ()


class Words:
    """The vocabulary, arranged for questions about single words."""

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.relations = vocabulary.relations if vocabulary is not None else {}
        self.functions = frozenset(vocabulary.functions) if vocabulary is not None else frozenset()
        self.keywords = frozenset(vocabulary.keywords) if vocabulary is not None else frozenset()
        self._columns = {column for columns in self.relations.values() for column, _ in columns}

    def parts(self, text: str) -> Iterator[tuple[int, int, Part]]:
        """Yield begin, end and kind of the words, texts, numbers and comments of a question."""
        for token in _TOKEN.finditer(text):
            part = self._part(token, text)
            if part is not None:
                yield token.start(), token.end(), part

    def _part(self, token: re.Match[str], text: str) -> Part | None:
        match token.lastgroup:
            case "comment":
                return "comment"
            case "text":
                return "text"
            case "number":
                return "number"
        word = token[0].strip('"')
        if word in self.relations:
            return "relation"
        is_called = text[token.end() :].lstrip().startswith("(")
        if is_called and word.lower() in self.functions:
            return "function"
        if word.upper() in self.keywords and token.lastgroup == "word":
            return "keyword"
        return "column" if word in self._columns else None

    def suggest(self, text: str, cursor: int) -> Suggestions:
        """Return the words that begin like the one in front of the cursor; none within a text or a comment."""
        before = text[:cursor]
        if any(begin < cursor <= end and part in {"text", "comment"} for begin, end, part in self.parts(before + "\n")):
            return Suggestions(cursor)
        match = _LAST_WORD.search(before)
        assert match is not None
        owner, word = match["owner"], match["word"]
        if word[:1].isdigit():
            return Suggestions(cursor)
        if owner is not None:
            candidates = [name for name, _ in self.relations.get(self._relation(text, owner), ())]
        elif _AFTER_FROM.search(before):
            candidates = list(self.relations)
        else:
            candidates = [*self._named_columns(text), *self.relations, *self._further(word)]
        wanted = word.lower()
        found = [name for name in dict.fromkeys(candidates) if name.lower().startswith(wanted) and name != word]
        return Suggestions(match.start("word"), tuple(found[:MAX_SUGGESTIONS]))

    def _named_columns(self, text: str) -> list[str]:
        """Return the columns of the relations that the text names; of all where it names none."""
        named = [name for name in self.relations if re.search(rf"\b{name}\b", text)]
        return [column for name in named or self.relations for column, _ in self.relations[name]]

    def _further(self, word: str) -> list[str]:
        """Return keywords and functions, which are too many to be listed before a letter is typed."""
        return [*sorted(self.keywords), *(f"{name}(" for name in sorted(self.functions))] if word else []

    def _relation(self, text: str, owner: str) -> str:
        """Return the relation that a name in front of a dot stands for."""
        match = re.search(rf"\b({'|'.join(self.relations)})\s+(?:AS\s+)?{owner}\b", text, re.IGNORECASE)
        return match[1] if match is not None and self.relations else owner
