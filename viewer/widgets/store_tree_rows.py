"""The store as a tree: log, topics with queues, index files, groups, tables, checkpoint, abort. Structure only, never
rows.

A node knows its words, its count, its mark and the place it leads to. The model is built anew from a survey; what was
open stays open because nodes have names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from viewer.look.assets import tr
from viewer.look.formats import clock, number, plain, size
from viewer.look.topic_kinds import kind_words

Index = QModelIndex | QPersistentModelIndex
NOT_KNOWN = "?"
RANK = {"": 0, "chat": 1, "note": 2, "warn": 3, "error": 4, "unread": 5}
NodeRole = int(Qt.ItemDataRole.UserRole)
ValueRole = int(Qt.ItemDataRole.UserRole) + 1


@dataclass(eq=False)
class Node:
    """One line. ``name`` is stable between two surveys; ``place`` is what a click leads to, None for headings."""

    name: str
    text: str
    badge: str = ""
    icon: str = ""
    topic: str = ""
    place: object | None = None
    strong: bool = False
    dim: bool = False
    value: object = None
    own_mark: str = ""
    mark: str = ""
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None
    row: int = 0

    def add(self, child: Node) -> Node:
        """Put ``child`` last."""
        child.parent, child.row = self, len(self.children)
        self.children.append(child)
        return child


class StoreTree(QAbstractItemModel):
    """The nodes under one root, one column."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.root = Node("", "")
        self._by_name: dict[str, Node] = {}
        self._marked: tuple[dict[str, str], tuple[str, ...]] | None = None

    def set_nodes(self, nodes: Iterable[Node]) -> bool:
        """Show these nodes; False where the same lines stand there with other words, and nothing was built anew."""
        nodes = list(nodes)
        if self._renewed(nodes):
            return False
        self.beginResetModel()
        self.root = Node("", "")
        for node in nodes:
            self.root.add(node)
        self._by_name = {node.name: node for node in walk(self.root)}
        self._marked = None
        self._climb(self.root)
        self.endResetModel()
        return True

    def _renewed(self, nodes: list[Node]) -> bool:
        """Put the words of ``nodes`` into the lines that are there, where they are the same lines."""
        top = Node("", "", children=nodes)
        held, new = list(walk(self.root)), list(walk(top))
        if not held or [(one.name, len(one.children)) for one in held] != [(o.name, len(o.children)) for o in new]:
            return False
        for one, other in zip(held, new, strict=True):
            shown = (one.text, one.badge, one.value)
            one.text, one.badge, one.value = other.text, other.badge, other.value
            one.place, one.strong, one.dim, one.own_mark = other.place, other.strong, other.dim, other.own_mark
            if shown != (one.text, one.badge, one.value):
                index = self.createIndex(one.row, 0, one)
                self.dataChanged.emit(index, index)
        return True

    def set_marks(self, marks: Mapping[str, str]) -> None:
        """Node name → worst severity found in it; marks climb to the root's children."""
        asked = dict(marks), tuple(node.own_mark for node in self._by_name.values())
        if asked == self._marked:
            return
        self._marked = asked
        self.layoutAboutToBeChanged.emit()
        for node in self._by_name.values():
            found = marks.get(node.name, "")
            node.mark = max(found, node.own_mark, key=lambda kind: RANK.get(kind, 0))
        for top in self.root.children:
            self._climb(top)
        self.layoutChanged.emit()

    def _climb(self, node: Node) -> str:
        worst = max([node.mark, node.own_mark], key=lambda kind: RANK.get(kind, 0))
        for child in node.children:
            worst = max(worst, self._climb(child), key=lambda kind: RANK.get(kind, 0))
        node.mark = worst
        return worst

    def node(self, index: Index) -> Node:
        """The node at ``index``; the root for an invalid one."""
        found = index.internalPointer() if index.isValid() else None
        return found if isinstance(found, Node) else self.root

    def index_of(self, name: str) -> QModelIndex:
        """Where the node of that name stands; invalid where there is none."""
        node = self._by_name.get(name)
        return self.createIndex(node.row, 0, node) if node is not None else QModelIndex()

    def find(self, name: str) -> Node | None:
        """The node of that name."""
        return self._by_name.get(name)

    # ---- Qt's questions ----------------------------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008 (Qt's signature)
        """The index of a child."""
        children = self.node(parent).children
        return (
            self.createIndex(row, column, children[row]) if 0 <= row < len(children) and column == 0 else QModelIndex()
        )

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        """The index of a node's parent."""
        above = self.node(index).parent
        return QModelIndex() if above is None or above is self.root else self.createIndex(above.row, 0, above)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Children of a node."""
        return len(self.node(parent).children)

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        """One."""
        return 1

    def data(self, index: Index, role: int = 0) -> Any:
        """Words, what a screen reader says, the node."""
        node = self.node(index)
        if role == 0:
            return node.text
        if role == NodeRole:
            return node
        if role == ValueRole:
            return node.value
        if role == 11:  # AccessibleTextRole
            return ", ".join(
                part for part in (_spoken(node.mark), node.text, kind_words(node.topic), node.badge) if part
            )
        if role == 3:  # ToolTipRole
            kind = kind_words(node.topic)
            return f"{node.text}  {node.badge}".strip() + (f"\n{kind}" if kind else "")
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        """The one head."""
        return tr("Store") if role == 0 and section == 0 and orientation == Qt.Orientation.Horizontal else None


def walk(node: Node) -> Iterable[Node]:
    """Every node below ``node``."""
    for child in node.children:
        yield child
        yield from walk(child)


def short_count(count: int) -> str:
    """``41,208`` · ``388 k`` · ``7.4 M`` · ``1.2 G``: as wide as a tree's edge."""
    if count < 100_000:
        return number(count)
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count // 1000} k"


