"""Users and policies of 5.x: who may sign, and which policy entry allows or denies a request
(docs/protocol/access.md#users).

Accounts of a ``plain_acl.yml`` are taken over as RocketMQ's migration does it; changes by requests are stored
beside that file and override it. Java: ``User``, ``Acl``, ``Policy``, ``PolicyEntry``, ``Resource``,
``AuthMigrator``, ``AclAuthorizationHandler``.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from engine.broker.plain_acl import Account, PlainAcl, keep_secret
from engine.codec.json_dialect import parse
from engine.errors import CannotRead, UsageError

SUPER, NORMAL = "Super", "Normal"
ENABLED, DISABLED = "enable", "disable"
CUSTOM, DEFAULT = "Custom", "Default"
ALLOW, DENY = "Allow", "Deny"
ALL, ANY = "All", "Any"
ACTIONS = (ALL, ANY, "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")
KINDS = ("Unknown", ANY, "Cluster", "Namespace", "Topic", "Group")
EVERYTHING = "*"
USER = "User:"
"""Prefix of a subject: only users have policies."""
LARGEST_FILE = 1 << 24


def match_name(text: object, names: Sequence[str]) -> str:
    """Return the one of ``names`` that equals ``text``, in any case; empty if none does."""
    return next((name for name in names if isinstance(text, str) and name.lower() == text.lower()), "")


@dataclass(frozen=True, slots=True)
class User:
    """A user who signs as ``name`` with ``password``."""

    name: str
    password: str
    type: str = NORMAL
    status: str = ENABLED

    def record(self) -> dict[str, str]:
        """Return the user as answers show it: with the password, as in RocketMQ."""
        return {
            "password": self.password,
            "userStatus": self.status,
            "userType": self.type,
            "username": self.name,
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """A policy's line: ``resource`` is ``Topic:NAME``, ``Topic:PREFIX*``, ``Topic:*`` (also of a group, a cluster), or
    ``*``. ``sources`` are addresses and networks; none: from anywhere.
    """

    resource: str
    actions: tuple[str, ...]
    decision: str = ALLOW
    sources: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the entry as answers show it."""
        fields = {"actions": list(self.actions), "decision": self.decision, "resource": self.resource}
        return {**fields, "sourceIps": list(self.sources)} if self.sources else fields

    def speaks_of(self, kind: str, name: str, actions: Sequence[str], address: str) -> bool:
        """Return True if the entry is about one of the actions on that resource, requested from that address."""
        entry_kind, _, pattern = self.resource.partition(":")
        if self.resource != EVERYTHING:
            if entry_kind != kind:
                return False
            prefix = pattern.removesuffix("*")
            if not (name.startswith(prefix) if prefix != pattern else name == pattern):
                return False
        return (ALL in self.actions or any(action in self.actions for action in actions)) and self._is_from(address)

    def _is_from(self, address: str) -> bool:
        try:
            client_ip = ipaddress.ip_address(address)
        except ValueError:
            return not self.sources
        return not self.sources or any(
            client_ip in ipaddress.ip_network(source, strict=False) for source in self.sources
        )


Policies = Mapping[str, tuple[Entry, ...]]
"""Entries by type of policy: those of ``Default`` count if no ``Custom`` entry applies."""


def resource_of(text: object) -> str:
    """Return a resource as it is stored; empty if the text is no resource."""
    if not isinstance(text, str) or not text.strip():
        return ""
    kind, colon, name = text.partition(":")
    resource_kind = match_name(kind, KINDS)
    if text == EVERYTHING or (resource_kind == ANY and name == EVERYTHING):
        return EVERYTHING
    return f"{resource_kind}:{name}" if resource_kind and colon else ""


def is_source(text: object) -> bool:
    """Return True if the text is an address or a network."""
    try:
        ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return False
    return isinstance(text, str)


def deny_reason(policies: Policies, kind: str, name: str, actions: Sequence[str], address: str) -> str:
    """Return an empty text if the user may act, otherwise the reason."""
    for type_ in (CUSTOM, DEFAULT):
        entries = [entry for entry in policies.get(type_, ()) if entry.speaks_of(kind, name, actions, address)]
        if entries:
            strongest = sorted(entries, key=cmp_to_key(_compared))[0]  # noqa: FURB192 (no order: the least is another one)
            return "the decision is deny." if strongest.decision == DENY else ""
    return "no matched policies."


def _compared(entry: Entry, other_entry: Entry) -> int:
    """Below 0: ``entry`` counts before ``other_entry``. As RocketMQ 5.3.3 compares, which is no total order: of a
    name and a prefix the one that stands later counts, of two prefixes the shorter one.
    """
    if (entry.resource == EVERYTHING) != (other_entry.resource == EVERYTHING):
        return 1 if entry.resource == EVERYTHING else -1
    pattern_kind, other_kind = _pattern(entry.resource), _pattern(other_entry.resource)
    order = 0
    if pattern_kind == other_kind == "prefix":
        order = len(entry.resource) - len(other_entry.resource)
    elif pattern_kind not in {other_kind, "any"}:
        order = -1
    if order or entry.decision == other_entry.decision:
        return order
    return 1 if entry.decision == DENY else -1


def _pattern(resource: str) -> str:
    name = resource.partition(":")[2]
    return "any" if name == "*" else "prefix" if name.endswith("*") else "name"


