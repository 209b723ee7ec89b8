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

from engine.broker.json_bodies import as_objects, read_object, read_object_or_none
from engine.broker.plain_acl import Account, PlainAcl, read_acl
from engine.broker.users import DISABLED, SUPER, Users, deny_reason
from engine.errors import StoreError
from engine.releases import Release, rules_of
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.frame import Command
from engine.remoting.signing import ACCESS_KEY, is_signed
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX, TRACE_TOPIC

PUB, SUB = "Pub", "Sub"
_log = logging.getLogger(__name__)
_ADMIN = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.DELETE_ACL_CONFIG,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_TOPIC_IN_BROKER,
    }
)
"""Requests that an account of 4.9 needs ``admin`` for. RocketMQ does not check it for 50 to 54: there, any account can
make itself an administrator, and read every secret.
"""
_DENIED = (
    "org.apache.rocketmq.acl.common.AclException: {}, "
    "org.apache.rocketmq.acl.plain.PlainPermissionManager.{}(PlainPermissionManager.java:{})"
)
"""Refusals of 4.9: its words, and their place in the source of 4.9.7."""
_SENDS = frozenset({RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE})
_SENDS_CHECKED_BY_4_9 = _SENDS - {RequestCode.SEND_BATCH_MESSAGE}
_READS_CHECKED_BY_4_9 = frozenset(
    {RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE, RequestCode.UPDATE_CONSUMER_OFFSET}
)
_PULLS = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
_LOCKS = frozenset({RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ})
_OFFSETS = frozenset({RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET})
_GROUP_REQUESTS = frozenset({RequestCode.UNREGISTER_CLIENT, RequestCode.CONSUMER_SEND_MSG_BACK})
_SUB_ON_GROUP: dict[int, str] = {
    RequestCode.UNREGISTER_CLIENT: "consumerGroup",
    RequestCode.CONSUMER_SEND_MSG_BACK: "group",
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: "consumerGroup",
}


class RequiredPermission(NamedTuple):
    """A request needs one of ``actions`` on a topic, a group or a cluster (``kind``)."""

    kind: str
    name: str
    actions: tuple[str, ...]


_NEEDS_5: dict[int, tuple[tuple[str, ...], str]] = {
    RequestCode.QUERY_CONSUMER_OFFSET: (("Sub", "Get"), "topic consumerGroup"),
    RequestCode.UPDATE_CONSUMER_OFFSET: (("Sub", "Update"), "topic consumerGroup"),
    RequestCode.UPDATE_AND_CREATE_TOPIC: (("Create",), "topic"),
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: (("Create",), "topic"),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: (("Get",), "topic"),
    RequestCode.GET_MAX_OFFSET: (("Get",), "topic"),
    RequestCode.GET_MIN_OFFSET: (("Get",), "topic"),
    RequestCode.GET_EARLIEST_MSG_STORETIME: (("Get",), "topic"),
    RequestCode.VIEW_MESSAGE_BY_ID: (("Get",), "topic"),
    RequestCode.GET_TOPIC_STATS_INFO: (("Get",), "topic"),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: (("Get",), "consumerGroup"),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: (("Get",), ""),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: (("Delete",), "groupName"),
    RequestCode.GET_CONSUME_STATS: (("Get",), "consumerGroup topic"),
    RequestCode.DELETE_TOPIC_IN_BROKER: (("Delete",), "topic"),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: (("Update",), "group topic"),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: (("Get",), "topic group"),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: (("Get",), "topic"),
    RequestCode.GET_CONSUMER_RUNNING_INFO: (("Get",), "consumerGroup"),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: (("Sub",), "consumerGroup topic"),
    RequestCode.VIEW_BROKER_STATS_DATA: (("Get",), ""),
    RequestCode.QUERY_CONSUME_QUEUE: (("Get",), "topic consumerGroup"),
    RequestCode.GET_ALL_PRODUCER_INFO: (("Get",), ""),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: (("Get",), "group"),
    RequestCode.GET_TOPIC_CONFIG: (("Get",), "topic"),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: (("Get",), "group"),
    **dict.fromkeys(
        (
            RequestCode.AUTH_CREATE_USER,
            RequestCode.AUTH_UPDATE_USER,
            RequestCode.AUTH_DELETE_USER,
            RequestCode.AUTH_CREATE_ACL,
            RequestCode.AUTH_UPDATE_ACL,
            RequestCode.AUTH_DELETE_ACL,
        ),
        (("Update",), ""),
    ),
    **dict.fromkeys(
        (RequestCode.AUTH_GET_USER, RequestCode.AUTH_LIST_USER, RequestCode.AUTH_GET_ACL, RequestCode.AUTH_LIST_ACL),
        (("Get",), ""),
    ),
    RequestCode.RECALL_MESSAGE: (("Pub",), "topic"),
    RequestCode.POP_MESSAGE: (("Sub",), "consumerGroup topic"),
    RequestCode.POP_LITE_MESSAGE: (("Sub",), "consumerGroup topic"),
    RequestCode.GET_BROKER_LITE_INFO: (("Get",), ""),
    RequestCode.GET_PARENT_TOPIC_INFO: (("Get",), "topic"),
    RequestCode.GET_LITE_TOPIC_INFO: (("Get",), ""),
    RequestCode.GET_LITE_CLIENT_INFO: (("Get",), "group"),
    RequestCode.GET_LITE_GROUP_INFO: (("Get",), "group"),
    RequestCode.TRIGGER_LITE_DISPATCH: (("Update",), "group"),
    RequestCode.ACK_MESSAGE: (("Sub",), "consumerGroup topic"),
    RequestCode.PEEK_MESSAGE: (("Sub",), "topic consumerGroup"),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: (("Sub",), "consumerGroup topic"),
    RequestCode.NOTIFICATION: (("Sub",), "consumerGroup topic"),
    RequestCode.POLLING_INFO: (("Get",), "consumerGroup topic"),
}
"""Permissions of 5.x: actions of which one is needed, and the header fields that name topics and groups; none: the
cluster. Other requests need only a signature, or are in :func:`_needs_5`.
"""

