"""Masking what leaves the house: bodies, keys and hosts of records; what was equal stays equal. No Qt.

A pseudonym is made with a salt that is drawn anew for each export and kept nowhere, so that values cannot be guessed
and two exports cannot be held against each other; within one export the same value has the same pseudonym.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any

KEYS = ("KEYS", "UNIQ_KEY", "__transactionId__", "ORIGIN_MESSAGE_ID", "DUP_INFO")
HOSTS = ("BORN_HOST", "CLIENT_HOST", "MSG_REGION", "INSTANCE_ID", "CLUSTER")
HIDDEN = "(masked)"


@dataclass(frozen=True, slots=True)
class Masking:
    """What is masked."""

    bodies: bool = False
    keys: bool = False
    hosts: bool = False
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False, compare=False)

    @property
    def any(self) -> bool:
        """Whether anything is masked."""
        return self.bodies or self.keys or self.hosts

    def pseudonym(self, kind: str, value: str) -> str:
        """``key-3f9a…`` for a value; the same for the same value of this export."""
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self.salt, digest_size=6)
        return f"{kind}-{digest.hexdigest()}"

    def host(self, value: str | None) -> str | None:
        """A host as a pseudonym; its port stays."""
        if value is None:
            return None
        host, colon, port = value.rpartition(":")
        return f"{self.pseudonym('host', host if colon else value)}{colon}{port if colon else ''}"

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """A unit's record, masked; it is changed in a copy."""
        if not self.any or record.get("type") not in {"unit", "match"}:
            return record
        made = dict(record)
        properties = dict(made.get("properties") or {})
        if self.bodies:
            for name in ("body", "bodySha256", "bodyCRC"):
                if name in made:
                    made[name] = None
        if self.keys:
            made["keys"] = [self.pseudonym("key", key) for key in made.get("keys") or []]
            unique = made.get("uniqueKey")
            made["uniqueKey"] = self.pseudonym("key", unique) if unique else unique
            for name in KEYS:
                if name in properties:
                    properties[name] = " ".join(self.pseudonym("key", part) for part in properties[name].split(" "))
        if self.hosts:
            for name in ("bornHost", "storeHost"):
                made[name] = self.host(made.get(name))
            made["offsetMsgId"] = HIDDEN
            for name in HOSTS:
                if name in properties:
                    properties[name] = self.pseudonym("host", properties[name])
            unique = made.get("uniqueKey")
            if unique and not self.keys:  # a unique key begins with its client's address
                made["uniqueKey"] = self.pseudonym("key", unique)
                if "UNIQ_KEY" in properties:
                    properties["UNIQ_KEY"] = made["uniqueKey"]
        made["properties"] = properties
        return made
