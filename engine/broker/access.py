"""Access control: signatures, and permissions on topics and groups; refusals use the words of the release
(docs/protocol/access.md).

Accounts come from a ``plain_acl.yml`` for both releases: 5.x takes such a file over as users and policies
(``migrateAuthFromV1Enabled``, :mod:`engine.broker.users`), and then asks and answers in its own way; addresses that a
file lets pass unsigned count before 5.x only. Java: ``PlainAccessValidator``, ``PlainPermissionManager``;
``DefaultAuthorizationContextBuilder``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from engine.broker.json_bodies import read_object
from engine.broker.plain_acl import Account, PlainAcl, read_acl
from engine.broker.topics import DEAD_LETTERS, RETRY
from engine.broker.users import DISABLED, SUPER, Users, deny_reason
from engine.errors import StoreError
from engine.releases import Release, of
from engine.remoting.codes import Answer, Refused, WrongRequest
from engine.remoting.frame import Command
from engine.remoting.signing import ACCESS_KEY, is_signed

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
PUB, SUB = "Pub", "Sub"
_log = logging.getLogger(__name__)
_ADMIN = frozenset({17, 25, 50, 51, 53, 54, 200, 207, 215})
"""Requests that an account of 4.9 needs ``admin`` for. RocketMQ does not check it for 50 to 54: there, any account can
make itself an administrator, and read every secret.
"""
_DENIED = (
    "org.apache.rocketmq.acl.common.AclException: {}, "
    "org.apache.rocketmq.acl.plain.PlainPermissionManager.{}(PlainPermissionManager.java:{})"
)
"""Refusals of 4.9: its words, and their place in the source of 4.9.7."""
_SUB_ON_GROUP = {35: "consumerGroup", 36: "group", 38: "consumerGroup"}


class Need(NamedTuple):
    """A request needs one of ``actions`` on a topic, a group or a cluster (``kind``)."""

    kind: str
    name: str
    actions: tuple[str, ...]


_NEEDS_5: dict[int, tuple[tuple[str, ...], str]] = {
    14: (("Sub", "Get"), "topic consumerGroup"),
    15: (("Sub", "Update"), "topic consumerGroup"),
    17: (("Create",), "topic"),
    29: (("Get",), "topic"),
    30: (("Get",), "topic"),
    31: (("Get",), "topic"),
    32: (("Get",), "topic"),
    33: (("Get",), "topic"),
    202: (("Get",), "topic"),
    203: (("Get",), "consumerGroup"),
    204: (("Get",), ""),
    207: (("Delete",), "groupName"),
    208: (("Get",), "consumerGroup topic"),
    215: (("Delete",), "topic"),
    222: (("Update",), "group topic"),
    223: (("Get",), "topic group"),
    300: (("Get",), "topic"),
    307: (("Get",), "consumerGroup"),
    309: (("Sub",), "consumerGroup topic"),
    315: (("Get",), ""),
    321: (("Get",), "topic consumerGroup"),
    328: (("Get",), ""),
    343: (("Get",), "group"),
    351: (("Get",), "topic"),
    352: (("Get",), "group"),
    **dict.fromkeys((3001, 3002, 3003, 3006, 3007, 3008), (("Update",), "")),
    **dict.fromkeys((3004, 3005, 3009, 3010), (("Get",), "")),
    370: (("Pub",), "topic"),
    200050: (("Sub",), "consumerGroup topic"),
    200051: (("Sub",), "consumerGroup topic"),
    200052: (("Sub",), "topic consumerGroup"),
    200053: (("Sub",), "consumerGroup topic"),
    200054: (("Sub",), "consumerGroup topic"),
    200055: (("Get",), "consumerGroup topic"),
}
"""Permissions of 5.x: actions of which one is needed, and the header fields that name topics and groups; none: the
cluster. Other requests need only a signature, or are in :func:`_needs_5`.
"""


def _consumers(body: bytes | memoryview) -> Iterator[tuple[str, list[str]]]:
    """Yield the groups of a heartbeat, with the topics that they subscribe to."""
    for consumer in read_object(body).get("consumerDataSet") or ():
        if isinstance(consumer, Mapping):
            rows = consumer.get("subscriptionDataSet") or ()
            yield (
                str(consumer.get("groupName") or ""),
                [str(row.get("topic")) for row in rows if isinstance(row, Mapping)],
            )


class Access:
    """The accounts of a file. :meth:`check` lets a request pass or refuses it; :meth:`step` reads the file again.

    ``users`` are those of 5.x, which requests change; what they changed stands beside the file, in ``NAME.users.json``.
    Raises :class:`CannotRead`, :class:`UsageError`.
    """

    def __init__(self, path: Path, release: Release, cluster: str) -> None:
        self.path = path
        self._release = release
        self._cluster = cluster
        self._stamp = self._stamped()
        self.acl: PlainAcl = read_acl(path)
        self.users = None if of(release).major < 5 else Users(path.with_name(f"{path.stem}.users.json"))
        if self.users is not None:
            self.users.take_over(self.acl)

    def _stamped(self) -> tuple[int, int]:
        try:
            stat = self.path.stat()
        except OSError:
            return 0, 0
        return stat.st_mtime_ns, stat.st_size

    def step(self) -> None:
        """Read the file again if it has changed; if it cannot be read, the accounts stay as they are."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.acl = read_acl(self.path)
        except StoreError as error:
            _log.warning("%s: what it said before holds on: %s", self.path, error)
            return
        if self.users is not None:
            self.users.take_over(self.acl)

    def check(self, request: Command, peer: str) -> None:
        """Check a request. Raises :class:`Refused` in the words of the release. ``peer`` is ``ip:port``."""
        address = peer.rpartition(":")[0].strip("[]")
        if of(self._release).major < 5:
            if not self.acl.is_white(address):
                self._check_4_9(request, address)
        elif self.users is not None:
            self._check_5(self.users, request, address)

    # -- 4.9

    def _check_4_9(self, request: Command, address: str) -> None:
        key = request.fields.get(ACCESS_KEY)
        if key is None:
            raise _denied("No accessKey is configured", "validate", 663)
        account = self.acl.accounts.get(key)
        if account is None:
            raise _denied(f"No acl config for {key}", "validate", 667)
        if account.is_white(address):
            return
        if not is_signed(request, account.secret_key):
            raise _denied(f"Check signature failed for accessKey={key}", "validate", 683)
        needs = dict(_needs_4_9(request))
        if needs.get(TRACE_TOPIC) == PUB:
            return
        if request.code in _ADMIN and not account.admin:
            words = f"Need admin permission for request code={request.code}, but accessKey={key} is not"
            raise _denied(words, "checkPerm", 580)
        if account.admin and not account.topics and not account.groups:
            return
        owned = _owned_4_9(account)
        for resource, action in needs.items():
            is_group = resource.startswith(RETRY)
            default = account.default_group if is_group else account.default_topic
            if action.upper() not in _allowed(owned.get(resource, default)):
                named = f"group:{resource.removeprefix(RETRY)}" if is_group else f"topic:{resource}"
                raise _denied(f"No default permission for {named}", "checkPerm", 610 if resource in owned else 605)

    # -- 5.x

    def _check_5(self, users: Users, request: Command, address: str) -> None:
        name = request.fields.get(ACCESS_KEY)
        if not name:
            raise _forbidden("username cannot be null.")
        user = users.find(name)
        if user is None:
            raise _forbidden(f"User:{name} is not found.")
        if user.status == DISABLED:
            raise _forbidden(f"User:{name} is disabled.")
        if not is_signed(request, user.password):
            raise _forbidden("check signature failed.")
        if user.type == SUPER:
            return
        policies = users.policies(name)
        for need in _needs_5(request, self._cluster):
            decision = deny_reason(policies, need.kind, need.name, need.actions, address)
            if decision != "":
                words = f"User:{name} has no permission to access {need.kind}:{need.name} from {address}, {decision}"
                raise _forbidden(words)


