"""Users and policies of 5.x as administrators make, change, show and delete them: 3001 to 3010
(docs/protocol/access.md#users).

Java: ``AdminBrokerProcessor``, ``AuthenticationMetadataManagerImpl``, ``AuthorizationMetadataManagerImpl``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import read_object, write
from engine.broker.users import (
    ACTIONS,
    ALLOW,
    ANY,
    CUSTOM,
    DEFAULT,
    DENY,
    DISABLED,
    ENABLED,
    NORMAL,
    SUPER,
    USER,
    Entry,
    Policies,
    User,
    Users,
    changed,
    is_source,
    merged,
    named,
    policy_records,
    resource_of,
    without,
)
from engine.remoting.codes import NOT_SET, Answer, Refused, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.signing import ACCESS_KEY

_OFF = "An system error occurred, please try again later."
"""What 5.3.3 says while authentication is off."""


def _users(broker: Broker) -> Users:
    """Raises :class:`Refused` where nobody's requests are looked at: there are no users then."""
    if broker.access is None or broker.access.users is None:
        raise Refused(Answer.SYSTEM_ERROR, _OFF)
    return broker.access.users


def _named(header: Header) -> str:
    name = str(header["username"] or "")
    if not name.strip():
        raise Refused(Answer.INVALID_PARAMETER, "The username is blank")
    return name


def _only_super(users: Users, request: Command, words: str, code: int = Answer.NO_PERMISSION) -> None:
    """Raises :class:`Refused` where whoever asks is no super user."""
    asking = users.find(request.fields.get(ACCESS_KEY, ""))
    if asking is None or asking.type != SUPER:
        raise Refused(code, f"The super user can only be {words} by super user")


def _kept(users: Users, user: User, policies: Policies | None = None) -> None:
    try:
        users.put(user, policies)
    except OSError as error:
        raise Refused(Answer.SYSTEM_ERROR, f"the users cannot be written: {error}") from error


def _done(request: Command, body: bytes = b"") -> Command:
    return answer_to(request, body=body, remark=NOT_SET)


def create_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3001: a user that there is not yet; the name is the header's."""
    name, users, told = _named(header), _users(broker), read_object(request.body)
    type_ = named(told.get("userType"), (SUPER, NORMAL)) or NORMAL
    if type_ == SUPER:
        _only_super(users, request, "create", Answer.SYSTEM_ERROR)
    password = told.get("password")
    if not isinstance(password, str) or not password.strip():
        raise Refused(Answer.NO_PERMISSION, "password can not be blank")
    if users.find(name) is not None:
        raise Refused(Answer.NO_PERMISSION, "The user is existed")
    status = named(told.get("userStatus"), (ENABLED, DISABLED)) or ENABLED
    _kept(users, User(name, password, type_, status), {})
    return _done(request)


def update_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3002: another password, type or status; what is not said stays."""
    name, users, told = _named(header), _users(broker), read_object(request.body)
    type_ = named(told.get("userType"), (SUPER, NORMAL))
    if type_ == SUPER:
        _only_super(users, request, "update", Answer.SYSTEM_ERROR)
    user = users.find(name)
    if user is None:
        raise Refused(Answer.NO_PERMISSION, "The user is not exist")
    if user.type == SUPER:
        _only_super(users, request, "update")
    password = told.get("password")
    status = named(told.get("userStatus"), (ENABLED, DISABLED))
    _kept(users, changed(user, password if isinstance(password, str) else "", type_, status))
    return _done(request)


def delete_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3003: a user goes, with his policies; one that is not there has gone."""
    users, name = _users(broker), str(header["username"] or "")
    if not name.strip():
        raise Refused(Answer.NO_PERMISSION, "username can not be blank")
    user = users.find(name)
    if user is not None and user.type == SUPER:
        _only_super(users, request, "update")
    try:
        users.delete(name)
    except OSError as error:
        raise Refused(Answer.SYSTEM_ERROR, f"the users cannot be written: {error}") from error
    return _done(request)


