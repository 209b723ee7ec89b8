from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics

from viewer.look.broken import UnreadableRange
from viewer.look.theme import mono
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LineFile, LinePin, LogLine, TopicMix

GIB = 1 << 30
BASE = 1 << 42
FILES = tuple(LineFile(f"{BASE + n * GIB:020d}", BASE + n * GIB, BASE + (n + 1) * GIB) for n in range(8))
LINE = LogLine(BASE, BASE + 7 * GIB + 1000, BASE + 8 * GIB, FILES)


@pytest.fixture
def strip(qtbot):
    line_strip = LineStrip()
    qtbot.addWidget(line_strip)
    line_strip.resize(1200, 62)
    line_strip.show()
    line_strip.set_line(LINE)
    line_strip.add_mixes(
        [
            TopicMix(BASE, BASE + GIB, (("orders", 0.6), ("%RETRY%a", 0.4)), 1_763_603_000_000),
            TopicMix(BASE + GIB, BASE + 2 * GIB, ()),
        ]
    )
    line_strip.set_pins([LinePin(BASE + 5 * GIB, "error", "LOG01 unreadable")])
    line_strip.set_broken([HURT])
    line_strip.set_frame(BASE + 3 * GIB, BASE + 3 * GIB + 6000)
    line_strip.set_times({file.start: 1_763_603_000_000 for file in FILES})
    return line_strip


HURT = UnreadableRange(BASE + 5 * GIB, BASE + 5 * GIB + 4096, "damaged")


def test_a_click_goes_to_the_offset_under_it(strip, qtbot):
    with qtbot.waitSignal(strip.offsetChosen) as placed:
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(round(strip._x(BASE + 2 * GIB)), 30))
    assert abs(placed.args[0] - (BASE + 2 * GIB)) < GIB // 100


def test_words_under_the_pointer_tell_file_time_topics_and_findings(strip):
    words = strip.words_at(strip._x(BASE + GIB // 2))
    assert FILES[0].name in words
    assert "orders 60%" in words
    assert "LOG01" in strip.words_at(strip._x(BASE + 5 * GIB))
    assert "zero tail" in strip.words_at(strip.width() - 14)


def test_arrow_keys_move_along_the_line(strip, qtbot):
    with qtbot.waitSignal(strip.offsetChosen) as placed:
        qtbot.keyClick(strip, Qt.Key.Key_Right)
    assert placed.args[0] > BASE + 3 * GIB
    with qtbot.waitSignal(strip.offsetChosen) as placed:
        qtbot.keyClick(strip, Qt.Key.Key_End)
    assert placed.args[0] == LINE.written


def test_the_frame_is_spoken(strip):
    assert f"showing {BASE + 3 * GIB:,}" in strip.accessibleDescription()


def test_the_strip_is_painted_with_few_many_and_no_files(strip):
    assert strip.grab().width() == 1200
    many = tuple(LineFile(str(n), n * GIB, (n + 1) * GIB) for n in range(2000))
    strip.set_line(LogLine(0, 2000 * GIB, 2000 * GIB, many))
    strip.grab()
    assert len(strip.label_files()) <= 6
    strip.set_line(LogLine(0, 0, 0))
    strip.grab()
    assert strip.words_at(50) == ""


def test_the_page_cache_is_drawn_under_the_band(strip):
    strip.set_cached([(BASE, BASE + GIB, 1.0), (BASE + GIB, BASE + 2 * GIB, 0.0)])
    picture = strip.grab().toImage()
    ratio = strip.devicePixelRatioF()
    y = round((17 + 24 + 2) * ratio)
    pixel_color = picture.pixelColor(round(strip._x(BASE + GIB // 2) * ratio), y)
    empty = picture.pixelColor(round(strip._x(BASE + GIB + GIB // 2) * ratio), y)
    assert pixel_color != empty
    assert "in memory 100%" in strip.words_at(strip._x(BASE + GIB // 2))
    assert "in memory 0%" in strip.words_at(strip._x(BASE + GIB + GIB // 2))


def test_files_on_both_sides_of_the_frame_keep_their_labels(strip):
    """Only what the frame's own label would cover is left out; once every label right of it was."""
    strip.set_frame(BASE, BASE + 6000)
    at_front = strip.grab().toImage()
    strip.set_frame(BASE + 6 * GIB, BASE + 6 * GIB + 6000)
    at_end = strip.grab().toImage()
    ratio = strip.devicePixelRatioF()
    starts = [start for _, start in strip._labels()]
    middle = starts[len(starts) // 2]
    x, y = round((strip._x(middle)) * ratio), round(44 * ratio)

    def drawn(picture):
        ground = picture.pixelColor(round(2 * ratio), y)
        return any(
            picture.pixelColor(x + dx, y + dy) != ground
            for dx in range(round(60 * ratio))
            for dy in range(round(12 * ratio))
        )

    assert drawn(at_front)
    assert drawn(at_end)


def test_pieces_of_a_line_that_was_read_whole_leave_no_seam(qtbot):
    """A piece that came after its right neighbour took a pixel of it: white lines looked like beginnings of files."""
    line_strip = LineStrip()
    qtbot.addWidget(line_strip)
    line_strip.resize(1201, 62)
    line_strip.show()
    line_strip.set_line(LogLine(0, 1000, 1000, (LineFile("0" * 20, 0, 1000),)))
    edges = [round(1000 * n / 173) for n in range(174)]
    line_strip.grab()
    for start, end in reversed(list(itertools.pairwise(edges))):
        line_strip.add_mixes([TopicMix(start, end, (("orders", 1.0),))])
    picture = line_strip.grab().toImage()
    ratio = line_strip.devicePixelRatioF()
    row = {picture.pixelColor(round(x * ratio), round(29 * ratio)).name() for x in range(14, 1186)}
    assert len(row) == 1, row


def test_the_focus_is_a_frame_and_no_fill(strip, qtbot):
    """The brush of the table's place was left over: the whole Line was tinted."""
    strip.hasFocus = lambda: False
    without_focus = strip.grab().toImage().pixelColor(600, 8)
    strip.hasFocus = lambda: True
    assert strip.grab().toImage().pixelColor(600, 8) == without_focus


def test_samples_of_a_small_log_in_large_files_stay_apart(qtbot):
    """The zero tail behind it counted, too: of a log that had grown one sample was left, one colour from end to end."""
    line_strip = LineStrip()
    qtbot.addWidget(line_strip)
    written = 3_000_000
    line_strip.set_line(LogLine(0, written, GIB, (LineFile("0" * 20, 0, GIB),)))
    edges = [written * n // 600 for n in range(601)]
    line_strip.add_mixes([TopicMix(start, end, (("orders", 1.0),)) for start, end in itertools.pairwise(edges)])
    assert 200 < len(line_strip._mixes) <= 600


def test_every_label_has_room_for_its_time_whatever_the_width(strip):
    """At one width the labels had dates, in the view beside it none."""
    for width in (1200, 900, 640):
        strip.resize(width, strip.height())
        metrics = QFontMetrics(mono(11))
        labels = strip._labels()
        assert labels
        for (x, start), (following, _) in itertools.pairwise(labels):
            assert x + metrics.horizontalAdvance(f"{start:,} 11-17 22:04") < following
