"""Users and policies of 5.x as administrators make, change, show and delete them: 3001 to 3010
(docs/protocol/access.md#users).

Java: ``AdminBrokerProcessor``, ``AuthenticationMetadataManagerImpl``, ``AuthorizationMetadataManagerImpl``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
    is_source,
    match_name,
    merge_policies,
    policy_records,
    remove_entry,
    resource_of,
    with_changes,
)
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.signing import ACCESS_KEY

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


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
    return tuple(_entry(row if isinstance(row, Mapping) else {}) for row in rows)


def _entry(row: Mapping[Any, Any]) -> Entry:
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


ANSWERS: dict[int, Processor] = {
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
