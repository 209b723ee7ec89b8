"""Settings remembered between starts: typed keys over one readable INI file in the user's folder or in
``--config-dir``.

Nothing is kept in a store or in the working directory. A value that cannot be read counts as its default.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSettings, QStandardPaths

from engine.errors import StoreError
from engine.sentences import sentence

VERSION = 1
"""Version of the keys of the file."""
RECENT = 12
FILTERS = 50
INCIDENTS = 50
PORTABLE = "storescope.portable"
"""A file of this name beside the program keeps settings and cache beside it too."""


@dataclass(frozen=True, slots=True)
class RecentStore:
    """A store opened before, as it was then.

    ``facts`` are bytes of log, topics and messages; ``shares`` the largest topics' parts of the log.
    """

    path: str
    name: str
    when: int
    facts: tuple[int, int, int] = (0, 0, 0)
    state: str = ""
    word: str = ""
    shares: tuple[float, ...] = ()
    errors: int = 0
    warnings: int = 0
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class NamedLayout:
    """A profile: a layout with a name.

    It has the view in front, whether the tree is shown, the states of the splitters, the columns of tables by the
    table's name, and whether the time histogram is shown (None: as it is).
    """

    name: str
    view: str
    tree: bool
    states: dict[str, bytes]
    columns: dict[str, Any] = field(default_factory=dict)
    histogram: bool | None = None


class Settings:
    """The file, one property a key."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else default_folder()
        self.newer: StoreError | None = None
        """Set if a newer version of the program has written the file: it stays as it is, and another one is used."""
        self._file = QSettings(str(self.folder / "storescope.ini"), QSettings.Format.IniFormat)
        version = self._file.value("version", "1")  # files of version 0.8 and before have none
        if str(version) != str(VERSION):
            self.newer = StoreError(
                sentence(
                    "expected settings of version {version}, found {value}: a newer Storescope has written them, and "
                    "they stay as they are; this one keeps its own in {file}",
                    version=VERSION,
                    value=str(version),
                    file=f"storescope-{VERSION}.ini",
                ),
                file=self._file.fileName(),
            )
            self._file = QSettings(str(self.folder / f"storescope-{VERSION}.ini"), QSettings.Format.IniFormat)

    def sync(self) -> None:
        """Write what changed."""
        self._file.setValue("version", VERSION)
        self._file.sync()

    # ---- looks -------------------------------------------------------------------------------------------------------

    @property
    def theme(self) -> str:
        """``light``, ``dark`` or ``system``."""
        return self._word("look/theme", ("system", "light", "dark"))

    @theme.setter
    def theme(self, value: str) -> None:
        self._file.setValue("look/theme", value)

    @property
    def language(self) -> str:
        """``en``, ``zh_CN``, or ``system``."""
        return self._word("look/language", ("system", "en", "zh_CN"))

    @language.setter
    def language(self, value: str) -> None:
        self._file.setValue("look/language", value)

    @property
    def zoom(self) -> int:
        """Per cent."""
        return self._number("look/zoom", 100, 70, 200)

    @zoom.setter
    def zoom(self, value: int) -> None:
        self._file.setValue("look/zoom", value)

    @property
    def contrast(self) -> bool | None:
        """True if fills are off and frames strong; None: as the desktop says."""
        return self._choice("look/contrast")

    @contrast.setter
    def contrast(self, value: bool | None) -> None:
        self._choose("look/contrast", value)

    @property
    def motion(self) -> bool | None:
        """True if things may move and fade; None: as the desktop says."""
        return self._choice("look/motion")

    @motion.setter
    def motion(self, value: bool | None) -> None:
        self._choose("look/motion", value)

    # ---- layout ------------------------------------------------------------------------------------------------------

    @property
    def geometry(self) -> QByteArray:
        """The window's place and size, empty before the first close."""
        return self._bytes("layout/geometry")

    @geometry.setter
    def geometry(self, value: QByteArray) -> None:
        self._file.setValue("layout/geometry", value)

    @property
    def tree_shown(self) -> bool:
        """True if the store tree is shown beside the views."""
        return self._number("layout/tree", 1, 0, 1) == 1

    @tree_shown.setter
    def tree_shown(self, value: bool) -> None:
        self._file.setValue("layout/tree", int(value))

    @property
    def histogram_shown(self) -> bool:
        """True if the time histogram is shown over the rows."""
        return self._number("layout/histogram", 1, 0, 1) == 1

    @histogram_shown.setter
    def histogram_shown(self, value: bool) -> None:
        self._file.setValue("layout/histogram", int(value))

    @property
    def histogram_bytes(self) -> bool:
        """True if its bars show bytes, False if messages."""
        return self._number("layout/histogramBytes", 0, 0, 1) == 1

    @histogram_bytes.setter
    def histogram_bytes(self, value: bool) -> None:
        self._file.setValue("layout/histogramBytes", int(value))

    @property
    def restore(self) -> bool:
        """True if a start opens what stood in the window at the end."""
        return self._number("start/restore", 0, 0, 1) == 1

    @restore.setter
    def restore(self, value: bool) -> None:
        self._file.setValue("start/restore", int(value))

    def splitter(self, name: str) -> QByteArray:
        """Position of a splitter; empty if it was never dragged."""
        return self._bytes(f"layout/splitter.{name}")

    def set_splitter(self, name: str, state: QByteArray) -> None:
        """Remember it."""
        self._file.setValue(f"layout/splitter.{name}", state)

    def columns(self, name: str) -> object:
        """State of the columns of the table ``name`` (:mod:`viewer.widgets.table_columns`), or None."""
        try:
            return json.loads(str(self._file.value(f"layout/columns.{name}", "null")))
        except ValueError:
            return None

    def set_columns(self, name: str, state: object) -> None:
        """Save the state of a table's columns; an empty state is removed."""
        if state:
            self._file.setValue(f"layout/columns.{name}", json.dumps(state))
        else:
            self._file.remove(f"layout/columns.{name}")

    @property
    def named_layouts(self) -> list[NamedLayout]:
        """Layouts that were saved, in the order in which they were."""
        return [layout for item in self._json("layouts/named") if (layout := _named_layout(item)) is not None]

    @named_layouts.setter
    def named_layouts(self, value: list[NamedLayout]) -> None:
        saved_layouts = [
            {
                **asdict(layout),
                "states": {name: base64.b64encode(state).decode() for name, state in layout.states.items()},
            }
            for layout in value
        ]
        self._file.setValue("layouts/named", json.dumps(saved_layouts))

    def reset_layout(self) -> None:
        """Forget every size and place."""
        self._file.remove("layout")

    def incident_look(self, store: str) -> str:
        """Form in which the incident of a store was last shown: ``line``, ``card`` or ``table``; "" if the user
        never chose.
        """
        return next((look for path, look in self._incidents() if path == store), "")

    def set_incident_look(self, store: str, look: str) -> None:
        """Save the form in which the incident of a store is shown."""
        looks = [(store, look), *(entry for entry in self._incidents() if entry[0] != store)][:INCIDENTS]
        self._file.setValue("incident/looks", json.dumps(looks))

    def _incidents(self) -> list[tuple[str, str]]:
        return [(item[0], item[1]) for item in self._json("incident/looks") if _is_texts(item, 2)]

    # ---- stores and filters ------------------------------------------------------------------------------------------

    @property
    def recent(self) -> list[RecentStore]:
        """Stores opened before, newest first."""
        stores = []
        for item in self._json("recent/stores"):
            if isinstance(item, dict) and isinstance(item.get("path"), str):
                values = {f.name: item[f.name] for f in fields(RecentStore) if f.name in item}
                values["shares"] = tuple(s for s in values.get("shares") or () if isinstance(s, int | float))
                counts = values.get("facts")
                listed = tuple(counts) if isinstance(counts, list) else ()
                sound = len(listed) == 3 and all(isinstance(n, int) for n in listed)
                values["facts"] = listed if sound else (0, 0, 0)
                try:
                    stores.append(RecentStore(**values))
                except TypeError:
                    continue
        return stores

    def remember(self, store: RecentStore) -> None:
        """Put ``store`` first, behind those that are pinned; it stays pinned where it was."""
        stores_by_path = {path.path: path for path in self.recent}
        old = stores_by_path.pop(store.path, None)
        self._keep_recent(
            [replace(store, pinned=store.pinned or (old is not None and old.pinned)), *stores_by_path.values()]
        )

    def pin(self, path: str) -> None:
        """Pin the store at ``path``, or let it go again."""
        self._keep_recent([replace(store, pinned=store.pinned != (store.path == path)) for store in self.recent])

    def _keep_recent(self, stores: list[RecentStore]) -> None:
        saved = sorted(stores, key=lambda store: not store.pinned)[:RECENT]
        self._file.setValue("recent/stores", json.dumps([asdict(store) for store in saved]))

    def forget_recent(self) -> None:
        """Clear the list; what is pinned stays."""
        self._keep_recent([store for store in self.recent if store.pinned])

    @property
    def filters(self) -> list[str]:
        """Filters used before, newest first."""
        return [text for text in self._json("filter/used") if isinstance(text, str)]

    def remember_filter(self, text: str) -> None:
        """Put ``text`` first."""
        used = [text, *(used_text for used_text in self.filters if used_text != text)][:FILTERS]
        self._file.setValue("filter/used", json.dumps(used))

    @property
    def saved_filters(self) -> list[tuple[str, str]] | None:
        """(name, text) of the filters on buttons; None if the user has not changed them yet."""
        if self._file.value("filter/saved") is None:
            return None
        return [(item[0], item[1]) for item in self._json("filter/saved") if _is_texts(item, 2)]

    @saved_filters.setter
    def saved_filters(self, value: list[tuple[str, str]]) -> None:
        self._file.setValue("filter/saved", json.dumps(value))

    @property
    def colour_rules(self) -> list[dict[str, Any]]:
        """Colouring rules as they were kept, in order; :mod:`viewer.log.colour_rules` reads them."""
        return [item for item in self._json("filter/colours") if isinstance(item, dict)]

    @colour_rules.setter
    def colour_rules(self, value: list[dict[str, Any]]) -> None:
        self._file.setValue("filter/colours", json.dumps(value))

    @property
    def sought(self) -> list[str]:
        """Search terms used before, newest first."""
        return [text for text in self._json("find/used") if isinstance(text, str)]

    def remember_sought(self, text: str) -> None:
        """Put ``text`` first."""
        used = [text, *(used_text for used_text in self.sought if used_text != text)][:FILTERS]
        self._file.setValue("find/used", json.dumps(used))

    @property
    def questions(self) -> list[str]:
        """Questions in SQL that were asked before, newest first."""
        return [text for text in self._json("sql/used") if isinstance(text, str)]

    def remember_question(self, text: str) -> None:
        """Put ``text`` first."""
        used = [text, *(used_text for used_text in self.questions if used_text != text)][:FILTERS]
        self._file.setValue("sql/used", json.dumps(used))

    @property
    def inspector_shown(self) -> bool:
        """True if the data inspector is shown beside the bytes."""
        return self._number("look/inspector", 0, 0, 1) == 1

    @inspector_shown.setter
    def inspector_shown(self, value: bool) -> None:
        self._file.setValue("look/inspector", int(value))

    @property
    def repair_docked(self) -> bool:
        """True if the bench of repairs is a panel of the window, not a window of its own."""
        return self._number("look/repairDocked", 0, 0, 1) == 1

    @repair_docked.setter
    def repair_docked(self, value: bool) -> None:
        self._file.setValue("look/repairDocked", int(value))

    @property
    def clusters(self) -> list[str]:
        """Name servers of clusters that were looked at before, newest first."""
        return [text for text in self._json("cluster/used") if isinstance(text, str)]

    def remember_cluster(self, addresses: str) -> None:
        """Put these name servers first."""
        used = [addresses, *(used_addresses for used_addresses in self.clusters if used_addresses != addresses)][
            :RECENT
        ]
        self._file.setValue("cluster/used", json.dumps(used))

    def cluster_access(self, addresses: str) -> tuple[str, str]:
        """Return the paths of the account file and the TLS file last used with these name servers; "" for none."""
        return next(((account, tls) for saved, account, tls in self._access() if saved == addresses), ("", ""))

    def set_cluster_access(self, addresses: str, account: str, tls: str) -> None:
        """Save the paths of both files; never what is in them."""
        others = [entry for entry in self._access() if entry[0] != addresses]
        entries = [(addresses, account, tls), *others] if account or tls else others
        self._file.setValue("cluster/access", json.dumps(entries[:RECENT]))

    def _access(self) -> list[tuple[str, str, str]]:
        return [(item[0], item[1], item[2]) for item in self._json("cluster/access") if _is_texts(item, 3)]

    @property
    def own_clusters(self) -> dict[str, frozenset[str]]:
        """Name servers of the clusters that the user declared their own → addresses of their brokers at that time."""
        return {
            item[0]: frozenset(item[1])
            for item in self._json("cluster/own")
            if isinstance(item, list)
            and len(item) == 2
            and isinstance(item[0], str)
            and isinstance(item[1], list)
            and all(isinstance(broker, str) for broker in item[1])
        }

    @own_clusters.setter
    def own_clusters(self, value: dict[str, frozenset[str]]) -> None:
        self._file.setValue("cluster/own", json.dumps([[names, sorted(brokers)] for names, brokers in value.items()]))

    @property
    def lab_folder(self) -> Path:
        """Folder in which lab stores are made."""
        saved_folder = self._file.value("lab/folder")
        return (
            Path(saved_folder) if isinstance(saved_folder, str) and saved_folder else Path.home() / "storescope" / "lab"
        )

    @lab_folder.setter
    def lab_folder(self, value: Path) -> None:
        self._file.setValue("lab/folder", str(value))

    # ---- below -------------------------------------------------------------------------------------------------------

    def _word(self, key: str, permitted: tuple[str, ...]) -> str:
        value = self._file.value(key, permitted[0])
        return value if value in permitted else permitted[0]

    def _choice(self, key: str) -> bool | None:
        return {"0": False, "1": True}.get(str(self._file.value(key)))

    def _choose(self, key: str, value: bool | None) -> None:
        if value is None:
            self._file.remove(key)
        else:
            self._file.setValue(key, int(value))

    def _number(self, key: str, default: int, minimum: int, maximum: int) -> int:
        try:
            return min(max(int(str(self._file.value(key, default))), minimum), maximum)
        except ValueError:
            return default

    def _bytes(self, key: str) -> QByteArray:
        value = self._file.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()

    def _json(self, key: str) -> list[Any]:
        try:
            value = json.loads(str(self._file.value(key, "[]")))
        except ValueError:
            return []
        return value if isinstance(value, list) else []


