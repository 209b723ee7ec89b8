"""Findings over time: each gets the time of the part of the log that holds its place."""

from __future__ import annotations

from engine.rules.findings import Finding
from viewer.findings.finding_histogram import FindingHistogram
from viewer.findings.findings_model import CheckedStore, FindingsModel
from viewer.runtime.histogram_work import HistogramData

LOG_FILE = "/stores/a/commitlog/00000000000000000000"


def a_finding(rule: str, severity: str, offset: int | None, file: str = LOG_FILE, **evidence: object) -> Finding:
    return Finding(rule, severity, "log", file, offset, rule, evidence, (), "")  # type: ignore[arg-type]


FINDINGS = (
    a_finding("CL03", "error", 350),
    a_finding("CL04", "warn", 399),
    a_finding("CQ04", "error", 40, "/stores/a/consumequeue/T/0/00000000000000000000", physicalOffset=120),
    a_finding("CF01", "note", None, "/stores/a/config/topics.json"),
)


def log_bars() -> HistogramData:
    """Return bars of a second at 1, 2 and 9 s; the clock was set back for the second one."""
    starts, counts, first, end, none = [1000, 2000, 9000], [[1, 1, 1]], [100, 0, 300], [300, 100, 400], [-1, -1, -1]
    return HistogramData(1000, starts, ["T"], counts, counts, first, end, none, none)


def test_a_finding_is_in_the_bar_of_the_log_that_holds_its_place(themed_app):
    model = FindingHistogram("histogram").finding_model
    model.set_findings(FINDINGS)
    assert model.bars() == [], "the log is not read yet"
    model.take(log_bars())
    assert [(bar.begin, bar.parts, bar.first) for bar in model.bars()] == [
        (1000, (("error", 1, 1),), 120),
        (9000, (("error", 1, 1), ("warn", 1, 1)), 350),
    ]
    assert model.whole == (1000, 10_000), "the bars are where those of the log are"
    assert model.notes() == ["1 finding has no place in the log"]
    assert "1 error" in model.bar_words(model.bars()[1])
    model.set_findings(())
    assert model.bars() == []


def test_the_whole_time_stays_shown_while_the_log_is_still_read(themed_app):
    """The strip kept the time of the first bars that were read. Findings behind it were in no bar, and the strip stood
    empty.
    """
    model = FindingHistogram("histogram").finding_model
    model.set_findings(FINDINGS)
    bars = log_bars()
    model.take(HistogramData(1000, [1000], ["T"], [[1]], [[1]], [100], [300], [-1], [-1]))
    model.take(bars)
    assert (model.begin, model.end) == (1000, 10_000)
    assert len(model.bars()) == 2
    model.show(9000, 9500)
    model.take(bars)
    assert (model.begin, model.end) == (9000, 9500), "a chosen part stays"


def test_a_brushed_time_leaves_out_the_findings_of_another_time(themed_app):
    histogram = FindingHistogram("histogram").finding_model
    histogram.take(log_bars())
    model = FindingsModel(times=histogram.times)
    model.set_store(CheckedStore(FINDINGS, complete=True))
    model.show_time((9000, 9500))
    assert [row.finding.id for row in model.rows] == ["CL03", "CL04"]
    assert model.row_at(399) == 1
    model.show_time(None)
    assert len(model.rows) == 4


def test_its_menu_speaks_of_findings(themed_app):
    histogram = FindingHistogram("histogram")
    histogram.finding_model.set_findings(FINDINGS)
    histogram.finding_model.take(log_bars())
    texts = [action.text() for action in histogram.menu_of(histogram.model.bars()[0]).actions()]
    assert "Only findings of this time" in texts
    assert "Go to its first finding" in texts
    assert "Bytes instead of messages" not in texts