def _spoken(mark: str) -> str:
    return {"error": tr("error"), "warn": tr("warning"), "note": tr("note"), "unread": tr("cannot be read")}.get(
        mark, ""
    )


def store_nodes(
    survey: Any, places: Any, is_system: Any, order: Sequence[str] = (), counted: Mapping[str, int] | None = None
) -> list[Node]:
    """The tree of a survey; ``places`` is the module that makes places, ``is_system`` tells RocketMQ's own topics.
    Topics stand by their bytes, those of ``order`` as they stand there. A log without queues has those that its units
    tell, ``counted`` by bytes.
    """
    held = size(survey.log_bytes) if survey.log_bytes or survey.all_readable else NOT_KNOWN
    nodes = [Node("log", tr("Commit log"), held, "log", place=places.log(), strong=True)]
    if survey.kind != "store":
        return [*nodes, *_counted_nodes(counted or {}, places)]
    if survey.unqueued and (counted or survey.log_bytes):
        nodes += _counted_nodes(counted or {}, places) or [_topics_heading("", places)]
    else:
        nodes.append(_topic_nodes(survey, places, is_system, order))
    nodes.append(_index_nodes(survey, places))
    if survey.groups:
        groups = places.Place("groups")
        nodes.append(Node("groups", tr("Consumer groups"), number(survey.groups), "follow", place=groups, strong=True))
    if survey.tables:
        config = Node(
            "config", tr("Config"), number(len(survey.tables)), "config", place=places.Place("config"), strong=True
        )
        for name in survey.tables:
            config.add(Node(f"config/{name}", name, "", dim=True, place=places.Place("config", name=name)))
        nodes.append(config)
    if survey.has_checkpoint:
        when = clock(survey.checkpoint)[:8] if survey.checkpoint else tr("empty") if survey.all_readable else NOT_KNOWN
        nodes.append(Node("checkpoint", "checkpoint", when, "file", place=places.Place("checkpoint")))
    if survey.abort:
        running = survey.lock == "held"
        nodes.append(
            Node(
                "abort", "abort", tr("present"), "file", place=places.Place("abort"), own_mark="" if running else "warn"
            )
        )
    return nodes