_NAMED_IN_BODY: dict[int, tuple[str, str]] = {
    RequestCode.DELETE_TOPIC_IN_BROKER_LIST: ("topicList", "Topic"),
    RequestCode.DELETE_SUBSCRIPTIONGROUP_LIST: ("groupNameList", "Group"),
}
"""Requests that delete what their body lists."""


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
        self.users = None if rules_of(release).major < 5 else Users(path.with_name(f"{path.stem}.users.json"))
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
            _log.warning("%s cannot be used, the accounts read before stay in force: %s", self.path, error)
            return
        if self.users is not None:
            self.users.take_over(self.acl)

    def check(self, request: Command, peer: str) -> None:
        """Check a request. Raises :class:`Refused` in the words of the release. ``peer`` is ``ip:port``."""
        address = peer.rpartition(":")[0].strip("[]")
        if rules_of(self._release).major < 5:
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
            is_group = resource.startswith(RETRY_PREFIX)
            default = account.default_group if is_group else account.default_topic
            if action.upper() not in _allowed(owned.get(resource, default)):
                named = f"group:{resource.removeprefix(RETRY_PREFIX)}" if is_group else f"topic:{resource}"
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
    return Refused(ResponseCode.SYSTEM_ERROR, _DENIED.format(words, method, line))


def _forbidden(words: str) -> Refused:
    return Refused(ResponseCode.NO_PERMISSION, words)


def _allowed(permission: str | None) -> frozenset[str]:
    """Return what a permission of 4.9 allows; an absent or unknown permission allows nothing."""
    actions = {"PUB": "PUB", "SUB": "SUB", "PUB|SUB": "PUB SUB", "SUB|PUB": "PUB SUB"}.get(permission or "", "")
    return frozenset(actions.split())


def _owned_4_9(account: Account) -> dict[str, str]:
    """Return permissions by resource; groups are listed as their retry topics."""
    return {**dict(account.topics), **{RETRY_PREFIX + name: permission for name, permission in account.groups}}


def _needs_4_9(request: Command) -> Iterator[tuple[str, str]]:
    """Yield the permissions that a request needs on resources; groups are listed as their retry topics."""
    fields, code = request.fields, request.code
    if code in _SENDS_CHECKED_BY_4_9:
        topic_field, group_field = ("topic", "group") if code == RequestCode.SEND_MESSAGE else ("b", "a")
        topic, group = fields.get(topic_field), fields.get(group_field)
        if topic is not None and not topic.startswith(RETRY_PREFIX):
            yield topic, PUB
        elif group is not None:
            yield RETRY_PREFIX + group, SUB
    elif code in _READS_CHECKED_BY_4_9:
        if "topic" in fields:
            yield fields["topic"], SUB
        if code != RequestCode.QUERY_MESSAGE and "consumerGroup" in fields:
            yield RETRY_PREFIX + fields["consumerGroup"], SUB
    elif code in _SUB_ON_GROUP:
        if _SUB_ON_GROUP[code] in fields:
            yield RETRY_PREFIX + fields[_SUB_ON_GROUP[code]], SUB
    elif code == RequestCode.HEART_BEAT:
        for group, topics in _consumers(request.body):
            yield RETRY_PREFIX + group, SUB
            yield from ((topic, SUB) for topic in topics)


