"""Who is connected: groups with their members and what they subscribe to; whoever goes leaves nothing."""

from __future__ import annotations

import pytest

from engine.broker.clients import Clients, ConsumerGroup, Member
from engine.remoting.subscriptions import Subscription


class Link(str):
    """A connection with a name, of which everything that was written has been read."""

    __slots__ = ()
    is_congested = False


def member(name, seen=0):
    return Member(name, "JAVA", 479, seen)


def wanted(*topics, version=1):
    return ConsumerGroup("g", subscriptions={topic: Subscription(topic, version=version) for topic in topics})


@pytest.fixture
def clients():
    return Clients()


def test_members_are_told_when_somebody_new_comes_or_subscribes_to_something_else(clients):
    assert clients.add_consumer(wanted("T"), "link-1", member("one"))
    assert not clients.add_consumer(wanted("T"), "link-1", member("one"))
    assert clients.add_consumer(wanted("T"), "link-2", member("two"))
    assert clients.add_consumer(wanted("T", "U"), "link-2", member("two"))
    assert clients.consumers["g"].client_ids == ["one", "two"]
    assert clients.subscription("g", "U").topic == "U"
    assert clients.add_consumer(wanted("T"), "link-2", member("two"))
    assert clients.subscription("g", "U") is None
    assert clients.subscription("h", "T") is None


def test_an_older_subscription_does_not_take_a_newer_one_s_place(clients):
    clients.add_consumer(wanted("T", version=5), "link-1", member("one"))
    clients.add_consumer(wanted("T", version=4), "link-2", member("two"))
    assert clients.subscription("g", "T").version == 5


def test_a_connection_that_ends_leaves_its_groups(clients):
    gone = []
    clients.emptied = gone.append
    clients.add_consumer(wanted("T"), "link-1", member("one"))
    clients.add_consumer(wanted("T"), "link-2", member("two"))
    clients.add_producer("p", Link("link-1"), member("one"))
    assert (clients.producer_of("p"), clients.producer("one")) == ("link-1", "link-1")
    assert [group.name for group in clients.disconnected("link-1")] == ["g"]
    assert (clients.producer_of("p"), clients.producers) == (None, {})
    assert clients.disconnected("link-2") == []
    assert (gone, clients.consumers) == (["g"], {})


def test_who_was_not_heard_for_long_is_silent_unless_a_client_of_the_same_link_was(clients):
    clients.add_producer("p", Link("link-1"), member("one", seen=10))
    clients.add_consumer(wanted("T"), "link-1", member("one", seen=90))
    clients.add_producer("p", Link("link-2"), member("two", seen=20))
    assert clients.silent(50) == ["link-2"]