def _is_texts(item: object, count: int) -> bool:
    return isinstance(item, list) and len(item) == count and all(isinstance(part, str) for part in item)


def portable_folder() -> Path | None:
    """The folder of a portable copy: ``storescope-data`` beside the program, where a file ``storescope.portable`` lies
    there too; None for a program that is installed.
    """
    program = Path(sys.executable if getattr(sys, "frozen", False) else sys.argv[0] or ".")
    beside = program.absolute().parent
    return beside / "storescope-data" if (beside / PORTABLE).is_file() else None


def default_folder() -> Path:
    """Return the desktop's folder for settings of this user, or one beside a portable program."""
    portable = portable_folder()
    if portable is not None:
        return portable
    base = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
    return Path(base) / "storescope"


def default_cache() -> Path:
    """Return the desktop's folder for files that can be made again (unpacked samples, side indexes), or one beside a
    portable program.
    """
    portable = portable_folder()
    if portable is not None:
        return portable / "cache"
    base = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericCacheLocation)
    return Path(base) / "storescope"


def _named_layout(item: object) -> NamedLayout | None:
    """A layout as it was kept; None where it cannot be read."""
    match item:
        case {"name": str(name), "view": str(view), "tree": bool(tree), "states": dict(states), **rest} if name:
            try:
                read = {str(part): base64.b64decode(state, validate=True) for part, state in states.items()}
            except (ValueError, TypeError):
                return None
            columns, histogram = rest.get("columns"), rest.get("histogram")
            return NamedLayout(
                name,
                view,
                tree,
                read,
                columns if isinstance(columns, dict) else {},
                histogram if isinstance(histogram, bool) else None,
            )
    return None
