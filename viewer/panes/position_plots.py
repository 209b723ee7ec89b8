"""The two plots of the positions: over store time for a store at rest, over the last minutes where it grows; no Qt.

Offsets are drawn in MiB from a base on: a float could not hold them whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewer.assets import tr
from viewer.models.formats import size
from viewer.panes.position_facts import LOG_FLAGS, NAMES, ROLES, TIME_FLAGS, Look, gap_list, known_flushed
from viewer.widgets.live_plot import Bar, Curve, Line, LivePlot

MIB = 1 << 20
_OVER_TIME = ("index_end", "queue_max", "dispatched", "confirm", "flushed", "committed", "wrote")


def draw_positions(plot: LivePlot, seen: Look, samples: Sequence[Look]) -> None:
    """Positions over time: wrote is drawn last, on top."""
    if len(samples) > 1:
        _draw_samples(plot, samples)
        return
    minimum = seen.positions.min.offset or 0
    if len(seen.heads) < 2:
        plot.set_title(tr("Positions"))
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


def _draw_samples(plot: LivePlot, samples: Sequence[Look]) -> None:
    base = samples[0].positions.wrote.offset or 0
    end = samples[-1].at
    plot.set_title(tr("Positions"), tr("MiB since the view began, over seconds before now"))
    curves = []
    for key in _OVER_TIME:
        points = [
            ((one.at - end) / 1000, (offset - base) / MIB)
            for one in samples
            if (offset := getattr(one.positions, key).offset) is not None
        ]
        if len(points) > 1 and not _same_as_wrote(key, samples):
            last = size(round(points[-1][1] * MIB))
            curves.append(Curve(tr(NAMES[key]), ROLES[key], [x for x, _ in points], [y for _, y in points], last))
    plot.show_curves(curves)


def _same_as_wrote(key: str, samples: Sequence[Look]) -> bool:
    """The log's own positions are not drawn a second time where they are equal throughout."""
    if key == "wrote" or key not in LOG_FLAGS:
        return False
    return all(getattr(one.positions, key).offset == one.positions.wrote.offset for one in samples)


def draw_gaps(plot: LivePlot, seen: Look, samples: Sequence[Look]) -> None:
    """What lags behind the end of the log: over time where it grows, else as one bar each."""
    if len(samples) > 1:
        end = samples[-1].at
        plot.set_title(tr("Gaps"), tr("MiB behind wrote, over seconds before now"))
        curves = []
        for name, role, find in (
            (tr("to flush, by the checkpoint"), "posLog3", known_flushed),
            (tr("to index"), "posBuild3", lambda found: found.index_end.offset),
            (tr("to dispatch"), "posBuild", lambda found: found.dispatched.offset),
        ):
            points = [
                ((one.at - end) / 1000, max(0, wrote - offset) / MIB)
                for one in samples
                if (offset := find(one.positions)) is not None and (wrote := one.positions.wrote.offset) is not None
            ]
            if len(points) > 1:
                xs, ys = [x for x, _ in points], [y for _, y in points]
                curves.append(Curve(name, role, xs, ys, size(round(ys[-1] * MIB)), filled=True))
        plot.show_curves(curves)
        return
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
