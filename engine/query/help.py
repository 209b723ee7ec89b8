"""The grammar of filters in words, for the command line's help and the viewer's."""

from __future__ import annotations

from engine.query.fields import FIELDS


def _fields() -> str:
    width = max(map(len, FIELDS))
    lines = []
    for spec in FIELDS.values():
        words = f" ({', '.join(spec.words)})" if spec.words else ""
        lines.append(f"  {spec.name:<{width}}  {spec.kind:<9}  {spec.about}{words}")
    return "\n".join(lines)


GRAMMAR = f"""\
A filter is a condition over the fields of a message unit:

  topic = "OrderPaid" and storeTimestamp >= "2026-11-20 09:41:07"
  keys = "O-1042" or body matches /refund(ed)?/i
  size > 4KiB and not crc = "ok"
  properties.region in ("eu", "us") and storeTimestamp > now - 5m
  storeTimestamp - bornTimestamp > 2s

Conditions
  a = b   a != b   a < b   a <= b   a > b   a >= b      also == and <>
  a in (1, 2, 3)            a not in (…)
  a between 1 and 9         a not between …             both ends included
  a contains "x"            a startswith "x"            a endswith "x"      a like "ab%_"
  a matches /regex/flags    a matches "regex"           flags: i m s x; searched in the first 64 KiB
  a is null                 a is not null
  not c    c and d    c or d    ( c )                   also !  &&  ||; not binds tighter than and, and than or
  A comparison with an absent value is false, also != and not in. For keys it asks for any of the keys.

Values
  numbers    42   1_000   0xFF   4KiB  1 MiB  2GiB      whole, 64 bits
  texts      "in double" or 'in single' quotes          escapes \\" \\' \\\\ \\n \\t \\xNN \\uNNNN
  times      "2026-11-20 09:41:07.250"   "2026-11-20"   your zone, or Z, or +08:00 behind it; or milliseconds
  durations  250ms  5s  5m  2h  1d  1w                  for now - 5m, or between two times
  now, true, false
  a + b   a - b   a & b                                 sums of numbers and times; bits: sysFlag & 0x8 != 0

Fields
{_fields()}
  tag, key and queue are read as tags, keys and queueId
  properties.NAME, properties["NAME"]: any property; beside a number it is read as a number
"""
