"""Decide which folders belong to a store; this is the only place that does.

A store is the folder that the user named. A broker's configuration holds absolute paths of the machine for which
it was written, and these often name another store on this machine: the live one, of which the named folder is a
copy.

- A path inside the named folder is part of the store.
- A path below ``storePathRootDir`` means the same part of the named folder, unless another store is at
``storePathRootDir`` on this machine.
- Every other path is outside. Commands that write refuse it, unless the user said ``--paths-from-config``.
Commands that read do not follow it, unless the configuration names the store itself.

"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.sentences import sentence

LOG_FOLDER = "commitlog"
ROOT_KEY = "storePathRootDir"
LOG_KEY = "storePathCommitLog"
READ_ONLY_KEY = "readOnlyCommitLogStorePaths"
_SPLITTERS = re.compile("[,;]")  # RocketMQ's separator, and the one that many configurations use instead
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


class OutsidePath(UsageError):
    """A configuration leads out of the store that was named."""


@dataclass(frozen=True, slots=True)
class ConfiguredPath:
    """A path in a configuration.

    ``place`` is the part of the named store that it means, None if it is outside. ``is_there`` is True if
    something exists at ``path`` on this machine.

    """

    key: str
    path: str
    place: Path | None
    is_there: bool

    @property
    def is_mapped(self) -> bool:
        """True if the path means the named store under another root."""
        return self.place is not None and _lexical(self.path) != _lexical(self.place)


@dataclass(frozen=True, slots=True)
class StoreFolders:
    """The folders of the store at ``root`` under a configuration.

    ``log`` are the folders of the commit log, with those of ``read_only`` last. ``outside`` are the paths that
    are not followed, ``followed`` those outside of ``root`` that are.

    """

    root: Path
    log: tuple[Path, ...]
    read_only: tuple[Path, ...]
    paths: tuple[ConfiguredPath, ...]
    outside: tuple[ConfiguredPath, ...]
    followed: tuple[ConfiguredPath, ...]
    file: str | None

    def refuse_outside(self) -> None:
        """Raise :class:`OutsidePath` with both folders if the configuration leads out of the store."""
        if self.outside:
            raise OutsidePath(sentence("{problem}: nothing was changed", problem=self.outside_words), file=self.file)

    @property
    def written(self) -> tuple[Path, ...]:
        """The folders that a writer changes: the store, and those of its log that lie elsewhere."""
        elsewhere = (folder for folder in self.log if self.root not in folder.parents)
        return (self.root, *(folder for folder in elsewhere if folder not in self.read_only))

    @property
    def outside_words(self) -> str:
        """A sentence about the path outside, with both folders; empty if there is none."""
        if not self.outside:
            return ""
        worst = next((path for path in self.outside if path.key == LOG_KEY), self.outside[0])
        return sentence(
            "{key}={path} leads to another store; the store that was named is {root}"
            if worst.is_there
            else "{key}={path} is not of this store; the store that was named is {root}",
            key=worst.key,
            path=worst.path,
            root=self.root.absolute(),
        )

    @property
    def words(self) -> tuple[str, ...]:
        """Sentences that the user of the store should know about the paths."""
        sentences: list[str] = []
        if self.outside:
            read = ", ".join(map(str, self.log))
            sentences.append(sentence("{problem}. Its own log was read: {log}", problem=self.outside_words, log=read))
        mapped = [path for path in self.paths if path.is_mapped and path.key in (LOG_KEY, READ_ONLY_KEY)]
        sentences += [
            sentence("{key}={path} was read as {place}", key=path.key, path=path.path, place=path.place)
            for path in mapped
        ]
        if self.followed:
            log = ", ".join(map(str, self.log))
            sentences.append(
                sentence("The log was read in the folders that {key} names: {log}", key=self.followed[0].key, log=log)
            )
        return tuple(sentences)


def settle_folders(root: Path, config: MessageStoreConfig | None, *, reading: bool = False) -> StoreFolders:
    """Return the folders of the store at ``root`` under ``config``. Reads the disk, changes nothing.

    With ``reading`` log folders outside are followed if the configuration names ``root`` as its root, or as one
    of its log folders.

    """
    config = config or MessageStoreConfig()
    if not config.paths:
        return StoreFolders(root, (root / LOG_FOLDER,), (), (), (), (), config.file)
    paths = _places(root, config)
    follows = config.paths_from_config or (reading and _speaks_of(root, config, paths))
    logs = [path for path in paths if path.key in (LOG_KEY, READ_ONLY_KEY)]
    followed = tuple(path for path in logs if path.place is None) if follows else ()
    outside = (
        () if config.paths_from_config else tuple(path for path in paths if path.place is None and path not in followed)
    )
    log, read_only = _followed(logs, LOG_KEY, follows), _followed(logs, READ_ONLY_KEY, follows)
    folders = tuple(dict.fromkeys((*log, *read_only))) or (root / LOG_FOLDER,)
    return StoreFolders(root, folders, read_only, paths, outside, followed, config.file)


def tiered_folder(root: Path, config: MessageStoreConfig) -> Path | None:
    """Return the folder of tiered storage that ``config`` names, None if it names none of this store. Only for reading.

    A folder outside of the store is followed as one of the log is.
    """
    path, other_root = config.tiered_store_file_path.strip(), config.store_path_root_dir.strip()
    if not path:
        return None
    place = _within(path, root)
    if place is None and other_root and not _same_folder(other_root, root) and not _holds_something(other_root):
        relative_path = _relative(path, other_root)
        place = root / relative_path if relative_path is not None else None
    follows = config.paths_from_config or _speaks_of(root, config, _places(root, config))
    return place or (Path(path) if follows else None)


def _followed(logs: list[ConfiguredPath], key: str, follows: bool) -> tuple[Path, ...]:
    places = [path.place or (Path(path.path) if follows else None) for path in logs if path.key == key]
    return tuple(dict.fromkeys(place for place in places if place is not None))


def _places(root: Path, config: MessageStoreConfig) -> tuple[ConfiguredPath, ...]:
    other_root = config.store_path_root_dir.strip()
    root_is_another = bool(other_root) and not _same_folder(other_root, root) and _holds_something(other_root)
    configured_paths = []
    for key, text in config.paths:
        parts = _SPLITTERS.split(text) if key in (LOG_KEY, READ_ONLY_KEY) else [text]
        for path in filter(None, (part.strip() for part in parts)):
            place = _within(path, root)
            if place is None and other_root and not root_is_another:
                relative_path = _relative(path, other_root)
                place = root / relative_path if relative_path is not None else None
            configured_paths.append(ConfiguredPath(key, path, place, _is_there(path)))
    return tuple(configured_paths)


def _speaks_of(root: Path, config: MessageStoreConfig, paths: tuple[ConfiguredPath, ...]) -> bool:
    """Return True if the configuration is one of the store at ``root``, wherever its log is."""
    if config.store_path_root_dir.strip():
        return _same_folder(config.store_path_root_dir.strip(), root)
    return any(path.place is not None and path.key == LOG_KEY for path in paths)


def _within(path: str, root: Path) -> Path | None:
    """Return the part of ``root`` that ``path`` names, by its text or after resolving links."""
    relative_path = _relative(path, str(root))
    if relative_path is None:
        relative_path = _relative(os.path.realpath(path), os.path.realpath(root))
    return root / relative_path if relative_path is not None else None


def _lexical(path: str | Path) -> Path:
    """Return the absolute path without ``..``; links are not followed."""
    return Path(os.path.normpath(Path(path).absolute()))


def _relative(path: str, root: str) -> Path | None:
    absolute_path, absolute_root = _lexical(path), _lexical(root)
    return absolute_path.relative_to(absolute_root) if absolute_path.is_relative_to(absolute_root) else None


def _same_folder(path: str, root: Path) -> bool:
    try:
        return root.samefile(path)
    except (OSError, ValueError):
        return _lexical(path) == _lexical(root)


def _is_there(path: str) -> bool:
    """Return True if something exists at ``path``, also if it may not be examined."""
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno not in _ABSENT
    except ValueError:  # a NUL
        return False
    return True


def _holds_something(folder: str) -> bool:
    """Return True if ``folder`` is more than an empty directory, also if it may not be examined."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError as error:
        return error.errno not in _ABSENT or _is_there(folder)
    except ValueError:
        return False


