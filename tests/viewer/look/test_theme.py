"""Colours are readable: contrasts are computed, topics can be distinguished by colour-blind users, fonts follow the
zoom.
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
from PySide6.QtGui import QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QLineEdit

import viewer
from viewer.look import theme as looks
from viewer.look.assets import set_language
from viewer.look.theme import (
    DARK,
    HEX_DARK,
    HEX_LIGHT,
    LIGHT,
    TOPICS_DARK,
    TOPICS_LIGHT,
    C,
    contrast,
    hex_fill,
    style_sheet,
    theme,
)

LIGHT_AND_DARK = [pytest.param(LIGHT, id="light"), pytest.param(DARK, id="dark")]
TEXT = ("text", "text2", "text3", "accent", "error", "warn", "note", "ok", "live")
MARKS = ("field", "disabled", "posLog", "posLog2", "posLog3", "posBuild", "posBuild2", "posBuild3", "posTime", "posMin")
SIGHT = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("dark", [False, True])
def test_high_contrast_has_no_fills_and_strong_text(themed_app: QApplication, dark: bool) -> None:
    theme.set_scheme("dark" if dark else "light")
    theme.set_contrast(True)
    try:
        pane = C("pane").name()
        assert {C(f"{kind}Fill").name() for kind in ("error", "warn", "note", "ok")} == {pane}
        assert hex_fill("topic").name() == pane
        for role in ("text", "text2", "text3", "error", "warn", "note", "ok", "accent"):
            assert contrast(C(role).name(), pane) >= 7, role
        for role in ("hair", "line", "field"):
            assert contrast(C(role).name(), pane) >= 4.5, role
    finally:
        theme.set_contrast(False)


def test_reduced_motion_follows_the_desktop_until_the_user_chooses(
    themed_app: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    blinks = QGuiApplication.styleHints().cursorFlashTime()
    assert blinks > 0
    assert (theme.motion, theme.still) == (None, False)
    monkeypatch.setattr(looks, "desktop_still", lambda: True)
    assert theme.still
    theme.set_motion(True)
    assert not theme.still
    theme.set_motion(False)
    assert theme.still
    assert QGuiApplication.styleHints().cursorFlashTime() == 0
    monkeypatch.undo()
    theme.set_motion(None)
    assert QGuiApplication.styleHints().cursorFlashTime() == blinks


def test_contrast_follows_the_desktop_until_the_user_chooses(
    themed_app: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "desktop_contrast", lambda: True)
    theme._contrast_changed()
    assert not theme.contrast
    theme.contrast_follows = True
    try:
        theme._contrast_changed()
        assert theme.contrast
    finally:
        theme.contrast_follows = False
        theme.set_contrast(False)


@pytest.mark.parametrize("tokens", LIGHT_AND_DARK)
@pytest.mark.parametrize("role", TEXT)
def test_text_reaches_four_and_a_half_on_pane(tokens: dict[str, str], role: str) -> None:
    assert contrast(tokens[role], tokens["pane"]) >= 4.5


@pytest.mark.parametrize("tokens", LIGHT_AND_DARK)
@pytest.mark.parametrize("role", MARKS)
def test_marks_and_edges_reach_three_on_pane(tokens: dict[str, str], role: str) -> None:
    assert contrast(tokens[role], tokens["pane"]) >= 3.0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hints_in_empty_fields_are_readable(themed_app: QApplication, scheme: str) -> None:
    """The style sheet made hints half transparent. In light colours they had a contrast of 3.3."""
    theme.set_scheme(scheme)
    field = QLineEdit()
    field.setPlaceholderText("Key or unique key")
    field.setStyleSheet(style_sheet())
    field.ensurePolished()
    color = field.palette().color(QPalette.ColorRole.PlaceholderText)
    theme.set_scheme("light")
    assert color.alpha() == 255
    assert contrast(color.name(), (DARK if scheme == "dark" else LIGHT)["pane"]) >= 4.5


@pytest.mark.parametrize("tokens", LIGHT_AND_DARK)
def test_text_is_readable_on_its_background(tokens: dict[str, str]) -> None:
    for role in ("error", "warn", "note", "ok"):
        assert contrast(tokens[role], tokens[f"{role}Fill"]) >= 4.5
    for ground in ("select", "idle", "glow", "sunken", "side", "raised", "window", "hover"):
        assert contrast(tokens["text"], tokens[ground]) >= 4.5
        assert contrast(tokens["text2"], tokens[ground]) >= 4.5
    for ground in ("side", "window", "raised"):
        assert contrast(tokens["text3"], tokens[ground]) >= 4.4
    assert contrast(tokens["accentText"], tokens["accent"]) >= 4.5


@pytest.mark.parametrize(("fills", "tokens"), [(HEX_LIGHT, LIGHT), (HEX_DARK, DARK)], ids=["light", "dark"])
def test_bytes_are_readable_on_every_fill(fills: dict[str, str], tokens: dict[str, str]) -> None:
    assert min(contrast(tokens["text"], fill) for fill in fills.values()) >= 8.1


@pytest.mark.parametrize(
    ("series", "tokens", "least"), [(TOPICS_LIGHT, LIGHT, 3.0), (TOPICS_DARK, DARK, 4.3)], ids=["light", "dark"]
)
def test_topic_colours_are_visible_and_distinguishable(
    series: tuple[str, ...], tokens: dict[str, str], least: float
) -> None:
    assert min(contrast(color, tokens["pane"]) for color in series) >= least
    for sight in SIGHT:
        assert min(_distance(a, b, sight) for a, b in itertools.combinations(series, 2)) >= 7.0, sight


def test_zoom_scales_fonts_and_is_signalled(themed_app: QApplication) -> None:
    zooms: list[int] = []
    theme.changed.connect(lambda: zooms.append(theme.zoom))
    size_before = looks.ui(13).pixelSize()
    theme.set_zoom(150)
    assert looks.ui(13).pixelSize() == round(size_before * 1.5)
    assert looks.px(24) == 36
    theme.set_zoom(10_000)
    assert zooms == [150, 200]


def test_no_font_draws_other_characters_than_the_text_has(themed_app: QApplication) -> None:
    for font in (looks.ui(), looks.mono()):
        assert font.featureValue(QFont.Tag("calt")) == 0
        assert font.isFeatureSet(QFont.Tag("calt"))


def test_text_is_thinner_only_on_dark_beside_chinese(themed_app: QApplication) -> None:
    """Latin letters looked heavier than the Chinese ones beside them on the same line."""
    theme.set_scheme("dark")
    assert looks.ui(13).weight() == 400
    set_language("zh_CN")
    assert looks.ui(13).weight() < 400
    assert looks.ui(13, 600).weight() == 600
    assert looks.mono(12).weight() == 400
    theme.set_contrast(True)
    assert looks.ui(13).weight() == 400
    theme.set_contrast(False)
    theme.set_scheme("light")
    assert looks.ui(13).weight() == 400


def test_scheme_can_be_forced(themed_app: QApplication) -> None:
    theme.set_scheme("dark")
    assert looks.C("pane").name().upper() == DARK["pane"]
    theme.set_scheme("light")
    assert looks.C("pane").name().upper() == LIGHT["pane"]


def test_no_colour_is_named_outside_the_theme() -> None:
    """A colour written into a widget stays light when the desktop is dark."""
    results = []
    for source in Path(viewer.__path__[0]).rglob("*.py"):
        if source.name == "theme.py":
            continue
        hits = re.findall(r"[\"']#[0-9A-Fa-f]{6}[\"']", source.read_text("utf-8"))
        results += [f"{source.name}: {hit}" for hit in hits]
    assert results == ['assets.py: "#000000"', 'assets.py: "#000000"']


def _distance(color: str, other_color: str, sight: str) -> float:
    return 100 * math.dist(_perceived_colour(color, sight), _perceived_colour(other_color, sight))


def _perceived_colour(color: str, sight: str) -> tuple[float, float, float]:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    r, g, b = (min(1, max(0, sum(k * c for k, c in zip(row, linear, strict=True)))) for row in SIGHT[sight])
    long_cone = math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    middle_cone = math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    short_cone = math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return (
        0.2104542553 * long_cone + 0.793617785 * middle_cone - 0.0040720468 * short_cone,
        1.9779984951 * long_cone - 2.428592205 * middle_cone + 0.4505937099 * short_cone,
        0.0259040371 * long_cone + 0.7827717662 * middle_cone - 0.808675766 * short_cone,
    )
