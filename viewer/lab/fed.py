"""What the lab's store answered, counted by status, and how evenly the queues of a topic are fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QStackedWidget, QVBoxLayout

from viewer.lab.words import MEANINGS
from viewer.look.assets import tr
from viewer.look.formats import number
from viewer.look.theme import follow, px, ui
from viewer.widgets.basics import Elided, Hairline, Label, PaneHead, Paper, WordTabs, column, row, scrolling
from viewer.widgets.choices import ChoiceField
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.skew_bars import SkewBars, skew_words

if TYPE_CHECKING:
    from engine.lab.samples import PositionSample, TopicFed
    from viewer.lab.services import ServicesPanel
    from viewer.runtime.lab_session import LabSession

MOST_TOPICS = 24
EVERY_MS = 1000


def answer_facts(statuses: Mapping[str, int]) -> list[Fact]:
    """A line for each status, PUT_OK first, with what it means."""
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


class RightColumn(Paper):
    """Services, and behind a tab what was answered and how the queues are fed."""

    def __init__(self, services: ServicesPanel, fed: FedPanel) -> None:
        super().__init__()
        self._services = services
        self.tabs = WordTabs("lab.tabs", (("services", tr("Services")), ("answers", tr("Answers"))))
        self._tools = row(services.flush, services.commit, gap=8)
        head = PaneHead("", "", self._tools)
        head.title.hide()
        head.note.hide()
        layout = head.layout()
        assert isinstance(layout, QHBoxLayout)
        layout.insertWidget(0, self.tabs)
        layout.insertStretch(1, 1)
        self._pages = QStackedWidget()
        for part in (services, fed):
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


class FedPanel(Paper):
    """Both, for the store of a desk; asked once a second while it is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("lab.fed")
        self._lab: LabSession | None = None
        self._fed: tuple[TopicFed, ...] = ()
        self.answers = Facts(0)
        self.answers.setObjectName("lab.answers")
        self.answers.setAccessibleName(tr("Answers since the store was opened"))
        self._none = Elided("", 12, "text3")
        self.topic = ChoiceField()
        self.topic.setObjectName("lab.fed.topic")
        self.topic.setAccessibleName(tr("Topic whose queues are shown"))
        self.topic.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.topic.setMinimumContentsLength(12)
        self.topic.currentIndexChanged.connect(lambda _n: self._show_topic())
        self.words = Elided("", 12, "text2")
        self.words.setObjectName("lab.fed.words")
        self.bars = SkewBars("lab.skew")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        said = Label(tr("Answers since the store was opened"), 12, "text3")
        box.addWidget(column(said, self.answers, self._none, gap=3, margins=(12, 8, 12, 8)))
        box.addWidget(Hairline())
        box.addWidget(PaneHead(tr("Queues"), tr("how evenly they are fed"), self.topic))
        box.addWidget(column(self.words, self.bars, gap=4, margins=(12, 6, 12, 8)))
        box.addStretch(1)
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._fit()
        follow(self, self._fit)
        self.show_answers({})
        self.show_fed(())

    def _fit(self) -> None:
        self.topic.setFont(ui(12))
        self.topic.setFixedHeight(px(26))

    def set_lab(self, lab: LabSession) -> None:
        """The desk whose store is shown; once."""
        self._lab = lab
        lab.sampled.connect(self._sampled)
        lab.changed.connect(self._changed)

    def showEvent(self, event: QShowEvent) -> None:
        """Somebody looks."""
        super().showEvent(event)
        self._timer.start()
        self.look()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nobody looks: nothing is asked."""
        super().hideEvent(event)
        self._timer.stop()

    def look(self) -> None:
        """Ask how the queues are fed."""
        lab = self._lab
        if lab is not None and lab.alive:
            lab.begin(self._ask(lab))

    async def _ask(self, lab: LabSession) -> None:
        self.show_fed(await lab.fed(MOST_TOPICS))

    def _sampled(self, sample: PositionSample) -> None:
        if self.isVisible():
            self.show_answers(sample.statuses)

    def _changed(self) -> None:
        if self._lab is not None and not self._lab.there:
            self.show_answers({})
            self.show_fed(())

    def show_answers(self, statuses: Mapping[str, int]) -> None:
        """How often each status was answered."""
        facts = answer_facts(statuses)
        self.answers.show_facts(facts)
        self.answers.setVisible(bool(facts))
        self._none.setText("" if facts else tr("Nothing was put yet."))
        self._none.setVisible(not facts)

    def show_fed(self, fed: Sequence[TopicFed]) -> None:
        """The topics with their queues; the chosen one stays chosen."""
        self._fed = tuple(fed)
        names = [one.topic for one in self._fed]
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
        at = self.topic.currentIndex()
        if not 0 <= at < len(self._fed):
            self.bars.show_bars(())
            self.words.setText(tr("No queue has an entry yet."))
            return
        found = self._fed[at]
        self.bars.show_bars([(str(number_), count) for number_, count in found.queues], found.topic, "posBuild")
        counts = [count for _, count in found.queues]
        said = skew_words(counts)
        entries = tr("{n:,} entries in 1 queue", n=found.entries)
        if len(counts) > 1:
            entries = tr("{n:,} entries in {queues:,} queues", n=found.entries, queues=len(counts))
        self.words.setText(f"{entries} · {said}" if said else entries)