def lock_files(root: Path, config: MessageStoreConfig) -> list[Path]:
    """Return the lock files that a writer of the store at ``root`` must hold: its own first, then those of every
    other folder that is written.

    A broker locks ``lock`` below its storePathRootDir and nothing else. So the locks of a log folder elsewhere
    are the one beside it, where it would be if the folder were part of a store, and the one of the configured
    root. A part of the store that is a link is written at the link's target: its lock is taken if it exists.

    """
    folders = settle_folders(root, config)
    beside = [lock_beside(Path(configured.path)) for configured in folders.followed]
    if folders.followed and config.store_path_root_dir.strip():
        beside += _existing(Path(config.store_path_root_dir.strip()) / "lock")
    own_lock = os.path.realpath(root / "lock")
    other_locks = dict.fromkeys(os.path.realpath(path) for path in beside)
    return [root / "lock", *(Path(path) for path in sorted(other_locks) if path != own_lock)]


def refuse_links_into_another_store(root: Path) -> None:
    """Raise :class:`OutsidePath` where a part of the store at ``root`` is a link into the folder of another store.

    ``cp -a`` of a store whose commitlog is a link gives a copy that writes the live log. A part on a disk of its own
    stands in no store: nothing but parts lies beside it.
    """
    for link, depth in _links_of_parts(root):
        target = Path(os.path.realpath(link))
        for _ in range(depth):
            target = target.parent
        if any(_is_another(target / mark, root / mark) for mark in _MARKS_OF_A_STORE):
            raise OutsidePath(
                sentence(
                    "{link} is a link into another store, {store}: nothing was changed. A copy without links: "
                    "{command}",
                    link=link,
                    store=target,
                    command=f"storescope snapshot {shlex.quote(str(root))} DST",
                )
            )


_MARKS_OF_A_STORE = ("lock", "checkpoint")
_FOLDERS_WITH_LINKS = (LOG_FOLDER, "consumequeue", "batchconsumequeue", "consumequeue_ext", "index", "config")


def _links_of_parts(root: Path) -> Iterator[tuple[Path, int]]:
    """Every link at ``root`` and in its folders, and how deep below ``root`` it stands."""
    yield from ((link, 1) for link in _links(root))
    for name in _FOLDERS_WITH_LINKS:
        if not (root / name).is_symlink():
            yield from ((link, 2) for link in _links(root / name))


def _is_another(mark: Path, own_mark: Path) -> bool:
    """Return True if there is a file at ``mark`` that is not the store's ``own_mark``."""
    if not _is_there(str(mark)):
        return False
    try:
        return not mark.samefile(own_mark)
    except OSError:
        return True


def lock_beside(folder: Path) -> Path:
    """Return the lock file of a folder that is written outside of its store: beside it, as if the folder were part
    of a store.
    """
    return Path(os.path.realpath(folder)).parent / "lock"


def _existing(lock: Path) -> list[Path]:
    return [lock] if _is_there(str(lock)) else []


def _links(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_symlink())
    except OSError:
        return []
