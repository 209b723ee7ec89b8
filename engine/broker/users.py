"""Users and policies of 5.x: who may sign, which policy entry allows or denies a request, and the requests 3001 to 3010
with which administrators make, change, show and delete them (docs/protocol/access.md#users).

Accounts of a ``plain_acl.yml`` are taken over as RocketMQ's migration does it; changes by requests are stored
beside that file and override it. Java: ``User``, ``Acl``, ``Policy``, ``PolicyEntry``, ``Resource``,
``AuthMigrator``, ``AclAuthorizationHandler``; ``AdminBrokerProcessor``, ``AuthenticationMetadataManagerImpl``,
``AuthorizationMetadataManagerImpl``.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import read_object, write
from engine.broker.plain_acl import Account, PlainAcl, keep_secret
from engine.codec.json_dialect import parse
from engine.errors import CannotRead, UsageError
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.signing import ACCESS_KEY
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


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
MAX_FILE_BYTES = 1 << 24


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
    """Users and their policies by name: those of the file of accounts, overridden by changes of requests, which are
    stored in ``path``. A user that a request deleted stays deleted, even if the file has it. Raises :class:`CannotRead`
    or :class:`UsageError` if ``path`` cannot be read.
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
        row = self._find_user(name)
        return None if row is None else row[0]

    def policies(self, name: str) -> Policies:
        """Return the policies of a user; empty if there are none."""
        row = self._find_user(name)
        return {} if row is None else row[1]

    def _find_user(self, name: str) -> tuple[User, Policies] | None:
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
        if self._find_user(name) is not None:
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
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    document = parse(raw).value if len(raw) <= MAX_FILE_BYTES else None
    users = document.get("users") if isinstance(document, Mapping) else None
    if not isinstance(users, Mapping):
        raise UsageError(sentence("expected users by name, as the broker wrote them"), file=str(path))
    try:
        return {str(name): None if row is None else _kept_row(str(name), row) for name, row in users.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            sentence("expected users as the broker wrote them: {error}", error=repr(error)), file=str(path)
        ) from error


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


_OFF = "An system error occurred, please try again later."
"""Answer of 5.3.3 while authentication is off."""


def _users(broker: Broker) -> Users:
    """Return the users. Raises :class:`Refused` if the broker has no access control, and so no users."""
    if broker.access is None or broker.access.users is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, _OFF)
    return broker.access.users


