"""Executors run the code of the engine that was sent to them, whatever their caches hold."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine import __version__
from engine.pipeline import shipping

EVIL = "open({ran!r}, 'w').close()\n"
"""What somebody else put where the engine's files are kept; it leaves a trace."""
MODULES = (
    "__init__",
    "errors",
    "files/__init__",
    "files/layout",
    "files/own_folders",
    "files/zip_import",
    "codec/__init__",
    "codec/columns",
)
ASK = """
import sys; sys.path[:0] = [sys.argv[1]]
import engine.files.layout, engine.codec.columns
print(engine.files.layout.FILE_NAME_DIGITS, engine.files.layout.__file__)
"""


@pytest.fixture
def sent(tmp_path):
    """Return the zip at the place where Spark puts it."""
    (tmp_path / "work").mkdir()
    shipping.pack_engine(tmp_path / "work" / "engine.zip")
    return tmp_path / "work" / "engine.zip"


def layout_origin(archive, cache):
    """Return the file of the engine's ``layout`` in a process that has the engine from ``archive`` alone."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache.parent)}
    process = subprocess.run(
        [sys.executable, "-c", ASK, str(archive)],
        cwd=archive.parent,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
    digits, place = process.stdout.split()
    assert digits == "20"
    return Path(place)


def digest_of(archive, tmp_path):
    return layout_origin(archive, tmp_path / "elsewhere").parents[2].name


def planted(folder, ran):
    """Make the folder of an engine like an attacker does first: each file of the engine is his."""
    package = folder / "engine"
    for name in MODULES:
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(EVIL.format(ran=str(ran)))
    compiled = package / "files" / "__pycache__"
    compiled.mkdir()
    shutil.copy(package / "files" / "layout.py", compiled / f"layout.{sys.implementation.cache_tag}.pyc")
    return package


def test_files_of_others_in_the_cache_are_never_run(sent, tmp_path):
    """Executors trusted the folder of the cache with the engine's digest, which everybody can compute: an attacker who
    made it first in a shared place ran code as each user of Spark, root too.
    """
    ran = tmp_path / "ran"
    place = tmp_path / "cache" / "storescope" / "engine" / digest_of(sent, tmp_path)
    planted(place, ran)
    layout_origin(sent, tmp_path / "cache")
    assert not ran.exists()


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("how", ["half emptied", "another length", "a link", "open to the group", "of another user"])
def test_a_folder_changed_by_others_is_skipped_or_repaired(sent, tmp_path, how):
    ran, cache = tmp_path / "ran", tmp_path / "cache"
    digest = digest_of(sent, tmp_path)
    first_origin = layout_origin(sent, cache)
    place = cache / "storescope" / "engine" / digest
    assert first_origin == place / "engine" / "files" / "layout.py"
    if how == "half emptied":
        first_origin.unlink()
    elif how == "another length":
        first_origin.write_text(EVIL.format(ran=str(ran)))
    elif how == "a link":
        shutil.rmtree(place)
        planted(tmp_path / "theirs", ran)
        place.symlink_to(tmp_path / "theirs")
    elif how == "open to the group":
        planted(tmp_path / "theirs", ran)
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "theirs", place)
        place.parent.parent.chmod(0o770)
    elif os.geteuid() == 0:
        os.chown(place, 65534, 65534)
    else:
        (place / "engine" / "codec").chmod(0o777)
        place.chmod(0o755)
    origin = layout_origin(sent, cache)
    assert not ran.exists()
    if how in ("half emptied", "another length"):
        assert origin == first_origin
        assert "FILE_NAME_DIGITS" in first_origin.read_text()
    else:
        assert origin == tmp_path / "work" / "engine" / digest / "engine" / "files" / "layout.py"


@pytest.mark.spark_full
def test_executors_get_what_they_import_and_keep_machine_code_for_it(tmp_path):
    """Machine code for files of a zip with a new place in every session would be made again in each."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shipping.pack_engine(tmp_path / name / "engine.zip")
    archives = [tmp_path / name / "engine.zip" for name in ("one", "two")]
    assert archives[0].read_bytes() == archives[1].read_bytes()
    names = zipfile.ZipFile(archives[0]).namelist()
    assert {"engine/codec/compiled.py", "engine/pipeline/splits.py", "engine/inspection/where/evidence.py"} <= set(
        names
    )
    assert not [name for name in names if name.startswith("engine/lab") or not name.startswith("engine/")]
    script = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "import engine, engine.codec.columns as columns, engine.pipeline.splits as splits\n"
        "assert engine.__file__.startswith(sys.argv[1]) and columns.twin() is not None\n"
        "print(engine.__version__, splits.__file__)\n"
    )

    def imported(archive, cache):
        run = [sys.executable, "-c", script, str(archive)]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        process = subprocess.run(
            run, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=280, env=environment
        )
        return process.stdout.split()

    first_import, second_import = (imported(archive, tmp_path / "cache") for archive in archives)
    assert first_import == second_import
    assert first_import[0] == __version__
    assert first_import[1].startswith(str(tmp_path / "cache"))
    assert [path.name for path in (tmp_path / "cache" / "storescope" / "engine").iterdir()] == [
        Path(first_import[1]).parts[-4]
    ]
    (tmp_path / "a file").touch()
    assert imported(archives[0], tmp_path / "a file")[1].startswith(str(tmp_path / "one"))
