"""Random cases of allocation in the form of Java's program, and the answers of our strategies."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from engine.client import rebalance
from engine.client.routes import MessageQueue, java_order, queue_order

NAMES = ("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH")
_ROOMS = ("hz", "sh", "bj", "Zürich", "上海")


def cases(seed: int, count: int) -> Iterator[str]:
    """Yield lines of: strategy, client id, ids, queues, argument. Some are wrong on purpose: an id that is not listed,
    ids and queues that are listed twice or in no order, empty lists, no places on the ring.
    """
    chance = random.Random(seed)
    for _ in range(count):
        name = chance.choice(NAMES)
        if chance.random() < 0.25:
            name = "MACHINE_ROOM_NEARBY-" + chance.choice(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
        in_rooms = name.startswith("MACHINE_ROOM") or chance.random() < 0.2
        ids = {_id(chance, in_rooms) for _ in range(chance.choice([1, 2, 3, 4, 7, 12, 30]))}
        listed = sorted(ids, key=java_order)
        client_id = chance.choice(listed) if chance.random() < 0.95 else "hz@nobody"
        queues_of_topic = _queues(chance, in_rooms)
        if chance.random() < 0.06:
            listed = sorted(listed + chance.choices(listed, k=chance.randint(1, 3)), key=java_order)
        if chance.random() < 0.06:
            queues_of_topic = sorted(
                queues_of_topic + chance.choices(queues_of_topic, k=chance.randint(1, 3)), key=queue_order
            )
        if chance.random() < 0.03:
            chance.shuffle(listed)
            chance.shuffle(queues_of_topic)
        queues = ",".join(map(_word, queues_of_topic))
        argument = {
            "CONFIG": ",".join(map(_word, _queues(chance, in_rooms))),
            "MACHINE_ROOM": ",".join(chance.sample(_ROOMS, chance.randint(1, 4))),
        }.get(name, str(chance.choice([1, 3, 10, 10, 10, 40, 10, 3, 1, 10, 10, -1 if chance.random() < 0.1 else 0])))
        if chance.random() < 0.02:
            client_id, listed, queues = chance.choice(
                [("", listed, queues), (client_id, [], queues), (client_id, listed, ""), ("", [], "")]
            )
        yield "\t".join([name, client_id, ",".join(listed), queues, argument])


def _id(chance: random.Random, in_room: bool) -> str:
    room = f"{chance.choice(_ROOMS)}@" if in_room and chance.random() < 0.999 else ""
    return (
        f"{room}10.0.{chance.randrange(4)}.{chance.randrange(256)}@{chance.randrange(30_000)}#{chance.getrandbits(48)}"
    )


def _queues(chance: random.Random, in_rooms: bool) -> list[MessageQueue]:
    topic = chance.choice(["Orders", "%RETRY%payers", "Zahlung_ü", "t-1"])
    results = []
    for number in range(chance.randint(1, 4)):
        broker = f"broker-{'abcd'[number]}"
        if in_rooms and chance.random() < 0.999:
            broker = f"{chance.choice(_ROOMS)}@{broker}{'@' * (chance.random() < 0.05)}"
        results += [MessageQueue(topic, broker, item) for item in range(chance.choice([1, 2, 4, 8, 16]))]
    return sorted(results, key=queue_order)


def _word(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker}/{queue.queue_id}"


def _read(joined: str) -> list[MessageQueue]:
    parts = (word.split("/") for word in joined.split(",") if word)
    return [MessageQueue(topic, broker, int(number)) for topic, broker, number in parts]


def allocation_line(line: str) -> str:
    """Return the result of our strategy, as the program writes it."""
    name, client_id, ids, queues, argument = line.split("\t")
    try:
        allocate = _strategy(name, argument).allocate(client_id, _read(queues), ids.split(",") if ids else [])
    except ValueError as error:
        return f"! {error}"
    return ",".join(map(_word, allocate))


def _strategy(name: str, argument: str) -> Any:
    sample = {
        "AVG": rebalance.Averagely,
        "AVG_BY_CIRCLE": rebalance.AveragelyByCircle,
        "CONFIG": lambda: rebalance.ByConfig(tuple(_read(argument))),
        "MACHINE_ROOM": lambda: rebalance.ByMachineRoom(argument.split(",")),
        "CONSISTENT_HASH": lambda: rebalance.ConsistentHash(int(argument)),
    }
    if name in sample:
        nearby = sample[name]()
    else:
        inner = _strategy(name.removeprefix("MACHINE_ROOM_NEARBY-"), argument)
        nearby = rebalance.MachineRoomNearby(inner, lambda queue: _room(queue.broker), _room)
    assert nearby.name == name
    return nearby


def _room(name: str) -> str:
    return name.partition("@")[0] if "@" in name else ""
