"""Rules that choose the decoder of a message, and the JSON files that keep them.

A file is an object ``{"rules": [{"topic": "Orders*", "decoder": "json"}, …]}``. The first rule that matches decides. A
store's own rules are kept in the user's settings, never in the store.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from engine.errors import CannotRead, UsageError
from engine.files.atomic_file import write_atomically
from engine.sentences import sentence

OPTIONS = ("encoding", "descriptorSet", "messageType", "schema", "name")
"""Options of decoders: texts. ``descriptorSet`` and ``schema`` name files."""
FILES = ("descriptorSet", "schema")
PACKINGS = ("gzip", "zlib", "deflate", "lz4", "zstd")
"""How a body may be compressed by its application, beside RocketMQ's own compression."""
_KEYS = ("topic", "tag", "properties", "decoder", "unpack", "skip", *OPTIONS)
MAX_RULES = 1000
MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class DecodingRule:
    """Messages of ``topic`` (a pattern with ``*`` and ``?``) are read by ``decoder``.

    ``tag`` is a pattern too, "" for any. ``properties`` are pairs of a property's name and a pattern; all must match.
    ``skip`` bytes in front are left out, then the body is unpacked as ``unpack`` says. ``options`` are pairs, see
    :data:`OPTIONS`.
    """

    topic: str
    decoder: str
    tag: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    unpack: str = ""
    skip: int = 0
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str, default: str = "") -> str:
        """Return the option ``name``."""
        return dict(self.options).get(name, default)

    @property
    def needs_properties(self) -> bool:
        """True if the topic alone does not decide."""
        return bool(self.tag or self.properties)

    def matches(self, topic: str, tag: str | None, properties: Mapping[str, str]) -> bool:
        """Return True if the rule is for a message of this topic, tag and properties."""
        return (
            fnmatchcase(topic, self.topic)
            and (not self.tag or fnmatchcase(tag or "", self.tag))
            and all(name in properties and fnmatchcase(properties[name], wanted) for name, wanted in self.properties)
        )


def rule_record(rule: DecodingRule) -> dict[str, Any]:
    """Return the rule as the files have it."""
    record: dict[str, Any] = {"topic": rule.topic}
    if rule.tag:
        record["tag"] = rule.tag
    if rule.properties:
        record["properties"] = dict(rule.properties)
    record["decoder"] = rule.decoder
    if rule.unpack:
        record["unpack"] = rule.unpack
    if rule.skip:
        record["skip"] = rule.skip
    return record | dict(rule.options)


def rule_of(record: object, folder: Path | None = None) -> DecodingRule:
    """Return the rule of a record; files in it are relative to ``folder``. Raises :class:`UsageError`."""
    if not isinstance(record, dict):
        raise UsageError(
            sentence("expected a rule such as {example}", example='{"topic": "Orders", "decoder": "json"}')
        )
    unknown = [name for name in record if name not in _KEYS]
    if unknown:
        raise UsageError(
            sentence("a rule has no {name}; it has {names}", name=repr(unknown[0]), names=", ".join(_KEYS))
        )
    texts = {name: record.get(name, "") for name in ("topic", "tag", "decoder", "unpack", *OPTIONS)}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise UsageError(sentence("{name} of a rule: expected a text, found {value}", name=name, value=repr(value)))
    if not texts["decoder"]:
        raise UsageError(sentence("a rule needs a decoder"))
    if texts["unpack"] not in ("", *PACKINGS):
        raise UsageError(
            sentence(
                "unpack of a rule: expected {names}, found {value}",
                names=", ".join(PACKINGS),
                value=repr(texts["unpack"]),
            )
        )
    skip = record.get("skip", 0)
    if not isinstance(skip, int) or isinstance(skip, bool) or skip < 0:
        raise UsageError(sentence("skip of a rule: expected a number of bytes, found {value}", value=repr(skip)))
    conditions = record.get("properties", {})
    if not isinstance(conditions, dict) or not all(isinstance(value, str) for value in conditions.values()):
        raise UsageError(
            sentence("properties of a rule: expected names with patterns, found {value}", value=repr(conditions))
        )
    check_encoding(texts["encoding"])
    for name in FILES:
        if texts[name] and folder is not None:
            texts[name] = str(folder / Path(texts[name]).expanduser())
    return DecodingRule(
        texts["topic"] or "*",
        texts["decoder"],
        texts["tag"],
        tuple(conditions.items()),
        texts["unpack"],
        skip,
        tuple((name, texts[name]) for name in OPTIONS if texts[name]),
    )


def check_encoding(name: str) -> None:
    """Raise :class:`UsageError` if there is no text encoding of this name."""
    try:
        if name:
            b"a".decode(name, "replace")
    except (LookupError, ValueError):
        raise UsageError(sentence("there is no text encoding {name}", name=repr(name))) from None


def read_rules(file: Path) -> tuple[DecodingRule, ...]:
    """Return the rules in a file. Raises :class:`CannotRead`, :class:`UsageError`."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(file)) from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(
            sentence("expected decoding rules, found more than {n:,} bytes", n=MAX_FILE_BYTES), file=str(file)
        )
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            sentence("expected decoding rules in JSON: {problem}", problem=error), file=str(file)
        ) from error
    records = document.get("rules") if isinstance(document, dict) else document
    if not isinstance(records, list):
        raise UsageError(sentence("expected an object with a list of rules"), file=str(file))
    try:
        return tuple(rule_of(record, file.absolute().parent) for record in records[:MAX_RULES])
    except UsageError as error:
        raise UsageError(error.what, file=str(file)) from error


def rules_text(rules: Iterable[DecodingRule], store: Path | None = None) -> str:
    """Return the content of a file with ``rules``."""
    document: dict[str, Any] = {} if store is None else {"store": str(store)}
    document["rules"] = [rule_record(rule) for rule in rules]
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def settings_folder() -> Path:
    """Return the folder of the user's settings; the window may be given another one."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "storescope"


def file_of(folder: Path, store: Path) -> Path:
    """Return the file below the settings' ``folder`` that keeps the rules of ``store``."""
    name = hashlib.sha256(os.path.realpath(store).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return folder / "decoders" / f"{name}.json"


def saved_rules(folder: Path, store: Path) -> tuple[DecodingRule, ...]:
    """Return the rules kept for ``store``; none if there is no file. Raises as :func:`read_rules`."""
    file = file_of(folder, store)
    return read_rules(file) if file.exists() else ()


def save_rules(folder: Path, store: Path, rules: Iterable[DecodingRule]) -> None:
    """Keep ``rules`` for ``store``. Raises OSError."""
    file, kept = file_of(folder, store), tuple(rules)
    if kept or file.exists():
        write_atomically(file, rules_text(kept, store))


def with_rule(rules: Iterable[DecodingRule], rule: DecodingRule) -> tuple[DecodingRule, ...]:
    """Return ``rules`` with ``rule`` in the place of that for the same messages, or in front."""
    listed = list(rules)
    for position, other_rule in enumerate(listed):
        if _scope(other_rule) == _scope(rule):
            listed[position] = rule
            return tuple(listed)
    return (rule, *listed)


def without_topic(rules: Iterable[DecodingRule], topic: str) -> tuple[DecodingRule, ...]:
    """Return ``rules`` without that for exactly this topic."""
    return tuple(rule for rule in rules if _scope(rule) != _scope(DecodingRule(topic_pattern(topic), "")))


def topic_pattern(topic: str) -> str:
    """Return the pattern of exactly this topic."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in topic)


def _scope(rule: DecodingRule) -> DecodingRule:
    return replace(rule, decoder="", unpack="", skip=0, options=())