def _denied(words: str, method: str, line: int) -> Refused:
    return Refused(Answer.SYSTEM_ERROR, _DENIED.format(words, method, line))


def _forbidden(words: str) -> Refused:
    return Refused(Answer.NO_PERMISSION, words)


def _allowed(permission: str | None) -> frozenset[str]:
    """Return what a permission of 4.9 allows; an absent or unknown permission allows nothing."""
    actions = {"PUB": "PUB", "SUB": "SUB", "PUB|SUB": "PUB SUB", "SUB|PUB": "PUB SUB"}.get(permission or "", "")
    return frozenset(actions.split())


def _owned_4_9(account: Account) -> dict[str, str]:
    """Return permissions by resource; groups are listed as their retry topics."""
    return {**dict(account.topics), **{RETRY + name: permission for name, permission in account.groups}}


def _needs_4_9(request: Command) -> Iterator[tuple[str, str]]:
    """Yield the permissions that a request needs on resources; groups are listed as their retry topics."""
    fields, code = request.fields, request.code
    if code in {10, 310}:
        topic, group = fields.get("topic" if code == 10 else "b"), fields.get("group" if code == 10 else "a")
        if topic is not None and not topic.startswith(RETRY):
            yield topic, PUB
        elif group is not None:
            yield RETRY + group, SUB
    elif code in {11, 12, 15}:
        if "topic" in fields:
            yield fields["topic"], SUB
        if code != 12 and "consumerGroup" in fields:
            yield RETRY + fields["consumerGroup"], SUB
    elif code in _SUB_ON_GROUP:
        if _SUB_ON_GROUP[code] in fields:
            yield RETRY + fields[_SUB_ON_GROUP[code]], SUB
    elif code == 34:
        for group, topics in _consumers(request.body):
            yield RETRY + group, SUB
            yield from ((topic, SUB) for topic in topics)


