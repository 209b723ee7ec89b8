"""What the verdicts on a message mean: kind of the chip, its word, and a sentence."""

from __future__ import annotations

from viewer.look.assets import words

VERDICTS = {
    "found": ("ok", words("It is there"), words("The unit is intact and its queue leads to it.")),
    "expired": ("warn", words("Deleted by retention"), words("Its file was deleted; the log begins behind it.")),
    "truncated": ("error", words("Cut off"),
                  words("It stands behind the end of the log, or did: a start cuts it off, or one has.")),
    "damaged": ("error", words("Damaged"),
                words("Its bytes cannot be read as a unit, or its body is not what was stored.")),
    "notInQueue": ("error", words("Not in its queue"),
                   words("The log has it and no queue entry leads to it: nobody consumes it.")),
    "notInIndex": ("warn", words("Not reachable by key"),
                   words("It is in the log and can be consumed; a query by this key does not find it.")),
    "half": ("warn", words("Half message"),
             words("Its transaction is open: it is invisible until the producer commits.")),
    "rolledBack": ("note", words("Rolled back"), words("Its transaction was rolled back: it is not to be delivered.")),
    "delayed": ("note", words("Delayed"), words("It waits for its time of delivery.")),
    "retried": ("warn", words("Retried"), words("A delivery failed; it was put back for the group.")),
    "deadLetter": ("error", words("Dead letter"), words("The group gave it up after its last delivery.")),
    "hiddenByTag": ("error", words("Hidden by its tag"), words("The group's filter passes it over.")),
    "notYetDispatched": ("warn", words("Not dispatched yet"), words("The log has it; dispatch has not come so far.")),
    "consumed": ("ok", words("Consumed"), words("The group has passed it.")),
    "notConsumed": ("note", words("Not consumed yet"), words("The group has not come so far.")),
    "neverSeen": ("note", words("Never seen"), words("Nothing in this store speaks of it.")),
    "unknown": ("warn", words("Not knowable"), words("The files do not tell.")),
}  # fmt: skip
