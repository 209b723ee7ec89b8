"""What the time histogram shows: bars, the part of the time, the bar in the frame, and their words. No Qt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import datetime

from viewer.look.assets import tr, tr_plural
from viewer.look.formats import clock, day, moment, plain, size, span
from viewer.runtime.histogram_work import BARS, HistogramData, Range

MIN_SPAN_MS = 40
"""The shortest time that is shown: bars of 1 ms are some pixels wide then."""
ZOOM = 1.6
"""Factor of one step of the wheel or of a key."""
MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: [begin, end) ms, its ``parts`` (topic, messages, bytes), and the offset of its first unit."""

    begin: int
    end: int
    parts: tuple[tuple[str, int, int], ...]
    p50: int
    p99: int
    first: int

    @property
    def messages(self) -> int:
        return sum(messages for _, messages, _ in self.parts)

    @property
    def bytes(self) -> int:
        return sum(byte_count for _, _, byte_count in self.parts)


def filter_term(begin: int, end: int) -> str:
    """Return the condition that a message was stored in [begin, end) ms."""
    from engine.query import condition

    zone = datetime.now().astimezone().tzinfo
    low, high = (condition("storeTimestamp", ms, zone=zone) for ms in (begin, end))
    return f"{low.replace(' = ', ' >= ', 1)} and {high.replace(' = ', ' < ', 1)}"


