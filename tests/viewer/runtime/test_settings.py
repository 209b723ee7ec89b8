"""Settings are saved and loaded, and a spoiled file counts as empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray

from viewer.runtime.settings import RECENT, NamedLayout, RecentStore, Settings, default_cache, default_folder


def test_a_portable_copy_keeps_everything_beside_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(tmp_path / "storescope")])
    assert not default_folder().is_relative_to(tmp_path)
    (tmp_path / "storescope.portable").touch()
    assert default_folder() == tmp_path / "storescope-data"
    assert default_cache() == tmp_path / "storescope-data" / "cache"


def test_settings_of_a_newer_version_stay_as_they_are_and_are_named(tmp_path: Path) -> None:
    """A step back to an older Storescope read settings whose keys had another meaning. It wrote its own over them."""
    file = tmp_path / "storescope.ini"
    file.write_text("[General]\nversion=2\ntheme=sepia\n", "utf-8")
    before = file.read_bytes()
    settings = Settings(tmp_path)
    assert "found 2: a newer Storescope has written them" in str(settings.newer)
    settings.zoom = 130
    settings.sync()
    assert file.read_bytes() == before
    assert Settings(tmp_path).zoom == 130


def test_settings_without_a_version_are_those_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "storescope.ini").write_text("[look]\nzoom=130\n", "utf-8")
    settings = Settings(tmp_path)
    assert (settings.newer, settings.zoom) == (None, 130)
    settings.sync()
    assert "version=1" in (tmp_path / "storescope.ini").read_text("utf-8")


def test_values_are_saved_and_loaded(tmp_path: Path) -> None:
    first_settings = Settings(tmp_path)
    first_settings.theme, first_settings.language, first_settings.zoom, first_settings.tree_shown = (
        "dark",
        "zh_CN",
        130,
        False,
    )
    first_settings.set_splitter("side", QByteArray(b"\0\1\2"))
    first_settings.remember_filter('topic == "Orders, and more"')
    first_settings.sync()
    second_settings = Settings(tmp_path)
    assert (second_settings.theme, second_settings.language, second_settings.zoom, second_settings.tree_shown) == (
        "dark",
        "zh_CN",
        130,
        False,
    )
    assert second_settings.splitter("side") == QByteArray(b"\0\1\2")
    assert second_settings.filters == ['topic == "Orders, and more"']


def test_the_files_of_a_secured_cluster_are_saved_with_its_address(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert settings.cluster_access("a:1") == ("", "")
    settings.set_cluster_access("a:1", "tools.yml", "")
    settings.set_cluster_access("b:1", "", "tls.properties")
    assert Settings(tmp_path).cluster_access("a:1") == ("tools.yml", "")
    settings.set_cluster_access("a:1", "", "")
    assert settings.cluster_access("a:1") == ("", "")
    assert settings.cluster_access("b:1") == ("", "tls.properties")


def test_a_choice_is_kept_and_can_be_left_to_the_desktop_again(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert (settings.contrast, settings.motion) == (None, None)
    settings.contrast, settings.motion = True, False
    settings.sync()
    second_settings = Settings(tmp_path)
    assert (second_settings.contrast, second_settings.motion) == (True, False)
    second_settings.contrast = second_settings.motion = None
    assert (second_settings.contrast, second_settings.motion) == (None, None)


def test_defaults_before_the_first_start(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "not" / "there")
    assert (settings.theme, settings.language, settings.zoom, settings.recent) == ("system", "system", 100, [])
    assert settings.geometry.isEmpty()


@pytest.mark.parametrize(
    ("line", "key"),
    [("zoom=never", "zoom"), ("zoom=999999999999", "zoom"), ("theme=purple", "theme"), ("language=fr", "language")],
)
def test_spoiled_values_count_as_defaults(tmp_path: Path, line: str, key: str) -> None:
    (tmp_path / "storescope.ini").write_text(f"[look]\n{line}\n")
    assert getattr(Settings(tmp_path), key) in {100, 200, "system"}


@pytest.mark.parametrize("text", ["{", "[1, 2]", '{"a": 1}', '[{"path": 5}]', '[{"name": "x"}]'])
def test_spoiled_recent_stores_count_as_none(tmp_path: Path, text: str) -> None:
    settings = Settings(tmp_path)
    settings._file.setValue("recent/stores", text)
    assert settings.recent == []


def test_recent_stores_are_newest_first_each_once_and_few(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    for n in range(2 * RECENT):
        facts = (1 << 40, 3, 7)
        settings.remember(RecentStore(f"/data/{n}", f"broker-{n}", n, facts, "ok", "closed", (0.5, 0.25), 6, 4))
    settings.remember(RecentStore("/data/20", "broker-20", 99))
    assert [store.path for store in settings.recent][:3] == ["/data/20", "/data/23", "/data/22"]
    assert len(settings.recent) == RECENT
    assert settings.recent[1].facts == (1 << 40, 3, 7)
    assert settings.recent[1].shares == (0.5, 0.25)
    settings.forget_recent()
    assert settings.recent == []


def test_layout_can_be_forgotten(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    settings.set_splitter("log.0", QByteArray(b"x"))
    settings.set_columns("units.table", {"widths": {"topic": 240}})
    assert settings.columns("units.table") == {"widths": {"topic": 240}}
    settings.zoom = 120
    settings.reset_layout()
    assert settings.columns("units.table") is None
    assert settings.splitter("log.0").isEmpty()
    assert settings.zoom == 120


def test_named_layouts_are_saved_and_survive_the_reset(tmp_path: Path) -> None:
    first_settings = Settings(tmp_path)
    layouts = [NamedLayout("wide, 宽", "queue", False, {"side": b"\0\xff\1"}), NamedLayout("b", "log", True, {})]
    first_settings.named_layouts = layouts
    first_settings.set_splitter("side", QByteArray(b"\1"))
    first_settings.reset_layout()
    first_settings.sync()
    second_settings = Settings(tmp_path)
    assert second_settings.named_layouts == layouts
    assert second_settings.splitter("side").isEmpty()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '[{"name": ""}]',
        '[{"name": "a", "view": "log", "tree": true, "states": {"side": "%"}}]',
        '[{"name": "a", "view": "log", "tree": true, "states": {"side": 5}}]',
    ],
)
def test_spoiled_layouts_count_as_none(tmp_path: Path, text: str) -> None:
    settings = Settings(tmp_path)
    settings._file.setValue("layouts/named", text)
    assert settings.named_layouts == []
