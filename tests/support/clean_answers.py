"""Questions to a bad store, or to a path without one: each answer must be complete, or end in one clear line."""

from __future__ import annotations

import json

import agree

QUESTIONS = [
    ["info", "STORE"],
    ["units", "STORE"],
    ["units", "STORE", "--body", "--where", "body contains 'a' or keys contains 'k'"],
    ["queue", "STORE", "Orders", "0", "--resolve"],
    ["index", "STORE", "--entries"],
    ["trace", "STORE", "Orders", "K1"],
    ["get", "STORE", "Orders", "0", "0", "--tag", "TagA"],
    ["message", "STORE", "U00001"],
    ["offset", "STORE", "Orders", "0", "--time", "1700000000100"],
    ["where", "STORE", "U00001"],
    ["where", "STORE", "Orders/0/1"],
    ["positions", "STORE"],
    ["groups", "STORE"],
    ["space", "STORE"],
    ["space", "STORE", "--quick"],
    ["config", "STORE"],
    ["check", "STORE"],
    ["recover", "STORE", "--plan"],
    ["printMsg", "-s", "STORE", "-t", "Orders"],
    ["topicStatus", "-s", "STORE", "-t", "Orders"],
    ["consumerProgress", "-s", "STORE", "-g", "G"],
]


def status_and_error(path, question, *extra_arguments):
    """Return exit status and error line of an answer that must be complete, in JSON and as text."""
    arguments = [path if word == "STORE" else word for word in question]
    status, out, err = agree.command(*arguments, "--json", *extra_arguments)
    assert status in {0, 1, 2, 3}, arguments
    assert "Traceback" not in err
    assert err.count("\n") <= 1 or status < 2
    if status >= 2:
        assert err.startswith("storescope: ")
    for line in out.splitlines():
        assert "type" in json.loads(line)
    text_status, text, _ = agree.command(*arguments, *extra_arguments)
    assert text_status == status
    assert all(line.isprintable() for line in text.split("\n"))
    return status, err