@dataclass
class HistogramModel:
    """The state of one time histogram."""

    overview: HistogramData = field(default_factory=HistogramData)
    """The whole time."""
    detail: HistogramData | None = None
    """Narrower bars of a part of the time, and that part."""
    detail_part: tuple[int, int] = (0, 0)
    shows_bytes: bool = False
    begin: int = 0
    """The time that is shown: [begin, end) ms."""
    end: int = 0
    framed: int | None = None
    """A time in the bar that the keys have reached."""
    brush: tuple[int, int] | None = None
    """The range that is being chosen."""
    words: str = ""
    """Shown instead of bars, or beside them while they fill."""
    is_filling: bool = False

    # -- data

    def clear(self, words: str = "") -> None:
        """Forget everything but the choice of messages or bytes."""
        self.overview, self.detail, self.begin, self.end = HistogramData(), None, 0, 0
        self.framed, self.brush, self.words, self.is_filling = None, None, words, False

    def take(self, data: HistogramData) -> None:
        """Take the bars of the whole time; a part that is shown stays."""
        old = self.whole
        was_all = (self.begin, self.end) == old
        self.overview, self.words = data, ""
        if was_all or self.end <= self.begin:
            self.begin, self.end = self.whole
            self.detail = None
        else:
            self._clamp()

    def take_detail(self, part: Range, data: HistogramData) -> None:
        """Take narrower bars of a part."""
        self.detail, self.detail_part = data, (part.begin, part.end)

    @property
    def whole(self) -> tuple[int, int]:
        """The time of all bars; (0, 0) without any."""
        data = self.overview
        return (data.starts[0], data.starts[-1] + data.width) if data.starts else (0, 0)

    @property
    def shown(self) -> HistogramData:
        """The bars for the time that is shown: the narrower ones where they cover it."""
        is_covered = self.detail_part[0] <= self.begin and self.end <= self.detail_part[1]
        return self.detail if self.detail is not None and is_covered else self.overview

    def bars(self) -> list[Bar]:
        """Return the bars of the time that is shown."""
        data = self.shown
        start = bisect_right(data.starts, self.begin - data.width)
        return [self._bar(data, place) for place in range(start, bisect_left(data.starts, self.end))]

    def _bar(self, data: HistogramData, place: int) -> Bar:
        parts = tuple(
            (topic, messages[place], sizes[place])
            for topic, messages, sizes in zip(data.topics, data.messages, data.bytes, strict=True)
            if messages[place]
        )
        begin = data.starts[place]
        return Bar(begin, begin + data.width, parts, data.p50[place], data.p99[place], data.first[place])

    def bar_at(self, ms: float) -> Bar | None:
        """Return the bar that holds a time; None where no message was stored."""
        data = self.shown
        place = bisect_right(data.starts, ms) - 1
        return self._bar(data, place) if place >= 0 and ms < data.starts[place] + data.width else None

    def value(self, bar: Bar) -> int:
        """The height of a bar."""
        return bar.bytes if self.shows_bytes else bar.messages

    # -- the part that is shown

    def show_all(self) -> None:
        """Show the whole time."""
        self.begin, self.end = self.whole

    def show(self, begin: int, end: int) -> None:
        """Show a part of the time."""
        self.begin, self.end = begin, end
        self._clamp()

    def zoom(self, factor: float, around: float) -> None:
        """Show a time that is ``factor`` times as long; the time ``around`` stays where it is."""
        length = max(round((self.end - self.begin) * factor), MIN_SPAN_MS)
        share = (around - self.begin) / max(self.end - self.begin, 1)
        self.begin = round(around - share * length)
        self.end = self.begin + length
        self._clamp()

    def pan(self, ms: int) -> None:
        """Show a later time, or an earlier one."""
        self.begin += ms
        self.end += ms
        self._clamp()

    def _clamp(self) -> None:
        low, high = self.whole
        length = min(max(self.end - self.begin, MIN_SPAN_MS), max(high - low, MIN_SPAN_MS))
        self.begin = max(min(self.begin, high - length), low)
        self.end = self.begin + length

    @property
    def is_zoomed(self) -> bool:
        return (self.begin, self.end) != self.whole

    def missing_part(self) -> Range | None:
        """Return the part whose bars are too wide for the time that is shown, with room on both sides; None if they
        are narrow enough.
        """
        length = self.end - self.begin
        if not self.is_zoomed or not self.overview.starts:
            return None
        width = next((step for step in _WIDTHS if length <= step * BARS), self.overview.width)
        if self.shown.width <= width:
            return None
        begin, end = self.begin - length // 2, self.end + length // 2
        data = self.overview
        places = range(bisect_right(data.starts, begin - data.width), bisect_left(data.starts, end))
        if not places:
            return None
        start, stop = min(data.first[place] for place in places), max(data.end[place] for place in places)
        return Range(begin, end, width, start, stop)

    # -- keys

    def step(self, by: int) -> None:
        """Put the frame around the next bar with messages, or a former one; the picture follows it."""
        data = self.shown
        if not data.starts:
            return
        if self.framed is not None:
            place = bisect_right(data.starts, self.framed) - 1 + by
        elif by > 0:
            place = bisect_right(data.starts, self.begin - data.width)
        else:
            place = bisect_left(data.starts, self.end) - 1
        self.framed = data.starts[min(max(place, 0), len(data.starts) - 1)]
        if not self.begin <= self.framed < self.end:
            self.pan(self.framed - self.begin if self.framed < self.begin else self.framed + data.width - self.end)

    def frame_end(self, *, last: bool) -> None:
        """Put the frame around the first or the last bar of the whole time."""
        data = self.shown
        self.framed = None if not data.starts else data.starts[-1 if last else 0]
        if self.framed is not None and not self.begin <= self.framed < self.end:
            self.pan(self.framed - self.begin)

    def brush_to(self, by: int) -> None:
        """Extend the chosen range by one bar, from the framed bar on."""
        if self.framed is None:
            self.step(by)
        if self.framed is None:
            return
        anchor = self.brush or (self.framed, self.framed + self.shown.width)
        self.step(by)
        self.brush = min(anchor[0], self.framed), max(anchor[1], self.framed + self.shown.width)

    # -- words

    def bar_words(self, bar: Bar) -> str:
        """Describe a bar: its time, what it holds by topic, and how long storing took."""
        lines = [f"{moment(bar.begin)} – {clock(bar.end)}", self._amount(bar.messages, bar.bytes)]
        parts = sorted(bar.parts, key=lambda part: -(part[2] if self.shows_bytes else part[1]))
        for topic, messages, byte_count in parts[:MAX_NAMED]:
            lines.append(f"{plain(topic) or tr('other topics')}: {self._amount(messages, byte_count)}")
        if len(parts) > MAX_NAMED:
            lines.append(tr("and {n:,} more", n=len(parts) - MAX_NAMED))
        if bar.p50 >= 0:
            times = {"p50": span(bar.p50), "p99": span(bar.p99)}
            lines.append(tr("born to stored: half within {p50}, 99 % within {p99}", **times))
        return "\n".join(lines)

    @staticmethod
    def _amount(messages: int, byte_count: int) -> str:
        return f"{tr_plural('{n:,} message', '{n:,} messages', n=messages)} · {size(byte_count)}"

    def head_words(self) -> str:
        """Say what the height and the width of a bar are."""
        data, bars = self.shown, self.bars()
        highest = max((self.value(bar) for bar in bars), default=0)
        height = size(highest) if self.shows_bytes else f"{highest:,}"
        what = tr("Bytes over time") if self.shows_bytes else tr("Messages over time")
        if not bars:
            return what
        return f"{what} · " + tr("bars of {width}, at most {height}", width=width_words(data.width), height=height)

    def notes(self) -> list[str]:
        """Say what the bars do not show: damage, unread files, a clock that was set back, messages far away."""
        data, notes = self.overview, []
        if data.unread:
            notes.append(tr("{size} could not be read", size=size(data.unread)))
        if data.damaged:
            notes.append(tr("{size} damaged", size=size(data.damaged)))
        if data.steps_back:
            notes.append(
                tr_plural(
                    "store time goes back {n:,} time, by up to {span}",
                    "store time goes back {n:,} times, by up to {span}",
                    n=data.steps_back,
                    span=span(data.largest_step_ms),
                )
            )
        if data.far:
            notes.append(tr_plural("{n:,} message far from this time", "{n:,} messages far from this time", n=data.far))
        if not data.is_complete and not self.is_filling and not data.unread:
            notes.append(tr("stopped"))
        return notes

    def markdown(self) -> str:
        """Return the bars that are shown as a table in Markdown, a row for each bar."""
        bars, topics = self.bars(), self.shown.topics
        names = [plain(topic) or tr("other topics") for topic in topics]
        heads = [tr("From"), tr("To"), tr("Messages"), tr("Bytes"), *names, "p50 ms", "p99 ms"]
        lines = [heads, ["---"] * len(heads)]
        for bar in bars:
            by_topic = {topic: messages for topic, messages, _ in bar.parts}
            delays = [str(ms) if ms >= 0 else "" for ms in (bar.p50, bar.p99)]
            counts = [bar.messages, bar.bytes, *(by_topic.get(topic, 0) for topic in topics)]
            lines.append([moment(bar.begin), moment(bar.end), *map(str, counts), *delays])
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"

    def summary(self) -> str:
        """Describe the picture for a screen reader."""
        bars = self.bars()
        if not bars:
            return self.words
        messages, byte_count = sum(bar.messages for bar in bars), sum(bar.bytes for bar in bars)
        highest = max(bars, key=self.value)
        parts = [
            tr("{amount} from {first} to {last}", amount=self._amount(messages, byte_count), first=moment(self.begin),
               last=moment(self.end)),
            tr("most at {time}: {amount}", time=moment(highest.begin), amount=self._amount(highest.messages,
               highest.bytes)),
            *self.notes(),
        ]  # fmt: skip
        if self.framed is not None and (bar := self.bar_at(self.framed)) is not None:
            parts.insert(0, self.bar_words(bar).replace("\n", ", "))
        return ". ".join(parts)


_DAY = 86_400_000
_WIDTHS = (
    *(1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000),
    *(3_600_000, 6 * 3_600_000, 12 * 3_600_000, _DAY, 7 * _DAY),
)
"""Widths of bars (ms), as the engine has them."""


def width_words(width: int) -> str:
    """``1 ms``, ``5 s``, ``30 min``, ``12 h``, ``7 d``."""
    for unit, length in (("d", _DAY), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if width >= length:
            return f"{width // length} {unit}"
    return f"{width} ms"


def tick_words(ms: int, step: int) -> str:
    """The text of a tick of the time axis, as exact as the ticks are apart."""
    if step >= _DAY:
        return day(ms)
    text = clock(ms)
    return text[:-4] if step >= 1000 and "." in text else text
