"""Tables that change under the eye: the rows of a short list take new values in place, and what changed glows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewer.widgets.columns import Record
from viewer.widgets.glow import changed_cells
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import ListSource


def renew_rows(
    view: RecordView, rows: Sequence[Record], key: Callable[[Record], object], glowing: Sequence[str] = ()
) -> bool:
    """Put ``rows`` in the place of those that ``view`` shows where they are the same ones by ``key``: choice and
    scroll place stay, changed cells of the columns ``glowing`` glow. False where other rows are there: set them.
    """
    source = view.source
    if not isinstance(source, ListSource) or view.loading:
        return False
    shown = view.table.rows
    if len(shown) != len(rows) or len(source.rows) != len(rows) or not rows:
        return False
    wanted = {key(row): row for row in rows}
    if {key(row) for row in shown} != wanted.keys():
        return False
    changed = False
    for number, before in enumerate(list(shown)):
        after = wanted[key(before)]
        if after == before:
            continue
        changed = True
        cells = changed_cells(view.kind, before, after, glowing)
        view.replace_row(number, after)
        if cells:
            view.glow.add(view.row_key(number), cells)
    if changed:
        view.viewport().update()
    return True
