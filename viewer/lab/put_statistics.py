"""Put results of the lab store by status, and how evenly the queues of a topic are filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QStackedWidget, QVBoxLayout

from viewer.lab.power_loss_words import MEANINGS
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import number
from viewer.look.theme import follow, px, ui
from viewer.widgets.basics import ElidedLine, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, row, scrolling
from viewer.widgets.choices import ChoiceField
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.skew_bars import SkewBars, skew_words
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.lab.samples import PositionSample, TopicPutCounts
    from viewer.lab.services import ServicesPanel
    from viewer.runtime.lab_session import LabSession

MAX_TOPICS = 24
POLL_INTERVAL_MS = 1000


def status_facts(statuses: Mapping[str, int]) -> list[Fact]:
    """Return a line for each status, PUT_OK first, with its meaning."""
    ordered = sorted(statuses.items(), key=lambda item: (item[0] != "PUT_OK", -item[1], item[0]))
    return [
        Fact(
            "",
            f"{name} {number(count)}",
            tr(MEANINGS[name]) if name in MEANINGS else "",
            "ok" if name == "PUT_OK" else "warn",
        )
        for name, count in ordered
        if count
    ]


class RightColumn(ThemedPanel):
    """Services, and behind a tab the put results and the distribution over queues."""

    def __init__(self, services: ServicesPanel, statistics: PutStatisticsPanel) -> None:
        super().__init__()
        self._services = services
        self.tabs = WordTabs("lab.tabs", (("services", tr("Services")), ("answers", tr("Answers"))))
        self._tools = row(services.flush, services.commit, gap=8)
        head = PaneHead("", "", self.tabs, None, self._tools)
        head.title.hide()
        head.note.hide()
        self._pages = QStackedWidget()
        for part in (services, statistics):
            self._pages.addWidget(scrolling(part))
        self.tabs.chosen.connect(self._choose)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(head)
        box.addWidget(self._pages, 1)

    def _choose(self, key: str) -> None:
        self._pages.setCurrentIndex(int(key == "answers"))
        self._tools.setVisible(key == "services")


class PutStatisticsPanel(ThemedPanel):
    """Put results and distribution over queues; asked once a second while visible."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("lab.fed")
        self._lab: LabSession | None = None
        self._topics: tuple[TopicPutCounts, ...] = ()
        self.answers = Facts(0)
        self.answers.setObjectName("lab.answers")
        self.answers.setAccessibleName(tr("Answers since the store was opened"))
        self._none = ElidedLine("", 12, "text3")
        self.topic = ChoiceField()
        self.topic.setObjectName("lab.fed.topic")
        self.topic.setAccessibleName(tr("Topic whose queues are shown"))
        self.topic.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.topic.setMinimumContentsLength(12)
        self.topic.currentIndexChanged.connect(lambda _n: self._show_topic())
        self.words = ElidedLine("", 12, "text2")
        self.words.setObjectName("lab.fed.words")
        self.bars = SkewBars("lab.skew")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        heading = Label(tr("Answers since the store was opened"), 12, "text3")
        box.addWidget(column(heading, self.answers, self._none, gap=3, margins=(12, 8, 12, 8)))
        box.addWidget(Hairline())
        box.addWidget(PaneHead(tr("Queues"), tr("how evenly they are filled"), self.topic))
        box.addWidget(column(self.words, self.bars, gap=4, margins=(12, 6, 12, 8)))
        box.addStretch(1)
        self._timer = QTimer(self, interval=POLL_INTERVAL_MS)
        self._timer.timeout.connect(self.poll)
        self._fit()
        follow(self, self._fit)
        self.show_answers({})
        self.show_topics(())

    def _fit(self) -> None:
        self.topic.setFont(ui(12))
        self.topic.setFixedHeight(px(26))

    def set_lab(self, lab: LabSession) -> None:
        """Set the session of this panel; called once."""
        self._lab = lab
        lab.sampled.connect(self._sampled)
        lab.changed.connect(self._changed)

    def showEvent(self, event: QShowEvent) -> None:
        """Start asking."""
        super().showEvent(event)
        self._timer.start()
        self.poll()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop asking."""
        super().hideEvent(event)
        self._timer.stop()

    def poll(self) -> None:
        """Ask for the distribution over queues."""
        lab = self._lab
        if lab is not None and lab.alive:
            lab.begin(self._ask(lab))

    async def _ask(self, lab: LabSession) -> None:
        self.show_topics(await lab.put_counts(MAX_TOPICS))

    def _sampled(self, sample: PositionSample) -> None:
        if self.isVisible():
            self.show_answers(sample.statuses)

    def _changed(self) -> None:
        if self._lab is not None and not self._lab.there:
            self.show_answers({})
            self.show_topics(())

    def show_answers(self, statuses: Mapping[str, int]) -> None:
        """Show how often each status was returned."""
        facts = status_facts(statuses)
        self.answers.show_facts(facts)
        self.answers.setVisible(bool(facts))
        self._none.setText("" if facts else tr("Nothing was put yet."))
        self._none.setVisible(not facts)

    def show_topics(self, topics: Sequence[TopicPutCounts]) -> None:
        """Show the topics with their queues; the selected topic stays selected."""
        self._topics = tuple(topics)
        names = [topic_queues.topic for topic_queues in self._topics]
        if names != [self.topic.itemText(n) for n in range(self.topic.count())]:
            chosen = self.topic.currentText()
            self.topic.blockSignals(True)
            self.topic.clear()
            self.topic.addItems(names)
            self.topic.setCurrentIndex(max(0, names.index(chosen) if chosen in names else 0) if names else -1)
            self.topic.blockSignals(False)
        self.topic.setVisible(bool(names))
        self._show_topic()

    def _show_topic(self) -> None:
        index = self.topic.currentIndex()
        if not 0 <= index < len(self._topics):
            self.bars.show_bars(())
            self.words.setText(tr("No queue has an entry yet."))
            return
        topic_queues = self._topics[index]
        self.bars.show_bars(
            [(str(number_), count) for number_, count in topic_queues.queues], topic_queues.topic, "posBuild"
        )
        counts = [count for _, count in topic_queues.queues]
        skew = skew_words(counts)
        queues = tr_plural("{n:,} queue", "{n:,} queues", n=len(counts))
        entries = tr_plural(
            "{n:,} entry in {queues}", "{n:,} entries in {queues}", n=topic_queues.entries, queues=queues
        )
        self.words.setText(f"{entries} · {skew}" if skew else entries)
