"""The whole rows of a JSON table whose text is damaged: everything in front of the damage, up to the last row that is
complete.
"""

from __future__ import annotations

import re

_NO_ROWS = (b'"dataVersion"', b'"groupTopicMap"', b'"forbiddenTable"')
"""Members of tables that are no rows of their own."""
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}


def whole_rows(text: bytes, damage: int) -> bytes | None:
    """Return the table with the rows in front of byte ``damage``, closed behind the last one that a comma ends; None if
    there is none. Rows are members of a member of the table: ``{"offsetTable":{"a@b":{0:1},…``.
    """
    open_marks: list[bytes] = []
    name, end = b"", 0
    for match in _MARKS.finditer(text, 0, damage):
        mark = match[0]
        if mark == b'"':
            break  # a text without an end
        if mark[:1] == b'"':
            name = mark if len(open_marks) == 1 else name
        elif mark in _CLOSING:
            open_marks.append(mark)
        elif mark in (b"}", b"]"):
            if not open_marks or _CLOSING[open_marks.pop()] != mark:
                return None
        elif mark == b"," and open_marks == [b"{", b"{"] and name not in _NO_ROWS:
            end = match.start()
    return text[:end] + b"\n\t}\n}" if end else None
