"""Rules whose findings ``storescope repair`` may mend, by the repair that does it (docs/formats/repair.md)."""

from __future__ import annotations

LOG = frozenset({"CL01", "CL02", "CL03", "CL05", "CL09"})
QUEUES = frozenset({"CQ01", "CQ03", "CQ04", "CQ05", "CQ09", "CQ10", "CQ12", "RP01"})
INDEX = frozenset({"IX01", "IX02", "IX03", "IX09"})
INDEX_ENTRIES = frozenset({"IX01", "IX06", "IX08", "IX10"})
LOST_QUEUES = frozenset({"CQ10"})
CHECKPOINT = frozenset({"CK02", "CK04", "CK05"})
TABLES = frozenset({"CF01", "CF03", "CF04"})
MISSING_FILES = frozenset({"RP02", "RP03"})
FILES = frozenset({"CL05", "CL07", "CQ01", "CQ06", "DK01"})
LENGTHS = frozenset({"CL07"})
ALL = LENGTHS | LOG | QUEUES | INDEX | INDEX_ENTRIES | CHECKPOINT | TABLES | FILES | MISSING_FILES
