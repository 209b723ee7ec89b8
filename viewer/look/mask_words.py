"""What can be left out of an export or a report, in words of the window, by the words of ``--mask``. No Qt."""

from __future__ import annotations

from viewer.look.assets import words

MASKS = {
    "bodies": words("bodies"),
    "keys": words("keys and unique ids"),
    "hosts": words("hosts"),
    "groups": words("groups"),
    "lmq": words("light queues"),
    "properties": words("users' properties"),
}
