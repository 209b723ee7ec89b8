"""The content of a live plot at one moment: curves, marked lines and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Line:
    """A marked value: a vertical line (``upright``) at a place of the x axis, or a horizontal one at a value of the
    y axis.
    """

    position: float
    role: str
    words: str
    upright: bool = True
    dashed: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A curve of a live frame. Its arrays are not longer than the plot is wide. ``kind`` is line, dots or bars. Dots
    from ``late`` on are marked; ``value`` stands in the legend.
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
    """Everything that a live plot shows at one moment. x is seconds from now (negative: before), y from ``bottom``
    to ``top``.

    ``ticks`` are small triangles on the time axis, ``lines`` marked values, ``cursor`` the place that all plots
    share. ``right_edge_s`` is the time of the right edge in seconds since the epoch; curves that are already drawn move
    with it. ``breaks`` are the times (from, to) without samples.
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
    right_edge_s: float = 0.0
    breaks: tuple[tuple[float, float], ...] = ()
