"""From which parts of a store a rule concludes: where one of them could not be read, the rule does not speak.

A rule about bytes that were seen needs none. What is missing, ends too early or points to nothing is a conclusion from
all of a part: a file of it that could not be read may hold just that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Part = Literal["log", "queue", "index", "checkpoint", "config", "state", "timer", "other"]

_LOG: frozenset[Part] = frozenset({"log"})
_QUEUE: frozenset[Part] = frozenset({"queue"})
_BOTH: frozenset[Part] = _LOG | _QUEUE
_SEEN: frozenset[Part] = frozenset()

NEEDS: dict[str, frozenset[Part]] = {
    "CL01": _SEEN,
    "CL02": _SEEN,
    "CL03": _SEEN,
    "CL04": _SEEN,
    "CL05": _SEEN,
    "CL06": _BOTH,
    "CL07": _LOG,
    "CL08": _SEEN,
    "CL09": _BOTH,
    "CL10": _SEEN,
    "CL11": _LOG,
    "CL12": _LOG,
    "CL13": _SEEN,
    "CQ01": _QUEUE,
    "CQ03": _BOTH,
    "CQ04": _BOTH,
    "CQ05": _BOTH,
    "CQ06": _QUEUE,
    "CQ08": _QUEUE | {"config"},
    "CQ09": _SEEN,
    "CQ10": _BOTH | {"state"},
    "CQ11": _QUEUE | {"config"},
    "CQ12": _SEEN,
    "CQ13": _LOG,
    "CQ15": _QUEUE,
    "CQ14": _BOTH | {"config"},
    "IX01": frozenset({"index"}),
    "IX02": _SEEN,
    "IX03": _SEEN,
    "IX04": frozenset({"index", "checkpoint"}),
    "IX05": _LOG | {"index"},
    "IX06": _LOG,
    "IX07": _LOG,
    "IX08": frozenset({"index"}),
    "IX09": frozenset({"index"}),
    "IX10": _LOG | {"index"},
    "CK01": frozenset({"checkpoint"}),
    "CK02": _LOG,
    "CK03": _LOG,
    "CK04": _LOG,
    "CK05": _LOG | {"checkpoint"},
    "CF01": frozenset({"config"}),
    "CF02": _BOTH,
    "CF03": frozenset({"config"}),
    "CF04": _SEEN,
    "CF05": _BOTH | {"index"},
    "CF06": _BOTH,
    "CF07": _BOTH | {"config"},
    "CF08": _BOTH | {"config"},
    "CF09": _BOTH | {"config"},
    "TM01": _BOTH | {"config", "timer"},
    "TM02": _LOG | {"config", "timer"},
    "TM03": _BOTH | {"config", "timer"},
    "TM04": frozenset({"timer"}),
    "RP01": _BOTH | {"config", "state", "checkpoint"},
    "RP02": _BOTH,
    "AB01": frozenset({"state"}),
    "DK01": _SEEN,
    "DK03": _SEEN,
    "DK02": _SEEN,
}
"""Rule → parts that all have to be read before it may speak."""

_PARTS: dict[str, Part] = {
    "commitlog": "log",
    "consumequeue": "queue",
    "batchconsumequeue": "queue",
    "consumequeue_ext": "queue",
    "index": "index",
    "config": "config",
    "checkpoint": "checkpoint",
    "abort": "state",
    "abort.bak": "state",
    "lock": "state",
    "timerwheel": "timer",
    "timerlog": "timer",
}
ALL: frozenset[Part] = frozenset({*_PARTS.values(), "other"})


def part_of(file: str, root: str, log_folders: Iterable[str]) -> frozenset[Part]:
    """The part that ``file`` belongs to by its place; every part for the store's own folder and what is above it."""
    if any(file == folder or file.startswith(f"{folder}/") for folder in log_folders):
        return _LOG
    if not file.startswith(f"{root}/"):
        return ALL
    name = file[len(root) + 1 :].split("/", 1)[0]
    return frozenset({_PARTS.get(name, "other")})


def may_speak(rule: str, unread: frozenset[Part]) -> bool:
    """Whether all that the rule concludes from was read; a rule that is not listed needs everything."""
    return not (NEEDS.get(rule, ALL) & unread)
