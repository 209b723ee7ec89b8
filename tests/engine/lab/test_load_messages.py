"""The messages of a load, made quickly: topics, sizes and places in a text are laid out in tables beforehand."""

from __future__ import annotations

import json
from collections import Counter

from engine.lab.load_messages import MessageMaker
from engine.lab.load_settings import LoadSettings

# Messages of a load.


def test_messages_are_what_the_settings_say() -> None:
    settings = LoadSettings(body_size=100, body_spread=50, topics=3, zipf=True, keys=7, seed=4)
    made = MessageMaker(settings, 0).many(4000)
    sizes = [len(message.body) for message in made]
    assert (min(sizes) >= 50, max(sizes) <= 150, 95 < sum(sizes) / 4000 < 105) == (True, True, True)
    topics = Counter(message.topic for message in made)
    assert topics["Lab-1"] > topics["Lab-2"] > topics["Lab-3"] > 0
    texts = [message.properties_raw or b"" for message in made]
    assert len({text.split(b"KEYS\x01")[1].split(b"\x02")[0] for text in texts}) == 7
    assert len({text.split(b"\x02")[0] for text in texts}) == 4000
    for body in (
        message.body
        for size in (0, 1, 7, 60, 61, 200, 5000)
        for message in MessageMaker(LoadSettings(body_size=size), 0).many(50)
    ):
        assert not body or json.loads(body), "bodies are whole"
    again = MessageMaker(settings, 0).many(4000)
    assert [message.body for message in again] == [message.body for message in made]
    assert [message.body for message in MessageMaker(settings, 1).many(50)] != [message.body for message in made[:50]]
    assert all(b"KEYS" not in (message.properties_raw or b"") for message in MessageMaker(LoadSettings(), 0).many(9))
