"""Users and policies of 5.x: who may sign, and which entry of his policies decides what he may do
(docs/protocol/access.md#users).

Those of a ``plain_acl.yml`` are taken over as RocketMQ's migration takes them; what requests change is kept beside that
file and counts before it. Java: ``User``, ``Acl``, ``Policy``, ``PolicyEntry``, ``Resource``, ``AuthMigrator``,
``AclAuthorizationHandler``.
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
"""What a subject begins with: policies are users' only."""
LARGEST_FILE = 1 << 24


def named(text: object, names: Sequence[str]) -> str:
    """The one of ``names`` that ``text`` is, in any case; empty: none."""
    return next((one for one in names if isinstance(text, str) and one.lower() == text.lower()), "")


@dataclass(frozen=True, slots=True)
class User:
    """Who signs as ``name`` with ``password``."""

    name: str
    password: str
    type: str = NORMAL
    status: str = ENABLED

    def record(self) -> dict[str, str]:
        """As answers show it: with its password, as in RocketMQ."""
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
        """As answers show it."""
        found = {"actions": list(self.actions), "decision": self.decision, "resource": self.resource}
        return {**found, "sourceIps": list(self.sources)} if self.sources else found

    def speaks_of(self, kind: str, name: str, actions: Sequence[str], address: str) -> bool:
        """Whether it is about one of the actions on that resource, asked from there."""
        of, _, pattern = self.resource.partition(":")
        if self.resource != EVERYTHING:
            if of != kind:
                return False
            prefix = pattern.removesuffix("*")
            if not (name.startswith(prefix) if prefix != pattern else name == pattern):
                return False
        return (ALL in self.actions or any(one in self.actions for one in actions)) and self._is_from(address)

    def _is_from(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return not self.sources
        return not self.sources or any(found in ipaddress.ip_network(one, strict=False) for one in self.sources)


Policies = Mapping[str, tuple[Entry, ...]]
"""Entries by type of policy: those of ``Default`` count where none of ``Custom`` speaks of what is asked."""


def resource_of(text: object) -> str:
    """A resource as it is kept; empty where it is none."""
    if not isinstance(text, str) or not text.strip():
        return ""
    kind, colon, name = text.partition(":")
    of = named(kind, KINDS)
    if text == EVERYTHING or (of == ANY and name == EVERYTHING):
        return EVERYTHING
    return f"{of}:{name}" if of and colon else ""


def is_source(text: object) -> bool:
    """Whether it is an address or a network."""
    try:
        ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return False
    return isinstance(text, str)


def decided(policies: Policies, kind: str, name: str, actions: Sequence[str], address: str) -> str:
    """Empty where the user may; otherwise why not."""
    for type_ in (CUSTOM, DEFAULT):
        found = [one for one in policies.get(type_, ()) if one.speaks_of(kind, name, actions, address)]
        if found:
            first = sorted(found, key=cmp_to_key(_compared))[0]  # noqa: FURB192 (no order: the least is another one)
            return "the decision is deny." if first.decision == DENY else ""
    return "no matched policies."


def _compared(one: Entry, other: Entry) -> int:
    """Below 0: ``one`` counts before ``other``. As RocketMQ 5.3.3 compares, which is no order: of a name and a prefix
    the one that stands later counts, of two prefixes the shorter one.
    """
    if (one.resource == EVERYTHING) != (other.resource == EVERYTHING):
        return 1 if one.resource == EVERYTHING else -1
    mine, its = _pattern(one.resource), _pattern(other.resource)
    found = 0
    if mine == its == "prefix":
        found = len(one.resource) - len(other.resource)
    elif mine not in {its, "any"}:
        found = -1
    if found or one.decision == other.decision:
        return found
    return 1 if one.decision == DENY else -1


def _pattern(resource: str) -> str:
    name = resource.partition(":")[2]
    return "any" if name == "*" else "prefix" if name.endswith("*") else "name"


def merged(before: Policies, more: Policies) -> dict[str, tuple[Entry, ...]]:
    """``before`` with the entries of ``more``: one of the same resource takes its place."""
    found = dict(before)
    for type_, entries in more.items():
        by_resource = {one.resource: one for one in (*found.get(type_, ()), *entries)}
        found[type_] = tuple(by_resource.values())
    return found


def without(before: Policies, type_: str, resource: str) -> dict[str, tuple[Entry, ...]]:
    """``before`` without the entry of a resource."""
    left = {
        key: tuple(one for one in entries if key != type_ or one.resource != resource)
        for key, entries in before.items()
    }
    return {key: entries for key, entries in left.items() if entries}


def taken_over(account: Account) -> tuple[User, dict[str, tuple[Entry, ...]]]:
    """An account of ``plain_acl.yml`` as a user and his policies; one with ``admin`` is super, and needs none."""
    user = User(account.access_key, account.secret_key, SUPER if account.admin else NORMAL)
    if account.admin:
        return user, {}
    custom = [_entry("Topic", name, permission) for name, permission in account.topics]
    custom += [_entry("Group", name, permission) for name, permission in account.groups]
    usual = (("Topic", account.default_topic), ("Group", account.default_group))
    default = [_entry(kind, "*", permission) for kind, permission in usual if permission is not None]
    found = {CUSTOM: tuple(custom), DEFAULT: tuple(default)}
    return user, {key: entries for key, entries in found.items() if entries}


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
        """These are the accounts of the file now."""
        self._file = {name: taken_over(one) for name, one in acl.accounts.items()}

    def find(self, name: str) -> User | None:
        """The user of that name."""
        found = self._found(name)
        return None if found is None else found[0]

    def policies(self, name: str) -> Policies:
        """His policies; none: empty."""
        found = self._found(name)
        return {} if found is None else found[1]

    def _found(self, name: str) -> tuple[User, Policies] | None:
        return self._kept[name] if name in self._kept else self._file.get(name)

    def all(self) -> list[User]:
        """Every user, by name."""
        names = sorted({*self._file, *self._kept}, key=str.encode)
        return [user for name in names if (user := self.find(name)) is not None]

    def put(self, user: User, policies: Policies | None = None) -> None:
        """Keep a user as he is now; without ``policies`` those that he has. Raises ``OSError``."""
        self._keep(user.name, (user, self.policies(user.name) if policies is None else policies))

    def delete(self, name: str) -> None:
        """Forget a user and his policies. Raises ``OSError``."""
        if self._found(name) is not None:
            self._keep(name, None)

    def _keep(self, name: str, value: tuple[User, Policies] | None) -> None:
        kept = {**self._kept, name: value}
        if value is None and name not in self._file:
            del kept[name]
        lines = {one: None if found is None else _record(*found) for one, found in kept.items()}
        keep_secret(self._path, json.dumps({"users": lines}, ensure_ascii=False, indent=1).encode())
        self._kept = kept


def _record(user: User, policies: Policies) -> dict[str, Any]:
    return {**user.record(), "policies": policy_records(policies)}


def policy_records(policies: Policies) -> list[dict[str, Any]]:
    """Policies as bodies have them."""
    return [{"entries": [one.record() for one in rows], "policyType": key} for key, rows in policies.items()]


def _read(path: Path) -> dict[str, tuple[User, Policies] | None]:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    told = parse(raw).value if len(raw) <= LARGEST_FILE else None
    users = told.get("users") if isinstance(told, Mapping) else None
    if not isinstance(users, Mapping):
        raise UsageError("expected users by name, as the broker wrote them", file=str(path))
    try:
        return {str(name): None if row is None else _kept_row(str(name), row) for name, row in users.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"expected users as the broker wrote them: {error!r}", file=str(path)) from error


def _kept_row(name: str, row: Mapping[str, Any]) -> tuple[User, Policies]:
    """Raises ``KeyError``, ``TypeError``, ``AttributeError`` where a broker did not write it."""
    user = User(name, str(row["password"]), str(row["userType"]), str(row["userStatus"]))
    policies = {
        str(policy["policyType"]): tuple(
            Entry(
                str(one["resource"]),
                tuple(map(str, one["actions"])),
                str(one["decision"]),
                tuple(source for source in one.get("sourceIps", ()) if is_source(source)),
            )
            for one in policy["entries"]
        )
        for policy in row["policies"]
    }
    return user, policies


def changed(user: User, password: str, type_: str, status: str) -> User:
    """``user`` with what is not empty."""
    return replace(user, password=password or user.password, type=type_ or user.type, status=status or user.status)
