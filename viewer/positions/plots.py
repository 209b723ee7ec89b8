"""The two plots of the positions of a store at rest, over store time; no Qt.

Offsets are drawn in MiB from a base on: a float could not hold them whole.
"""

from __future__ import annotations

from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.pane.position_facts import NAMES, ROLES, TIME_FLAGS, gap_list
from viewer.runtime.position_look import Look
from viewer.widgets.live_frame import Line
from viewer.widgets.live_plot import Bar, Curve, LivePlot

MIB = 1 << 20


def draw_positions(plot: LivePlot, seen: Look) -> None:
    """The end of the log over store time."""
    minimum = seen.positions.min.offset or 0
    if len(seen.heads) < 2:
        plot.set_title(tr("Positions"))
        if seen.positions.wrote.offset is None:
            plot.show_nothing(tr("Not all of the log can be read: there is nothing to draw over time."))
            return
        plot.show_nothing(tr("Fewer than two units have a store time: there is nothing to draw over time."))
        return
    plot.set_title(tr("Positions"), tr("MiB from min on, over store time; one dot the first unit of a file"))
    heads = Curve(
        tr("end of the log"), "posLog2", [ms / 1000 for ms, _ in seen.heads],
        [(offset - minimum) / MIB for _, offset in seen.heads], size(seen.heads[-1][1] - minimum), dots=True,
    )  # fmt: skip
    plot.show_curves([heads], _marks(seen, minimum), times=True)


def _marks(seen: Look, minimum: int) -> list[Line]:
    """Checkpoint times upright, what is built from the log across where it is not at the end."""
    found = seen.positions
    lines = []
    first, last = seen.heads[0][0], seen.heads[-1][0]
    for name in TIME_FLAGS:
        position = found.checkpoint.get(name)
        if position is not None and position.timestamp and first <= position.timestamp <= last:
            lines.append(Line(position.timestamp / 1000, "posTime", tr(NAMES[name])))
    wrote = found.wrote.offset or 0
    for name in ("dispatched", "index_end"):
        offset = getattr(found, name).offset
        if offset is not None and wrote - offset > max(1, (wrote - minimum) // 200):
            lines.append(Line((offset - minimum) / MIB, ROLES[name], tr(NAMES[name]), upright=False))
    return lines


def draw_gaps(plot: LivePlot, seen: Look) -> None:
    """What lags behind the end of the log, one bar each."""
    gaps = gap_list(seen)
    if not gaps:
        plot.set_title(tr("Gaps"))
        plot.show_nothing(tr("Nothing that follows the log can be told from the files."))
        return
    if not any(gap for _, _, gap in gaps):
        plot.set_title(tr("Gaps"))
        names = ", ".join(name for name, _, _ in gaps)
        plot.show_nothing(tr("Nothing that is known lags behind: {names}, all at the end of the log.", names=names))
        return
    plot.set_title(tr("Gaps"), tr("MiB behind wrote, now"))
    plot.show_bars([Bar(name, role, gap / MIB, size(gap) if gap else tr("at the end")) for name, role, gap in gaps])
