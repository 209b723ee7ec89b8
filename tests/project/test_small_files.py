"""A small module that one other imports stands in that one, unless there is a reason why it stands alone.

A file costs whoever reads the project a name, a place and an import; below :data:`SMALL` lines that is more than it
saves. What is no reason: that the caller is long already (a sibling of the same subject may have it), or that it is
tested by itself (a test may ask any function of a file).
"""

from __future__ import annotations

from import_graph import graph, modules

SMALL = 80
_COMMAND = "a command of the terminal a module: `engine/cli/main.py` loads it by its name, when it is asked for"
_PROCESSOR = (
    "a processor a module: `engine/broker/processors.py` is the table of them, by the numbers of their requests"
)
_TWIN = "compiled code is loaded late, and where numba is not there, not at all"
REASONS = {
    "engine.broker.admin_clients": _PROCESSOR,
    "engine.broker.locks": _PROCESSOR,
    "engine.broker.offsets": _PROCESSOR,
    "engine.broker.op_messages": "a state of a broker of its own: transactions that are settled, not yet told",
    "engine.broker.resets": "a state of a broker of its own: groups whose offsets were set by an administrator",
    "engine.broker.compiled_loading": _TWIN,
    "engine.cli.commands.check": _COMMAND,
    "engine.cli.commands.groups": _COMMAND,
    "engine.cli.commands.queue": _COMMAND,
    "engine.codec.bloom": "a format: the bits of groups that ext units and `consumerFilter.json` carry",
    "viewer.space.work": "what the worker process does for the view: it imports no Qt",
}
"""Module → why it stands alone."""


def small_with_one_caller() -> set[str]:
    files = modules()
    edges = graph(files)
    return {
        name
        for name, path in files.items()
        if path.name not in {"__init__.py", "__main__.py"}
        and path.read_text("utf-8").count("\n") < SMALL
        and sum(name in edges[other] for other in edges) == 1
    }


def test_every_small_module_with_one_caller_has_a_reason() -> None:
    found = small_with_one_caller()
    assert sorted(found - REASONS.keys()) == [], "put it into its caller, or say in REASONS why it stands alone"
    assert sorted(REASONS.keys() - found) == [], "these need no reason any more"


def test_a_reason_says_something() -> None:
    assert [name for name, why in REASONS.items() if len(why.split()) < 5] == []
