"""Colours of a store's topics.

They belong to the store, whatever else is open. Each view has an ancestor widget that knows its store's colours;
painting code gets them with :func:`colours_of`.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from viewer.look.theme import TOPICS_DARK, TOPICS_LIGHT, theme
from viewer.look.topic_kinds import is_system_topic

PLACES = len(TOPICS_LIGHT)


class TopicColours(QObject):
    """The topics of one store that have a colour. ``changed`` when a colour is another topic's."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.order: tuple[str, ...] = ("",) * PLACES
        """The topic of each colour; "" for a free colour."""
        self._largest: tuple[str, ...] = ()
        self._seen: tuple[str, ...] = ()
        self._lender: TopicColours | None = None

    def offer(self, largest_first: Sequence[str]) -> None:
        """Give colours to the first eight user topics of the store, by bytes, largest first.

        A topic keeps its colour: topics that grow alike overtake each other all the time.
        """
        self._largest = _own(largest_first)
        self._arrange()

    def fill(self, largest_first: Sequence[str]) -> None:
        """Give the free colours to topics that were seen in the log, largest first."""
        self._seen += tuple(topic for topic in _own(largest_first) if topic not in self._seen)
        self._arrange()

    def follow(self, lender: TopicColours) -> None:
        """Topics of the same name get the colours that they have in ``lender``, the store this one is tied to."""
        self._lender, self.order = lender, ("",) * PLACES
        lender.changed.connect(self._arrange)
        self._arrange()

    def color(self, topic: str) -> QColor | None:
        """The topic's own colour, None for a system topic and for all behind the eighth."""
        if not topic or topic not in self.order:
            return None
        return QColor((TOPICS_DARK if theme.dark else TOPICS_LIGHT)[self.order.index(topic)])

    def _arrange(self) -> None:
        """Return the colour places: first those that the lender gives, then those of topics, then free ones."""
        known_topics = dict.fromkeys(self._largest + self._seen)
        wanted_topics = list(dict.fromkeys(self._largest[:PLACES] + self._seen))[:PLACES]
        lent = self._lender.order if self._lender is not None else ("",) * PLACES
        order = [topic if topic in known_topics else "" for topic in lent]
        for place, topic in enumerate(self.order):
            if not order[place] and topic in wanted_topics and topic not in order:
                order[place] = topic
        free = sorted((place for place in range(PLACES) if not order[place]), key=lambda place: bool(lent[place]))
        for place, topic in zip(free, [topic for topic in wanted_topics if topic not in order], strict=False):
            order[place] = topic
        if tuple(order) != self.order:
            self.order = tuple(order)
            self.changed.emit()


def _own(topics: Sequence[str]) -> tuple[str, ...]:
    return tuple(topic for topic in topics if topic and not is_system_topic(topic))


_NONE = TopicColours()


def colours_of(widget: QWidget | None) -> TopicColours:
    """Return the topic colours of the store that ``widget`` shows: those of the nearest view or window around it."""
    while widget is not None:
        colours = getattr(widget, "topic_colours", None)
        if isinstance(colours, TopicColours):
            return colours
        widget = widget.parentWidget()
    return _NONE
