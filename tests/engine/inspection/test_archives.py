"""Archives are unpacked identically by every Python version, and a hostile or damaged archive writes nothing outside.

Debian 12's own Python, 3.11.2, has no ``filter``: opening an archive in the window failed with a TypeError.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import io
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import golden_stores
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadArchive
from engine.inspection.archives import unpack

ROOT = Path(__file__).resolve().parents[3]
MAX_UNPACKED_BYTES = 1 << 27
THEN = 1_700_000_000
FILTERS = ("fully_trusted_filter", "tar_filter", "data_filter")


@pytest.fixture(params=["3.11.2", "this"])
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This Python, and one whose tarfile has no ``filter``."""
    if request.param == "3.11.2":
        for name in FILTERS:
            monkeypatch.delattr(tarfile, name, raising=False)
        refuse = lambda *_args, **_kwargs: pytest.fail("there is no filter there")  # noqa: E731
        monkeypatch.setattr(tarfile.TarFile, "extract", refuse)
        monkeypatch.setattr(tarfile.TarFile, "extractall", refuse)
    return str(request.param)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.mtime = kind, target, mode, THEN
    return info


def tar(*members: tarfile.TarInfo, body: bytes = b"bytes", mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for each in members:
            each.size = len(body) if each.isreg() else 0
            archive.addfile(each, io.BytesIO(body) if each.isreg() else None)
    return out.getvalue()


FRIENDLY = (
    member("./", tarfile.DIRTYPE, mode=0o777),
    member("./store", tarfile.DIRTYPE, mode=0o755),
    member("./store/commitlog/00000000000000000000"),
    member("store/empty", tarfile.DIRTYPE),
    member("store/run.sh", mode=0o6777),
    member("store/odd", mode=0o455),
    member("store/kept/00000000000000000000", tarfile.LNKTYPE, "./store/commitlog/00000000000000000000"),
    member("store/config", tarfile.SYMTYPE, "../elsewhere/config"),
    member("store/loose", tarfile.SYMTYPE, "no/such"),
    member("elsewhere/config/topics.json"),
    member("名字/x"),
    member("long" * 60 + "/" + "name" * 50),
)


def contents_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return kind, permissions, time and content of everything below ``folder``."""
    observed: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: object = None
        if stat.S_ISLNK(status.st_mode):
            content = path.readlink().as_posix()
            observed[str(path.relative_to(folder))] = ("link", content)
            continue
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        observed[str(path.relative_to(folder))] = (stat.filemode(status.st_mode), status.st_nlink, content)
    return observed


def unpacked(packed: bytes, folder: Path) -> dict[str, int]:
    folder.mkdir()
    return unpack(io.BytesIO(packed), folder, MAX_UNPACKED_BYTES)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_harmless_archive_is_unpacked_as_by_python(tmp_path: Path, python: str, mode: str) -> None:
    reported = unpacked(tar(*FRIENDLY, mode=mode), tmp_path / "ours")
    assert (
        reported["store/commitlog/00000000000000000000"] == reported["store/kept/00000000000000000000"] == len(b"bytes")
    )
    assert (tmp_path / "ours/store/config/topics.json").read_bytes() == b"bytes"
    for name in reported:
        assert (tmp_path / "ours" / name).stat().st_mtime == THEN
    assert stat.S_IMODE((tmp_path / "ours/store/run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "ours/store/odd").stat().st_mode) == 0o644
    if hasattr(tarfile, "data_filter"):
        with tarfile.open(fileobj=io.BytesIO(tar(*FRIENDLY))) as archive:
            archive.extractall(tmp_path / "its", filter="data")
        assert contents_of(tmp_path / "ours") == contents_of(tmp_path / "its")


def test_a_golden_store_is_the_same_with_filters_and_without(tmp_path: Path, python: str) -> None:
    packed = (golden_stores.GOLDEN / "broker-orders" / "store.tar.xz").read_bytes()
    unpacked(packed, tmp_path / "ours")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {each.name: each for each in archive if each.isreg()}
        assert files
        for name, each in files.items():
            present_path = tmp_path / "ours" / name
            body = archive.extractfile(each)
            assert body is not None
            assert (present_path.read_bytes(), present_path.stat().st_mtime) == (body.read(), each.mtime), name
    paths = [path for path in (tmp_path / "ours").rglob("*") if path.is_file()]
    assert len(paths) == len(files)


HOSTILE = {
    "absolute name": (member("/tmp/outside"),),
    "up": (member("../outside"),),
    "up in the middle": (member("store/../../outside"),),
    "folder outside": (member("../outside", tarfile.DIRTYPE),),
    "link to an absolute place": (member("store", tarfile.SYMTYPE, "/etc"),),
    "link out": (member("a/store", tarfile.SYMTYPE, "../../outside"),),
    "link out over a link": (
        member("a/b/top", tarfile.SYMTYPE, "../.."),
        member("out", tarfile.SYMTYPE, "a/b/top/../outside"),
    ),
    "file through a link": (member("a", tarfile.SYMTYPE, "b"), member("b", tarfile.DIRTYPE), member("a/x")),
    "file through a link that comes later": (member("a/x"), member("a", tarfile.SYMTYPE, "b")),
    "hard link to a place outside": (member("passwd", tarfile.LNKTYPE, "/etc/passwd"),),
    "hard link up": (member("passwd", tarfile.LNKTYPE, "../outside"),),
    "hard link to a link": (member("a", tarfile.SYMTYPE, "b"), member("c", tarfile.LNKTYPE, "a")),
    "hard link to itself": (member("a"), member("a", tarfile.LNKTYPE, "a")),
    "character device": (member("null", tarfile.CHRTYPE),),
    "block device": (member("disk", tarfile.BLKTYPE),),
    "pipe": (member("pipe", tarfile.FIFOTYPE),),
    "file below a file": (member("a"), member("a/x")),
    "file where a folder stands": (member("a/x"), member("a")),
    "empty link": (member("a", tarfile.SYMTYPE, ""),),
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(
    tmp_path: Path, python: str, members: tuple[tarfile.TarInfo, ...]
) -> None:
    (tmp_path / "outside").write_text("as it was")
    with pytest.raises(BadArchive, match="expected an archive"):
        unpacked(tar(*members), tmp_path / "deep")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "outside"]
    assert (tmp_path / "outside").read_text() == "as it was"
    for path in (tmp_path / "deep").rglob("*"):
        assert path.resolve().is_relative_to(tmp_path / "deep"), path


def test_the_later_of_two_members_with_one_name_counts(tmp_path: Path, python: str) -> None:
    """``tar -r`` appends changed files. The earlier member may be a hard link to a file that must not change."""
    out = io.BytesIO(tar(member("a"), member("b", tarfile.LNKTYPE, "a"), member("c", tarfile.SYMTYPE, "a")))
    with tarfile.open(fileobj=out, mode="a") as archive:
        for name in ("b", "c"):
            changed = member(name)
            changed.size = 3
            archive.addfile(changed, io.BytesIO(b"new"))
    assert unpacked(out.getvalue(), tmp_path / "x") == {"a": 5, "b": 3, "c": 3}
    assert [(tmp_path / "x" / name).read_bytes() for name in "abc"] == [b"bytes", b"new", b"new"]
    assert not (tmp_path / "x/c").is_symlink()


def test_a_truncated_or_damaged_archive_is_never_taken_for_a_smaller_one(tmp_path: Path, python: str) -> None:
    """Python treats an unreadable header as the end of the archive, so half a store would look complete."""
    full_tar = tar(member("a"), member("b"))
    item = 1024  # header and body, each a block
    for number, broken in enumerate(
        (
            full_tar[:item],
            full_tar[: item + 100],
            full_tar[: item + 512],
            full_tar[: item + 514],
            full_tar[:item] + b"?" * 512 + full_tar[item + 512 :],
            gzip.compress(full_tar)[:-20],
            b"",
            b"no archive",
            b"PK\3\4 no zip",
        )
    ):
        with pytest.raises(BadArchive, match="cannot be read"):
            unpacked(broken, tmp_path / str(number))


def test_too_large_contents_are_refused_before_they_are_written(tmp_path: Path, python: str) -> None:
    packed = tar(member("a"), member("b"), body=bytes(1000))
    with pytest.raises(BadArchive, match="at most 1,999 bytes in it, found 2,000 bytes or more: unpack it yourself"):
        unpack(io.BytesIO(packed), tmp_path, 1999)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def zipped(*names: str, mode: int = stat.S_IFREG | 0o644, body: bytes = b"bytes") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            info = zipfile.ZipInfo(name, (2023, 11, 14, 1, 2, 4))
            info.external_attr = mode << 16
            archive.writestr(info, body)
    return out.getvalue()


def test_a_zip_is_unpacked_with_its_times(tmp_path: Path) -> None:
    assert unpacked(zipped("store/", "store/commitlog/0", body=b""), tmp_path / "x") == {"store/commitlog/0": 0}
    modified = (tmp_path / "x/store/commitlog/0").stat().st_mtime
    assert modified == time.mktime((2023, 11, 14, 1, 2, 4, 0, 0, -1))
    unpacked(zipped("link", mode=stat.S_IFLNK | 0o777, body=b"there"), tmp_path / "y")
    assert (tmp_path / "y/link").readlink() == Path("there")


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(zipped("/tmp/outside"), id="absolute"),
        pytest.param(zipped("a/../../outside"), id="up"),
        pytest.param(zipped("a", mode=stat.S_IFLNK | 0o777, body=b"/etc"), id="link out"),
        pytest.param(zipped("a", mode=stat.S_IFIFO | 0o777), id="pipe"),
        pytest.param(zipped("a" * 9, body=b"a" * 99)[:-30], id="cut short"),
        pytest.param(zipped("a").replace(b"\x14\0\0\0\0\0", b"\x14\0\1\0\0\0"), id="encrypted"),
        pytest.param(zipped("a").replace(b"\x14\0\0\0\0\0", b"\x14\0\0\0\x63\0"), id="packed in an unknown way"),
    ],
)
def test_a_hostile_or_damaged_zip_is_refused(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(BadArchive, match="expected an archive"):
        unpacked(packed, tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_holes_stay_holes(tmp_path: Path) -> None:
    """A log file has its full length from the start. Packed with ``tar --sparse`` it needs no more space unpacked."""
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.write(b"unit")
        file.truncate(1 << 23)
    done = os.system(f"cd {tmp_path} && tar --sparse -cf log.tar log")
    assert done == 0
    assert unpacked((tmp_path / "log.tar").read_bytes(), tmp_path / "x") == {"log": 1 << 23}
    path = tmp_path / "x/log"
    assert path.read_bytes() == log.read_bytes()
    assert path.stat().st_blocks * 512 < 1 << 22


@settings(max_examples=150)
@given(
    position=st.integers(0, 6000),
    byte=st.integers(0, 255),
    further_positions=st.lists(st.integers(0, 6000), max_size=4),
)
def test_any_bytes_are_unpacked_inside_or_refused(
    tmp_path_factory: pytest.TempPathFactory, position: int, byte: int, further_positions: list[int]
) -> None:
    home = tmp_path_factory.mktemp("bytes")
    (home / "in").mkdir()
    for packed in (bytearray(tar(*FRIENDLY)), bytearray(zipped("store/", "store/a", "store/b"))):
        for changed_position in (position, *further_positions):
            packed[changed_position % len(packed)] = byte
        with contextlib.suppress(BadArchive):
            unpack(io.BytesIO(packed), home / "in", MAX_UNPACKED_BYTES)
        assert [path.name for path in home.iterdir()] == ["in"]


def test_no_other_module_unpacks() -> None:
    """A second place that calls ``extract`` would need the same rules. ``engine.ssh.upload`` packs members again, in
    memory: it writes none.
    """
    observed = {
        path.relative_to(ROOT).as_posix()
        for folder in ("engine", "viewer", "tests/support")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in {"extract", "extractall", "extractfile", "unpack_archive"})
    }
    assert observed == {"engine/inspection/archives.py", "engine/ssh/upload.py"}