def _named(header: Header) -> str:
    name = str(header["username"] or "")
    if not name.strip():
        raise Refused(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return name


def _only_super(users: Users, request: Command, words: str, code: int = ResponseCode.NO_PERMISSION) -> None:
    """Check that the sender is a super user. Raises :class:`Refused`."""
    asking = users.find(request.fields.get(ACCESS_KEY, ""))
    if asking is None or asking.type != SUPER:
        raise Refused(code, f"The super user can only be {words} by super user")


def _kept(users: Users, user: User, policies: Policies | None = None) -> None:
    try:
        users.put(user, policies)
    except OSError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the users cannot be written: {error}") from error


def _done(request: Command, body: bytes = b"") -> Command:
    return answer_to(request, body=body, remark=NOT_SET)


def create_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_CREATE_USER: create a user; the name is the header's."""
    name, users, body = _named(header), _users(broker), read_object(request.body)
    type_ = match_name(body.get("userType"), (SUPER, NORMAL)) or NORMAL
    if type_ == SUPER:
        _only_super(users, request, "create", ResponseCode.SYSTEM_ERROR)
    password = body.get("password")
    if not isinstance(password, str) or not password.strip():
        raise Refused(ResponseCode.NO_PERMISSION, "password can not be blank")
    if users.find(name) is not None:
        raise Refused(ResponseCode.NO_PERMISSION, "The user is existed")
    status = match_name(body.get("userStatus"), (ENABLED, DISABLED)) or ENABLED
    _kept(users, User(name, password, type_, status), {})
    return _done(request)


def update_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_UPDATE_USER: change a password, type or status; what the body leaves out stays."""
    name, users, body = _named(header), _users(broker), read_object(request.body)
    type_ = match_name(body.get("userType"), (SUPER, NORMAL))
    if type_ == SUPER:
        _only_super(users, request, "update", ResponseCode.SYSTEM_ERROR)
    user = users.find(name)
    if user is None:
        raise Refused(ResponseCode.NO_PERMISSION, "The user is not exist")
    if user.type == SUPER:
        _only_super(users, request, "update")
    password = body.get("password")
    status = match_name(body.get("userStatus"), (ENABLED, DISABLED))
    _kept(users, with_changes(user, password if isinstance(password, str) else "", type_, status))
    return _done(request)


def delete_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_DELETE_USER: delete a user and its policies; deleting an unknown user succeeds."""
    users, name = _users(broker), str(header["username"] or "")
    if not name.strip():
        raise Refused(ResponseCode.NO_PERMISSION, "username can not be blank")
    user = users.find(name)
    if user is not None and user.type == SUPER:
        _only_super(users, request, "update")
    try:
        users.delete(name)
    except OSError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the users cannot be written: {error}") from error
    return _done(request)


def get_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_GET_USER: a user with the password, as in RocketMQ; no body if there is no such user."""
    name = _named(header)
    user = _users(broker).find(name)
    return _done(request) if user is None else _done(request, write(user.record()))


def list_users(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_LIST_USER: users whose names contain ``filter``; no body where there is none."""
    text = str(header["filter"] or "")
    records = [user.record() for user in _users(broker).all() if text in user.name]
    return _done(request, write(records) if records else b"")


# -- policies


def change_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_CREATE_ACL, AUTH_UPDATE_ACL: set entries of the body's subject, or of the header's where the body names
    none. They replace the subject's entries of the same resources.
    """
    users, body = _users(broker), read_object(request.body) if request.body else {}
    rows = body.get("policies")
    if not isinstance(rows, list) or not rows:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The body of acl is null")
    subject = body.get("subject")
    if not _is_subject(subject):
        subject = header["subject"]
    name = _subject(subject)
    new_policies: dict[str, tuple[Entry, ...]] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise WrongRequest("policies is no list of policies")
        new_policies = merge_policies(
            new_policies, {match_name(row.get("policyType"), (CUSTOM, DEFAULT)) or CUSTOM: _entries(row.get("entries"))}
        )
    user = users.find(name)
    if user is None:
        raise Refused(ResponseCode.NO_PERMISSION, f"The subject of {subject} is not exist.")
    _kept(users, user, merge_policies(users.policies(name), new_policies))
    return _done(request)


def _subject(subject: object, code: int = ResponseCode.NO_PERMISSION) -> str:
    """Return the name of the user that a subject is. Raises :class:`Refused`."""
    if not _is_subject(subject):
        raise Refused(code, "The subject is null.")
    return str(subject).removeprefix(USER)


def _is_subject(subject: object) -> bool:
    return isinstance(subject, str) and subject.startswith(USER)


def _entries(rows: object) -> tuple[Entry, ...]:
    """Parse the entries of a policy. Raises :class:`Refused`."""
    if not isinstance(rows, list) or not rows:
        raise Refused(ResponseCode.NO_PERMISSION, "The policies is empty.")
    return tuple(_entry_of_row(row if isinstance(row, Mapping) else {}) for row in rows)


def _entry_of_row(row: Mapping[Any, Any]) -> Entry:
    resource, action_names = resource_of(row.get("resource")), _texts(row.get("actions"))
    if not isinstance(row.get("actions"), list):
        raise Refused(ResponseCode.SYSTEM_ERROR, "the actions are no list")
    if not resource:
        raise Refused(ResponseCode.NO_PERMISSION, "The resource is null.")
    actions = tuple(action for action_name in action_names if (action := match_name(action_name, ACTIONS)))
    if not actions:
        raise Refused(ResponseCode.NO_PERMISSION, "The actions is empty.")
    if ANY in actions:
        raise Refused(ResponseCode.NO_PERMISSION, "The actions can not be Any.")
    sources = _texts(row.get("sourceIps"))
    if not all(map(str.strip, sources)):
        raise Refused(ResponseCode.NO_PERMISSION, "The source ip is empty.")
    if not all(map(is_source, sources)):
        raise Refused(ResponseCode.NO_PERMISSION, "The source ip is invalid.")
    decision = match_name(row.get("decision"), (ALLOW, DENY))
    if not decision:
        raise Refused(ResponseCode.NO_PERMISSION, "The decision is null or illegal.")
    return Entry(resource, actions, decision, sources)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def delete_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_DELETE_ACL: delete a user's entry of a resource, or all policies of the user. Text that is no resource, or a
    type alone, also deletes all of them, as in 5.3.3.
    """
    users, name = _users(broker), _subject(header["subject"])
    user, resource = users.find(name), str(header["resource"] or "")
    if user is None:
        raise Refused(ResponseCode.NO_PERMISSION, "The subject is not exist.")
    policies = users.policies(name)
    if not policies:
        raise Refused(ResponseCode.NO_PERMISSION, "The acl is not exist.")
    normalized = resource_of(resource)
    if not normalized:
        _kept(users, user, {})
        return _done(request)
    _kept(
        users, user, remove_entry(policies, match_name(header["policyType"], (CUSTOM, DEFAULT)) or CUSTOM, normalized)
    )
    return _done(request)


def get_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_GET_ACL: the policies of a user; no body where there are none."""
    users = _users(broker)
    name = _subject(header["subject"], ResponseCode.SYSTEM_ERROR)
    if users.find(name) is None:
        raise Refused(ResponseCode.NO_PERMISSION, "The subject is not exist.")
    policies = users.policies(name)
    return _done(request, write(_shown(name, policies)) if policies else b"")


def list_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """AUTH_LIST_ACL: policies of users whose subject contains ``subjectFilter``, with the entries whose resource
    contains ``resourceFilter``; no body where there are none.
    """
    users = _users(broker)
    subject, resource = str(header["subjectFilter"] or ""), str(header["resourceFilter"] or "")
    rows = []
    for user in users.all():
        policies = {
            key: tuple(entry for entry in entries if resource in entry.resource)
            for key, entries in users.policies(user.name).items()
        }
        policies = {key: entries for key, entries in policies.items() if entries}
        if policies and subject in USER + user.name:
            rows.append(_shown(user.name, policies))
    return _done(request, write(rows) if rows else b"")


def _shown(name: str, policies: Policies) -> dict[str, Any]:
    return {"policies": policy_records(policies), "subject": USER + name}


HANDLERS: dict[int, Processor] = {
    RequestCode.AUTH_CREATE_USER: create_user,
    RequestCode.AUTH_UPDATE_USER: update_user,
    RequestCode.AUTH_DELETE_USER: delete_user,
    RequestCode.AUTH_GET_USER: get_user,
    RequestCode.AUTH_LIST_USER: list_users,
    RequestCode.AUTH_CREATE_ACL: change_policies,
    RequestCode.AUTH_UPDATE_ACL: change_policies,
    RequestCode.AUTH_DELETE_ACL: delete_policies,
    RequestCode.AUTH_GET_ACL: get_policies,
    RequestCode.AUTH_LIST_ACL: list_policies,
}
