"""Masking what leaves the house: bodies, keys and hosts of records and of sentences; what was equal stays equal.

One rule for the window's exports and reports, the command line and the pipeline. A pseudonym is made with a salt that
is drawn anew for each export and kept nowhere, so that values cannot be guessed and two exports cannot be held against
each other; within one export the same value has the same pseudonym wherever it stands. A :class:`Masking` is a plain
value and travels with its salt: what several processes write of one export is masked alike. Pure.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from typing import Any

from engine.errors import UsageError

PARTS = ("bodies", "keys", "hosts")
"""What can be masked, in the words of ``--mask``."""
HIDDEN = "(masked)"

_BODIES = ("body", "bodyText", "bodySha256", "bodyCRC")
_IDS = ("uniqueKey", "offsetMsgId", "msgId")
_HOST_FIELDS = ("bornHost", "storeHost")
_HASHES = ("keyHash", "slot")
"""Fields of index entries: whoever guesses a key can compare its hash."""
_KEY_PROPERTIES = ("KEYS", "__SHARDINGKEY", "CORRELATION_ID")
_ID_PROPERTIES = ("UNIQ_KEY", "__transactionId__", "ORIGIN_MESSAGE_ID", "TIMER_DEL_UNIQKEY", "EXTEND_UNIQ_INFO")
"""Ids name their message, and begin with an address: masked with keys and with hosts."""
_HOST_PROPERTIES = (
    "BORN_HOST", "CLIENT_HOST", "REPLY_TO_CLIENT", "MSG_REGION", "INSTANCE_ID", "CLUSTER", "DUP_INFO", "POP_CK",
)  # fmt: skip

_SIX = r"[0-9A-Fa-f]{1,4}"
_ADDRESS = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.]*\w)"
    r"|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\](?::\d+)?"
    rf"|(?<![\w:])(?:{_SIX}:){{7}}{_SIX}(?![\w:])"
    rf"|(?<![\w:])(?:{_SIX}(?::{_SIX}){{0,6}})?::(?:{_SIX}(?::{_SIX}){{0,6}})?(?![\w:])"
)
_ID = re.compile(r"\b(?:[0-9A-F]{56}|[0-9A-F]{32})\b")
_KEY = re.compile(r"(?<=[\w%-])#[^\s,;]+")
"""A key behind its topic."""
_PATH = re.compile(r"(?<![\w.…/])/(?:[^\s/:,;']+/)+")


@dataclass(frozen=True, slots=True)
class Masking:
    """What is masked, and with which salt."""

    bodies: bool = False
    keys: bool = False
    hosts: bool = False
    salt: bytes = field(default_factory=lambda: os.urandom(16), repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> Masking:
        """The masking that ``bodies,keys,hosts`` (any of them) asks for; UsageError where a word is another one."""
        wanted = [word.strip() for word in text.split(",") if word.strip()]
        for word in wanted:
            if word not in PARTS:
                raise UsageError(f"expected {', '.join(PARTS)} (any of them, with commas) to mask, found '{word}'")
        return cls(bodies="bodies" in wanted, keys="keys" in wanted, hosts="hosts" in wanted)

    @property
    def any(self) -> bool:
        """Whether anything is masked."""
        return self.bodies or self.keys or self.hosts

    @property
    def parts(self) -> tuple[str, ...]:
        """What is masked, in the words of :data:`PARTS`."""
        return tuple(name for name in PARTS if getattr(self, name))

    def pseudonym(self, kind: str, value: str) -> str:
        """``key-3f9a…`` for a value; the same for the same value of this export."""
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self.salt, digest_size=6)
        return f"{kind}-{digest.hexdigest()}"

    def key(self, value: str) -> str:
        """A key or an id as a pseudonym; nothing stays nothing."""
        return self.pseudonym("key", value) if value else value

    def host(self, value: str | None) -> str | None:
        """A host as a pseudonym; its port stays."""
        if not value:
            return value
        host, colon, port = value.rpartition(":")
        if not colon or not port.isdigit() or (":" in host and not host.endswith("]")):
            host, colon, port = value, "", ""  # no port behind it
        return f"{self.pseudonym('host', host.strip('[]'))}{colon}{port}"

    # ---- records -----------------------------------------------------------------------------------------------------

    def value(self, name: str, value: Any) -> Any:
        """A field of a record under its name, masked where it has to be; columns of a table are masked by it too."""
        if value is None:
            return None
        if name in _BODIES:
            return None if self.bodies else value
        if name in _HASHES:
            return None if self.keys else value
        if name in _IDS:
            return self.key(value) if self.keys or self.hosts else value
        if name in _HOST_FIELDS:
            return self.host(value) if self.hosts else value
        if name == "keys" and isinstance(value, list | tuple):
            return [self.key(one) for one in value] if self.keys else value
        if name == "key":
            return self.key(value) if self.keys else value
        if name == "properties":
            return self.properties(value)
        return value

    def properties(self, properties: dict[str, str]) -> dict[str, str]:
        """The properties of a message; changed in a copy."""
        return {name: self._property(name, value) for name, value in properties.items()}

    def _property(self, name: str, value: str) -> str:
        if (name in _KEY_PROPERTIES and self.keys) or (name in _ID_PROPERTIES and (self.keys or self.hosts)):
            return " ".join(self.key(part) for part in value.split(" "))
        if name in _HOST_PROPERTIES and self.hosts:
            return self.pseudonym("host", value)
        return value

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of any type of the command line, masked; it is changed in a copy."""
        if not self.any:
            return record
        if record.get("type") == "finding":
            return self._finding(record)
        return {name: self.value(name, value) for name, value in record.items()}

    def _finding(self, record: dict[str, Any]) -> dict[str, Any]:
        made = dict(record)
        made["message"] = self.words(str(made.get("message") or ""))
        made["nextStep"] = self.words(str(made.get("nextStep") or ""))
        made["file"] = self.path(made.get("file"))
        made["evidence"] = self.evidence("", made.get("evidence") or {})
        return made

    # ---- sentences ---------------------------------------------------------------------------------------------------

    def words(self, text: str) -> str:
        """A sentence without hosts and folders (with hosts), ids (with keys or hosts) and keys behind a topic."""
        if self.hosts:
            text = _ADDRESS.sub(lambda found: self.host(found[0]) or "", text)
        if self.keys or self.hosts:
            text = _ID.sub(lambda found: self.key(found[0]), text)
        if self.keys:
            text = _KEY.sub(lambda found: f"#{self.key(found[0][1:])}", text)
        return _PATH.sub("…/", text) if self.hosts else text

    def path(self, path: str | None) -> str | None:
        """A path without the folders above the store: they name machines and people."""
        if path is None or not self.hosts or not path.startswith("/"):
            return path
        return "/".join(("…", *path.split("/")[-3:]))

    def evidence(self, name: str, value: Any) -> Any:
        """A value of a finding's evidence under its name, what stands inside it too."""
        if isinstance(value, dict):
            return {inner: self.evidence(str(inner), one) for inner, one in value.items()}
        low = name.lower()
        if self.bodies and low in {"body", "text", "value"}:
            return HIDDEN
        if isinstance(value, list | tuple):
            return [self.evidence(name, one) for one in value]
        if not isinstance(value, str):
            return None if self.keys and low == "keyhash" else value
        if self.keys and (low.endswith(("key", "keys")) or low in {"msgid", "offsetmsgid"}):
            return self.key(value)
        if self.hosts and low.endswith(("host", "hosts", "address")):
            return self.host(value)
        return self.words(value)