def _needs_5(request: Command, cluster: str) -> Iterator[RequiredPermission]:
    fields, code = request.fields, request.code
    if code in _SENDS:
        topic_field, group_field = ("topic", "group") if code == RequestCode.SEND_MESSAGE else ("b", "a")
        topic, group = fields.get(topic_field, ""), fields.get(group_field, "")
        yield (
            _group(group or topic, SUB)
            if topic.startswith(RETRY_PREFIX)
            else RequiredPermission("Topic", topic, (PUB,))
        )
    elif code in _PULLS:
        yield from _topic_unless_retry(fields.get("topic", ""), SUB)
        yield _group(fields.get("consumerGroup", ""), SUB)
    elif code == RequestCode.QUERY_MESSAGE:
        yield RequiredPermission("Topic", fields.get("topic", ""), (SUB, "Get"))
    elif code == RequestCode.HEART_BEAT:
        for group, topics in _consumers(request.body):
            yield _group(group, SUB)
            for topic in topics:
                yield from _topic_unless_retry(topic, SUB)
    elif code in _GROUP_REQUESTS:
        if name := fields.get(_SUB_ON_GROUP[code], "").strip():
            yield _group(name, SUB)
    elif code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
        yield _group(fields.get("consumerGroup", ""), SUB, "Get")
    elif code == RequestCode.END_TRANSACTION:
        if fields.get("topic", "").strip():
            yield RequiredPermission("Topic", fields["topic"], (PUB,))
    elif code in _LOCKS:
        yield from _locked(read_object(request.body))
    elif code == RequestCode.LITE_SUBSCRIPTION_CTL:
        rows = read_object_or_none(request.body).get("subscriptionSet")
        for row in as_objects(rows, "subscriptionSet") if rows else ():
            yield _group(str(row.get("group") or ""), SUB)
            yield RequiredPermission("Topic", str(row.get("topic") or ""), (SUB,))
    elif code in _NAMED_IN_BODY:
        member, kind = _NAMED_IN_BODY[code]
        for name in _listed(request.body, member):
            yield RequiredPermission("Topic", name, ("Delete",)) if kind == "Topic" else _group(name, "Delete")
    elif code in _NEEDS_5:
        yield from _by_fields(request, cluster)


def _listed(body: bytes | memoryview, member: str) -> list[str]:
    names = read_object_or_none(body).get(member)
    return [str(name) for name in names] if isinstance(names, list) else [str(names)] if names else []


def _by_fields(request: Command, cluster: str) -> Iterator[RequiredPermission]:
    actions, names = _NEEDS_5[request.code]
    if not names:
        yield RequiredPermission("Cluster", cluster, actions)
    for field in names.split():
        value = request.fields.get(field)
        if value is None:
            continue
        if field == "topic" and not value.startswith(RETRY_PREFIX):
            yield RequiredPermission("Topic", value, actions)
        elif field != "topic" or request.code not in _OFFSETS:  # an offset of a retry topic is the group's alone
            yield _group(value, *actions)


def _locked(body: Mapping[str, Any]) -> Iterator[RequiredPermission]:
    yield _group(str(body.get("consumerGroup") or ""), SUB)
    for queue in body.get("mqSet") or ():
        if not isinstance(queue, Mapping):
            raise WrongRequest("mqSet is no list of queues")
        yield from _topic_unless_retry(str(queue.get("topic") or ""), SUB)


def _topic_unless_retry(topic: str, *actions: str) -> Iterator[RequiredPermission]:
    if not topic.startswith(RETRY_PREFIX):
        yield RequiredPermission("Topic", topic, actions)


def _group(name: str, *actions: str) -> RequiredPermission:
    """A group, by its own name or by that of its retry topic or dead letters."""
    return RequiredPermission("Group", name.removeprefix(RETRY_PREFIX).removeprefix(DLQ_PREFIX), actions)
