"""What a live plot shows at one moment, as values: its curves, marked lines and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Line:
    """A marked value: ``upright`` at a place of the x axis, else across at a value of the y axis."""

    at: float
    role: str
    words: str
    upright: bool = True
    dashed: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A curve of a live frame, its arrays not longer than the plot is wide: ``kind`` is line, dots or bars; dots from
    ``late`` on are marked; ``value`` stands in the legend.
    """

    name: str
    role: str
    xs: npt.NDArray[np.float64]
    ys: npt.NDArray[np.float64]
    value: str = ""
    kind: str = "line"
    filled: bool = False
    late: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LiveFrame:
    """All that a live plot shows at once: x is seconds from now (negative: before), y from ``bottom`` to ``top``.

    ``ticks`` are small triangles on the time axis, ``lines`` marked values, ``cursor`` the place that all plots share.
    ``at`` is the time of the right edge in s since the epoch: what was drawn moves with it. ``breaks`` are the times
    (from, to) in which nobody sampled.
    """

    traces: tuple[Trace, ...]
    begin: float
    end: float
    top: float
    bottom: float = 0.0
    ticks: npt.NDArray[np.float64] | tuple[()] = ()
    tick_role: str = "posLog3"
    lines: tuple[Line, ...] = ()
    cursor: float | None = None
    at: float = 0.0
    breaks: tuple[tuple[float, float], ...] = ()