def get_user(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3004: a user with his password, as in RocketMQ; no body where there is none."""
    name = _named(header)
    user = _users(broker).find(name)
    return _done(request) if user is None else _done(request, write(user.record()))


def list_users(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3005: users whose names contain ``filter``; no body where there is none."""
    text = str(header["filter"] or "")
    found = [one.record() for one in _users(broker).all() if text in one.name]
    return _done(request, write(found) if found else b"")


# -- policies


def change_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3006, 3007: entries for the body's subject, or the header's where the body names none, in place of those that he
    has of the same resources.
    """
    users, told = _users(broker), read_object(request.body) if request.body else {}
    rows = told.get("policies")
    if not isinstance(rows, list) or not rows:
        raise Refused(Answer.SYSTEM_ERROR, "The body of acl is null")
    subject = told.get("subject")
    if not _is_subject(subject):
        subject = header["subject"]
    name = _subject(subject)
    more: dict[str, tuple[Entry, ...]] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise WrongRequest("policies is no list of policies")
        more = merged(more, {named(row.get("policyType"), (CUSTOM, DEFAULT)) or CUSTOM: _entries(row.get("entries"))})
    user = users.find(name)
    if user is None:
        raise Refused(Answer.NO_PERMISSION, f"The subject of {subject} is not exist.")
    _kept(users, user, merged(users.policies(name), more))
    return _done(request)


def _subject(subject: object, code: int = Answer.NO_PERMISSION) -> str:
    """The name of the user that a subject is. Raises :class:`Refused`."""
    if not _is_subject(subject):
        raise Refused(code, "The subject is null.")
    return str(subject).removeprefix(USER)


def _is_subject(subject: object) -> bool:
    return isinstance(subject, str) and subject.startswith(USER)


def _entries(rows: object) -> tuple[Entry, ...]:
    """Raises :class:`Refused`."""
    if not isinstance(rows, list) or not rows:
        raise Refused(Answer.NO_PERMISSION, "The policies is empty.")
    return tuple(_entry(one if isinstance(one, Mapping) else {}) for one in rows)


def _entry(row: Mapping[Any, Any]) -> Entry:
    resource, given = resource_of(row.get("resource")), _texts(row.get("actions"))
    if not isinstance(row.get("actions"), list):
        raise Refused(Answer.SYSTEM_ERROR, "the actions are no list")
    if not resource:
        raise Refused(Answer.NO_PERMISSION, "The resource is null.")
    actions = tuple(action for one in given if (action := named(one, ACTIONS)))
    if not actions:
        raise Refused(Answer.NO_PERMISSION, "The actions is empty.")
    if ANY in actions:
        raise Refused(Answer.NO_PERMISSION, "The actions can not be Any.")
    sources = _texts(row.get("sourceIps"))
    if not all(map(str.strip, sources)):
        raise Refused(Answer.NO_PERMISSION, "The source ip is empty.")
    if not all(map(is_source, sources)):
        raise Refused(Answer.NO_PERMISSION, "The source ip is invalid.")
    decision = named(row.get("decision"), (ALLOW, DENY))
    if not decision:
        raise Refused(Answer.NO_PERMISSION, "The decision is null or illegal.")
    return Entry(resource, actions, decision, sources)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def delete_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3008: a user's entry of a resource, or all his policies; what is no resource, or a type alone, deletes all of
    them, too, as in 5.3.3.
    """
    users, name = _users(broker), _subject(header["subject"])
    user, resource = users.find(name), str(header["resource"] or "")
    if user is None:
        raise Refused(Answer.NO_PERMISSION, "The subject is not exist.")
    before = users.policies(name)
    if not before:
        raise Refused(Answer.NO_PERMISSION, "The acl is not exist.")
    known = resource_of(resource)
    if not known:
        _kept(users, user, {})
        return _done(request)
    _kept(users, user, without(before, named(header["policyType"], (CUSTOM, DEFAULT)) or CUSTOM, known))
    return _done(request)


def get_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3009: the policies of a user; no body where he has none."""
    users = _users(broker)
    name = _subject(header["subject"], Answer.SYSTEM_ERROR)
    if users.find(name) is None:
        raise Refused(Answer.NO_PERMISSION, "The subject is not exist.")
    found = users.policies(name)
    return _done(request, write(_shown(name, found)) if found else b"")


def list_policies(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """3010: policies of users whose subject contains ``subjectFilter``, and of them entries whose resource contains
    ``resourceFilter``; no body where there is none.
    """
    users = _users(broker)
    subject, resource = str(header["subjectFilter"] or ""), str(header["resourceFilter"] or "")
    rows = []
    for user in users.all():
        found = {
            key: tuple(one for one in entries if resource in one.resource)
            for key, entries in users.policies(user.name).items()
        }
        found = {key: entries for key, entries in found.items() if entries}
        if found and subject in USER + user.name:
            rows.append(_shown(user.name, found))
    return _done(request, write(rows) if rows else b"")


def _shown(name: str, policies: Policies) -> dict[str, Any]:
    return {"policies": policy_records(policies), "subject": USER + name}


ANSWERS: dict[int, Processor] = {
    3001: create_user,
    3002: update_user,
    3003: delete_user,
    3004: get_user,
    3005: list_users,
    3006: change_policies,
    3007: change_policies,
    3008: delete_policies,
    3009: get_policies,
    3010: list_policies,
}