def _topics_heading(badge: str, places: Any) -> Node:
    return Node("topics", tr("Topics"), badge, "queue", place=places.Place("queue"), strong=True)


def _counted_nodes(counted: Mapping[str, int], places: Any) -> list[Node]:
    """The topics of a log without queues, the largest first; each leads to its units."""
    if not counted:
        return []
    from engine.query import quote  # only where a log by itself has topics

    top = Node("topics", tr("Topics"), number(len(counted)), "queue", strong=True)
    for name, held in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
        where = places.Place("filter", name=f"topic = {quote(name)}", part="only")
        top.add(Node(f"topic/{name}", plain(name), size(held), topic=name, place=where, value=held))
    return [top]


def _topic_nodes(survey: Any, places: Any, is_system: Any, order: Sequence[str]) -> Node:
    top = _topics_heading(number(len(survey.topics)), places)
    own = sorted((t for t in survey.topics if not is_system(t.name)), key=lambda t: (-t.bytes, t.name))
    if len(own) > 1:
        top.text = tr("Topics, by bytes")
    if {topic.name for topic in own} == set(order):  # lines do not change places while a store grows
        own.sort(key=lambda topic: order.index(topic.name))
    system = [t for t in survey.topics if is_system(t.name)]
    for topic in own:
        top.add(_topic_node(topic, places))
    if system:
        group = top.add(Node("system", tr("System topics"), number(len(system)), dim=True))
        for topic in system:
            group.add(_topic_node(topic, places))
    return top


def _topic_node(topic: Any, places: Any) -> Node:
    count = short_count(topic.count) if topic.known else NOT_KNOWN
    node = Node(
        f"topic/{topic.name}",
        plain(topic.name),
        count,
        topic=topic.name,
        place=places.queue(topic.name),
        value=topic.count,
    )
    for one in topic.queues:
        count = NOT_KNOWN if one.note else number(one.count)
        node.add(
            Node(
                f"queue/{topic.name}/{one.queue_id}",
                tr("Queue {number}", number=one.queue_id),
                count,
                place=places.queue(topic.name, one.queue_id),
                dim=True,
                value=one.count,
                own_mark="unread" if one.unread else "error" if one.note else "",
            )
        )
    return node


def _index_nodes(survey: Any, places: Any) -> Node:
    count = number(len(survey.index)) if survey.index or survey.all_readable else NOT_KNOWN
    top = Node("index", tr("Index files"), count, "index", place=places.index(), strong=True)
    for file in survey.index:
        badge = short_count(file.count) if file.count >= 0 else tr("unreadable" if file.unread else "damaged")
        top.add(
            Node(
                f"index/{file.name}",
                file.name,
                badge,
                place=places.index(file.name),
                dim=True,
                value=file.count,
                own_mark="" if file.count >= 0 else "unread" if file.unread else "error",
            )
        )
    return top


def node_of_file(path: str) -> str:
    """Name of the node that a file belongs to, by its path relative to the store: where a finding's mark is set."""
    parts = [part for part in path.split("/") if part]
    for number_, part in enumerate(parts):
        rest = parts[number_ + 1 :]
        if part == "commitlog":
            return "log"
        if part in {"consumequeue", "consumequeue_ext", "batchconsumequeue"}:
            return f"queue/{rest[0]}/{rest[1]}" if len(rest) >= 2 else f"topic/{rest[0]}" if rest else "topics"
        if part == "index":
            return f"index/{rest[0]}" if rest else "index"
        if part == "config":
            return f"config/{rest[0].removesuffix('.bak')}" if rest else "config"
        if part in {"checkpoint", "abort"} and not rest:
            return part
    return ""
