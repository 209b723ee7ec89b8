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
    """A line of the tree. ``name`` is stable between two surveys; ``place`` is where a click leads, None for
    headings.
    """

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
        """Append ``child``."""
        child.parent, child.row = self, len(self.children)
        self.children.append(child)
        return child


class StoreTree(QAbstractItemModel):
    """A tree model of the nodes under one root, with one column."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.root = Node("", "")
        self._by_name: dict[str, Node] = {}
        self._marked: tuple[dict[str, str], tuple[str, ...]] | None = None

    def set_nodes(self, nodes: Iterable[Node]) -> bool:
        """Show these nodes. Returns False if the lines are the same and only their words have changed."""
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
        """Copy the words of ``nodes`` into the existing lines, if the lines are the same."""
        top = Node("", "", children=nodes)
        old_nodes, new_nodes = list(walk(self.root)), list(walk(top))
        if not old_nodes or [(old_node.name, len(old_node.children)) for old_node in old_nodes] != [
            (node.name, len(node.children)) for node in new_nodes
        ]:
            return False
        for old_node, new_node in zip(old_nodes, new_nodes, strict=True):
            shown = (old_node.text, old_node.badge, old_node.value)
            old_node.text, old_node.badge, old_node.value = new_node.text, new_node.badge, new_node.value
            old_node.place, old_node.strong, old_node.dim, old_node.own_mark = (
                new_node.place,
                new_node.strong,
                new_node.dim,
                new_node.own_mark,
            )
            if shown != (old_node.text, old_node.badge, old_node.value):
                index = self.createIndex(old_node.row, 0, old_node)
                self.dataChanged.emit(index, index)
        return True

    def set_marks(self, marks: Mapping[str, str]) -> None:
        """Set the worst severity by node name. Marks climb to the root's children."""
        marked = dict(marks), tuple(node.own_mark for node in self._by_name.values())
        if marked == self._marked:
            return
        self._marked = marked
        self.layoutAboutToBeChanged.emit()
        for node in self._by_name.values():
            severity = marks.get(node.name, "")
            node.mark = max(severity, node.own_mark, key=lambda kind: RANK.get(kind, 0))
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
        node = index.internalPointer() if index.isValid() else None
        return node if isinstance(node, Node) else self.root

    def index_of(self, name: str) -> QModelIndex:
        """The index of the node with that name; invalid if there is none."""
        node = self._by_name.get(name)
        return self.createIndex(node.row, 0, node) if node is not None else QModelIndex()

    def find(self, name: str) -> Node | None:
        """The node with that name."""
        return self._by_name.get(name)

    # ---- Qt model ----------------------------------------------------------------------------------------------------

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
    """Yield every node below ``node``."""
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
    """Build the tree of a survey. ``places`` is the module that makes places; ``is_system`` returns whether a topic
    is RocketMQ's own. Topics are sorted by bytes; those in ``order`` keep that order. A log without queues has
    the topics of its units, ``counted`` by bytes.
    """
    log_size = size(survey.log_bytes) if survey.log_bytes or survey.all_readable else NOT_KNOWN
    nodes = [Node("log", tr("Commit log"), log_size, "log", place=places.log(), strong=True)]
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
    if survey.row_subjects:
        rows_place = places.Place("rows")
        nodes.append(Node("rows", tr("Rows in a RocksDB"), "", "file", place=rows_place, strong=True))
    if survey.has_checkpoint:
        checkpoint_time = (
            clock(survey.checkpoint)[:8] if survey.checkpoint else tr("empty") if survey.all_readable else NOT_KNOWN
        )
        nodes.append(Node("checkpoint", "checkpoint", checkpoint_time, "file", place=places.Place("checkpoint")))
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
    """The nodes of the topics of a log without queues, the largest first. Each leads to its units."""
    if not counted:
        return []
    from engine.query import quote  # needed only for a log without queues

    top = Node("topics", tr("Topics"), number(len(counted)), "queue", strong=True)
    for name, topic_bytes in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        place = places.Place("filter", name=f"topic = {quote(name)}", part="only")
        top.add(Node(f"topic/{name}", plain(name), size(topic_bytes), topic=name, place=place, value=topic_bytes))
    return [top]


def _topic_nodes(survey: Any, places: Any, is_system: Any, order: Sequence[str]) -> Node:
    top = _topics_heading(number(len(survey.topics)) if survey.topics or survey.all_readable else NOT_KNOWN, places)
    user_topics = sorted((t for t in survey.topics if not is_system(t.name)), key=lambda t: (-t.bytes, t.name))
    if len(user_topics) > 1:
        top.text = tr("Topics, by bytes")
    if {topic.name for topic in user_topics} == set(order):  # keep the order while a store grows
        user_topics.sort(key=lambda topic: order.index(topic.name))
    system = [t for t in survey.topics if is_system(t.name)]
    for topic in user_topics:
        top.add(_topic_node(topic, places))
    if system:
        group = top.add(Node("system", tr("System topics"), number(len(system)), dim=True))
        for topic in system:
            group.add(_topic_node(topic, places))
    return top


def _topic_node(topic: Any, places: Any) -> Node:
    count = _in_tiered(short_count(topic.count) if topic.known else NOT_KNOWN, topic)
    node = Node(
        f"topic/{topic.name}",
        plain(topic.name),
        count,
        topic=topic.name,
        place=places.queue(topic.name),
        value=topic.count,
    )
    for queue in topic.queues:
        count = _in_tiered(NOT_KNOWN if queue.note else number(queue.count), queue)
        node.add(
            Node(
                f"queue/{topic.name}/{queue.queue_id}",
                tr("Queue {number}", number=queue.queue_id),
                count,
                place=places.queue(topic.name, queue.queue_id),
                dim=True,
                value=queue.count,
                own_mark="unread" if queue.unread else "error" if queue.note else "",
            )
        )
    return node


def _in_tiered(count: str, facts: Any) -> str:
    """The number of messages of a topic or queue, marked if only tiered storage has them."""
    return tr("{count} tiered", count=count) if facts.is_moved else count


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
    """Return the name of the node for a file, by its path relative to the store. A finding's mark is set on that
    node.
    """
    parts = [part for part in path.split("/") if part]
    for index, part in enumerate(parts):
        parts_below = parts[index + 1 :]
        if part == "commitlog":
            return "log"
        if part in {"consumequeue", "consumequeue_ext", "batchconsumequeue"}:
            return (
                f"queue/{parts_below[0]}/{parts_below[1]}"
                if len(parts_below) >= 2
                else f"topic/{parts_below[0]}"
                if parts_below
                else "topics"
            )
        if part == "index":
            return f"index/{parts_below[0]}" if parts_below else "index"
        if part == "config":
            return f"config/{parts_below[0].removesuffix('.bak')}" if parts_below else "config"
        if part in {"checkpoint", "abort"} and not parts_below:
            return part
    return ""