def _needs_5(request: Command, cluster: str) -> Iterator[Need]:
    fields, code = request.fields, request.code
    if code in {10, 310, 320}:
        topic, group = fields.get("topic" if code == 10 else "b", ""), fields.get("group" if code == 10 else "a", "")
        yield _group(group or topic, SUB) if topic.startswith(RETRY) else Need("Topic", topic, (PUB,))
    elif code in {11, 361}:
        yield from _topic_unless_retry(fields.get("topic", ""), SUB)
        yield _group(fields.get("consumerGroup", ""), SUB)
    elif code == 12:
        yield Need("Topic", fields.get("topic", ""), (SUB, "Get"))
    elif code == 34:
        for group, topics in _consumers(request.body):
            yield _group(group, SUB)
            for topic in topics:
                yield from _topic_unless_retry(topic, SUB)
    elif code in {35, 36}:
        if name := fields.get(_SUB_ON_GROUP[code], "").strip():
            yield _group(name, SUB)
    elif code == 38:
        yield _group(fields.get("consumerGroup", ""), SUB, "Get")
    elif code == 37:
        if fields.get("topic", "").strip():
            yield Need("Topic", fields["topic"], (PUB,))
    elif code in {41, 42}:
        yield from _locked(read_object(request.body))
    elif code in _NEEDS_5:
        yield from _by_fields(request, cluster)


def _by_fields(request: Command, cluster: str) -> Iterator[Need]:
    actions, names = _NEEDS_5[request.code]
    if not names:
        yield Need("Cluster", cluster, actions)
    for field in names.split():
        value = request.fields.get(field)
        if value is None:
            continue
        if field == "topic" and not value.startswith(RETRY):
            yield Need("Topic", value, actions)
        elif field != "topic" or request.code not in {14, 15}:  # an offset of a retry topic is the group's alone
            yield _group(value, *actions)


def _locked(body: Mapping[str, Any]) -> Iterator[Need]:
    yield _group(str(body.get("consumerGroup") or ""), SUB)
    for queue in body.get("mqSet") or ():
        if not isinstance(queue, Mapping):
            raise WrongRequest("mqSet is no list of queues")
        yield from _topic_unless_retry(str(queue.get("topic") or ""), SUB)


def _topic_unless_retry(topic: str, *actions: str) -> Iterator[Need]:
    if not topic.startswith(RETRY):
        yield Need("Topic", topic, actions)


def _group(name: str, *actions: str) -> Need:
    """A group, by its own name or by that of its retry topic or dead letters."""
    return Need("Group", name.removeprefix(RETRY).removeprefix(DEAD_LETTERS), actions)