def merge_policies(policies: Policies, new_policies: Policies) -> dict[str, tuple[Entry, ...]]:
    """Return ``policies`` with the entries of ``new_policies``: each replaces the entry of the same resource."""
    combined = dict(policies)
    for type_, entries in new_policies.items():
        by_resource = {entry.resource: entry for entry in (*combined.get(type_, ()), *entries)}
        combined[type_] = tuple(by_resource.values())
    return combined


def remove_entry(policies: Policies, type_: str, resource: str) -> dict[str, tuple[Entry, ...]]:
    """Return ``policies`` without the entry of a resource."""
    remaining = {
        key: tuple(entry for entry in entries if key != type_ or entry.resource != resource)
        for key, entries in policies.items()
    }
    return {key: entries for key, entries in remaining.items() if entries}


def user_of_account(account: Account) -> tuple[User, dict[str, tuple[Entry, ...]]]:
    """Return an account of ``plain_acl.yml`` as a user and its policies; one with ``admin`` is super, and needs
    none.
    """
    user = User(account.access_key, account.secret_key, SUPER if account.admin else NORMAL)
    if account.admin:
        return user, {}
    custom = [_entry("Topic", name, permission) for name, permission in account.topics]
    custom += [_entry("Group", name, permission) for name, permission in account.groups]
    defaults = (("Topic", account.default_topic), ("Group", account.default_group))
    default = [_entry(kind, "*", permission) for kind, permission in defaults if permission is not None]
    policies = {CUSTOM: tuple(custom), DEFAULT: tuple(default)}
    return user, {key: entries for key, entries in policies.items() if entries}


def _entry(kind: str, name: str, permission: str) -> Entry:
    actions = {"PUB": ("Pub",), "SUB": ("Sub",), "PUB|SUB": ("Pub", "Sub"), "SUB|PUB": ("Sub", "Pub")}
    return Entry(f"{kind}:{name}", actions.get(permission, (ALL,)), DENY if permission == "DENY" else ALLOW)


class Users:
    """Users and their policies by name: of a file, and over them what requests made of them, kept in ``path``. A name
    that a request deleted stays deleted, whatever the file says.

    Raises :class:`CannotRead`, :class:`UsageError` where what was kept cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: dict[str, tuple[User, Policies]] = {}
        self._kept: dict[str, tuple[User, Policies] | None] = _read(path)

    def take_over(self, acl: PlainAcl) -> None:
        """Replace the accounts of the file."""
        self._file = {name: user_of_account(account) for name, account in acl.accounts.items()}

    def find(self, name: str) -> User | None:
        """Return the user of that name."""
        row = self._found(name)
        return None if row is None else row[0]

    def policies(self, name: str) -> Policies:
        """Return the policies of a user; empty if there are none."""
        row = self._found(name)
        return {} if row is None else row[1]

    def _found(self, name: str) -> tuple[User, Policies] | None:
        return self._kept[name] if name in self._kept else self._file.get(name)

    def all(self) -> list[User]:
        """Return every user, sorted by name."""
        names = sorted({*self._file, *self._kept}, key=str.encode)
        return [user for name in names if (user := self.find(name)) is not None]

    def put(self, user: User, policies: Policies | None = None) -> None:
        """Store a user; without ``policies`` the old ones stay. Raises ``OSError``."""
        self._keep(user.name, (user, self.policies(user.name) if policies is None else policies))

    def delete(self, name: str) -> None:
        """Delete a user and its policies. Raises ``OSError``."""
        if self._found(name) is not None:
            self._keep(name, None)

    def _keep(self, name: str, value: tuple[User, Policies] | None) -> None:
        users = {**self._kept, name: value}
        if value is None and name not in self._file:
            del users[name]
        lines = {user_name: None if row is None else _record(*row) for user_name, row in users.items()}
        keep_secret(self._path, json.dumps({"users": lines}, ensure_ascii=False, indent=1).encode())
        self._kept = users


def _record(user: User, policies: Policies) -> dict[str, Any]:
    return {**user.record(), "policies": policy_records(policies)}


def policy_records(policies: Policies) -> list[dict[str, Any]]:
    """Return policies in the form of bodies."""
    return [{"entries": [entry.record() for entry in rows], "policyType": key} for key, rows in policies.items()]


def _read(path: Path) -> dict[str, tuple[User, Policies] | None]:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    document = parse(raw).value if len(raw) <= LARGEST_FILE else None
    users = document.get("users") if isinstance(document, Mapping) else None
    if not isinstance(users, Mapping):
        raise UsageError("expected users by name, as the broker wrote them", file=str(path))
    try:
        return {str(name): None if row is None else _kept_row(str(name), row) for name, row in users.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"expected users as the broker wrote them: {error!r}", file=str(path)) from error


def _kept_row(name: str, row: Mapping[str, Any]) -> tuple[User, Policies]:
    """Parse a stored user. Raises ``KeyError``, ``TypeError``, ``AttributeError`` if no broker wrote the row."""
    user = User(name, str(row["password"]), str(row["userType"]), str(row["userStatus"]))
    policies = {
        str(policy["policyType"]): tuple(
            Entry(
                str(entry["resource"]),
                tuple(map(str, entry["actions"])),
                str(entry["decision"]),
                tuple(source for source in entry.get("sourceIps", ()) if is_source(source)),
            )
            for entry in policy["entries"]
        )
        for policy in row["policies"]
    }
    return user, policies


def with_changes(user: User, password: str, type_: str, status: str) -> User:
    """Return ``user`` with the values that are not empty."""
    return replace(user, password=password or user.password, type=type_ or user.type, status=status or user.status)
