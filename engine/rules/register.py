"""A register of rules: each is put in where it is made, and is known by its id from then on."""

from __future__ import annotations

from collections.abc import Mapping

from engine.rules.findings import STORE, Group, Kind, Rule, Severity
from engine.rules.parts import Parts

BUILD = f"storescope dispatch {STORE} --to NEW"
"""Builds queues and index from the log, into another directory."""
PUT_IN = "for part in $(ls NEW); do test -e STORE/$part && mv STORE/$part OLD; mv NEW/$part STORE; done"
"""Puts what :data:`BUILD` made in the place of the store's folders, and keeps these."""
PUT_IN_WORDS = (
    f"while the broker is stopped, put it in the place of the store's folders and keep these (mkdir OLD; {PUT_IN})."
)
PLAN = f"storescope recover {STORE} --plan"
"""What the next start would do."""
_GROUPS: dict[str, Group] = {
    "CL": "log",
    "CQ": "queue",
    "IX": "index",
    "CK": "checkpoint",
    "CF": "config",
    "AB": "state",
    "TM": "timer",
    "DK": "disk",
    "RP": "state",
}


class Register(dict[str, Rule]):
    """Rules by their ids."""

    def add(
        self,
        id_: str,
        severity: Severity,
        title: str,
        explanation: str,
        next_step: str,
        *issues: str,
        needs: Parts,
        command: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
    ) -> Rule:
        """Make a rule and put it in. ``needs``: parts that all have to be read before it may speak."""
        group: Group = _GROUPS[id_[:2]]
        self[id_] = made = Rule(
            id_, group, severity, title, explanation, next_step, issues, command, kinds or {}, needs
        )
        return made
