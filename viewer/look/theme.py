"""Current colours, fonts and zoom factor.

Painters call these functions at paint time; no other module defines a colour.

Contrast with the background is at least 4.5 to 1 for text, 3 to 1 for marks and edges of inputs. The topic colours were
found by a search that maximises their smallest distance under three kinds of colour blindness.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyle, QWidget
from shiboken6 import isValid

from viewer.look.assets import language

LIGHT = {
    "window": "#F2F3F6",
    "pane": "#FFFFFF",
    "raised": "#F8F9FB",
    "sunken": "#E9EBF0",
    "side": "#F8F9FB",
    "hair": "#E2E5EA",
    "line": "#C9CED6",
    "field": "#8B93A1",
    "text": "#1A1E26",
    "text2": "#4A5361",
    "text3": "#667080",
    "disabled": "#8B93A1",
    "accent": "#4549C9",
    "accentText": "#FFFFFF",
    "select": "#E4E5FB",
    "idle": "#ECEDF2",
    "hover": "#F1F2FA",
    "glow": "#FFF0C2",
    "error": "#BE2A1B",
    "errorFill": "#FCE9E6",
    "warn": "#8A5A00",
    "warnFill": "#FDF1D3",
    "note": "#2B6390",
    "noteFill": "#E6F0F8",
    "ok": "#23724A",
    "okFill": "#E4F3EA",
    "live": "#C2410C",
    "posLog": "#2563B8",
    "posLog2": "#5C93DC",
    "posLog3": "#123B78",
    "posBuild": "#B45309",
    "posBuild2": "#C97B2B",
    "posBuild3": "#7A3704",
    "posTime": "#8A3B9E",
    "posMin": "#667080",
    "veil": "#141820",
    "shadow": "#10141E",
}
DARK = {
    "window": "#15181E",
    "pane": "#1B1F27",
    "raised": "#222731",
    "sunken": "#11141A",
    "side": "#181B22",
    "hair": "#2B313C",
    "line": "#414957",
    "field": "#6A7485",
    "text": "#E6E9EF",
    "text2": "#B0B8C5",
    "text3": "#8A94A4",
    "disabled": "#6A7485",
    "accent": "#A5A8FF",
    "accentText": "#14162E",
    "select": "#2E3159",
    "idle": "#282D38",
    "hover": "#242939",
    "glow": "#4A3F17",
    "error": "#FF8A78",
    "errorFill": "#3D2220",
    "warn": "#F0BE54",
    "warnFill": "#382D14",
    "note": "#84BDEB",
    "noteFill": "#1B2F40",
    "ok": "#6CCB97",
    "okFill": "#19332A",
    "live": "#FF9A5C",
    "posLog": "#6FA8F5",
    "posLog2": "#A6C9FA",
    "posLog3": "#4C7FCB",
    "posBuild": "#F0A050",
    "posBuild2": "#F7C892",
    "posBuild3": "#C4762A",
    "posTime": "#D594E6",
    "posMin": "#8A94A4",
    "veil": "#000000",
    "shadow": "#000000",
}
MORE_LIGHT = {
    "hair": "#6B7280",
    "line": "#1A1E26",
    "field": "#1A1E26",
    "text2": "#1A1E26",
    "text3": "#333A45",
    "disabled": "#5A6270",
    "hover": "#FFFFFF",
    "idle": "#FFFFFF",
    "sunken": "#FFFFFF",
    "side": "#FFFFFF",
    "raised": "#FFFFFF",
    "errorFill": "#FFFFFF",
    "warnFill": "#FFFFFF",
    "noteFill": "#FFFFFF",
    "okFill": "#FFFFFF",
    "error": "#96170B",
    "warn": "#694400",
    "note": "#1B476D",
    "ok": "#155234",
    "accent": "#2E31A3",
}
"""Changes for high contrast: no fills, strong frames and text."""
MORE_DARK = {
    "window": "#000000",
    "pane": "#000000",
    "hair": "#8A94A4",
    "line": "#E6E9EF",
    "field": "#E6E9EF",
    "text": "#FFFFFF",
    "text2": "#FFFFFF",
    "text3": "#D5DAE2",
    "disabled": "#A0A9B8",
    "hover": "#000000",
    "idle": "#000000",
    "sunken": "#000000",
    "side": "#000000",
    "raised": "#000000",
    "errorFill": "#000000",
    "warnFill": "#000000",
    "noteFill": "#000000",
    "okFill": "#000000",
}
TOPICS_LIGHT = ("#1054C6", "#E27717", "#008967", "#C3689E", "#7C6B00", "#3D9AD6", "#8A2D05", "#5E4A8F")
TOPICS_DARK = ("#4A8FF3", "#F08A4B", "#3CC6A0", "#CD82C5", "#D6C24A", "#9AD3FA", "#C96A3E", "#A8A1F9")
HEX_LIGHT = {
    "frame": "#E6E9EF",
    "id": "#DFE7FB",
    "time": "#E3F1EA",
    "host": "#F6EBDD",
    "body": "#FFFFFF",
    "topic": "#EFE3F5",
    "props": "#FBEFD0",
    "propsAlt": "#F6E4B4",
}
HEX_DARK = {
    "frame": "#2C323D",
    "id": "#27345A",
    "time": "#1F3D33",
    "host": "#443525",
    "body": "#1B1F27",
    "topic": "#3E2A48",
    "props": "#40371B",
    "propsAlt": "#4D4220",
}
UI_FAMILIES = (
    "Inter",
    "Segoe UI",
    "SF Pro Text",
    "Noto Sans",
    "Noto Sans CJK SC",
    "PingFang SC",
    "Microsoft YaHei UI",
    "sans-serif",
)
MONO_FAMILIES = (
    "JetBrains Mono",
    "Cascadia Mono",
    "SF Mono",
    "DejaVu Sans Mono",
    "Noto Sans Mono CJK SC",
    "Noto Sans CJK SC",
    "monospace",
)
REGULAR, REGULAR_BESIDE_CHINESE = 400, 350
ZOOM_STEPS = tuple(range(70, 210, 10))
ZOOM_WAIT_MS = 40
IN_PARTS = "storescope.inParts"
"""Property of a window that applies a theme part by part; other windows apply it at once."""


class Theme(QObject):
    """The current theme: light or dark, zoom, contrast, motion.

    Emits ``changed`` after any change; palette and font of the application are then those of the new ``version``.
    Windows apply it part by part: widgets :func:`follow`.
    """

    changing = Signal()
    """Emitted before the theme is applied to anything."""
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.scheme = "system"
        self.dark = False
        self.zoom = 100
        self.contrast = False
        """True for high contrast: no fills, strong frames."""
        self.contrast_follows = False
        """True if the contrast follows the desktop."""
        self.motion: bool | None = None
        """True if animations are allowed; None: as the desktop's setting."""
        self.version = 0
        self._requested_zoom: int | None = None
        self._zoom_timer: QTimer | None = None
        self._applied = False
        self._blink = 0

    @property
    def still(self) -> bool:
        """True if nothing may move, fade or blink, by the user's or the desktop's setting."""
        return desktop_still() if self.motion is None else not self.motion

    def apply(self, app: QApplication) -> None:
        """Apply the theme to the application: once at the start and after each change."""
        if not self._applied:
            self._applied = True
            app.setStyle("Fusion")
            hints = QGuiApplication.styleHints()
            hints.colorSchemeChanged.connect(self._system_changed)
            self._blink = hints.cursorFlashTime()
            accessibility = getattr(hints, "accessibility", None)
            if accessibility is not None:
                accessibility().contrastPreferenceChanged.connect(self._contrast_changed)
            self.set_scheme(self.scheme, quiet=True)
        QGuiApplication.styleHints().setCursorFlashTime(0 if self.still else self._blink)
        app.setFont(ui())
        app.setPalette(palette())

    def set_scheme(self, scheme: str, quiet: bool = False) -> None:
        """Set ``light``, ``dark`` or ``system`` (as the desktop)."""
        self.scheme = scheme if scheme in {"light", "dark"} else "system"
        schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        hints = QGuiApplication.styleHints()
        if hasattr(hints, "setColorScheme"):
            hints.setColorScheme(schemes.get(self.scheme, Qt.ColorScheme.Unknown))
        dark = self.scheme == "dark" or (self.scheme == "system" and hints.colorScheme() == Qt.ColorScheme.Dark)
        if dark != self.dark:
            self.dark = dark
            if not quiet:
                self._apply()

    def set_contrast(self, on: bool) -> None:
        """Switch high contrast on or off."""
        if on != self.contrast:
            self.contrast = on
            self._apply()

    def set_motion(self, on: bool | None) -> None:
        """Allow animations or not; None: as the desktop's setting."""
        self.motion = on
        self._apply()

    def set_zoom(self, percent: int) -> None:
        """Scale every font and row. ``percent`` is clamped to the steps."""
        percent = min(max(percent, ZOOM_STEPS[0]), ZOOM_STEPS[-1])
        if percent != self.zoom:
            self.zoom = percent
            _font.cache_clear()
            self._apply()

    @property
    def target_zoom(self) -> int:
        """The requested zoom, or the current one."""
        return self.zoom if self._requested_zoom is None else self._requested_zoom

    def request_zoom(self, percent: int) -> None:
        """Scale soon. Several requests within a short time are one change."""
        self._requested_zoom = min(max(percent, ZOOM_STEPS[0]), ZOOM_STEPS[-1])
        if self._zoom_timer is None:
            self._zoom_timer = QTimer(self, interval=ZOOM_WAIT_MS, singleShot=True)
            self._zoom_timer.timeout.connect(self._apply_requested_zoom)
        self._zoom_timer.start()

    def _apply_requested_zoom(self) -> None:
        percent, self._requested_zoom = self.target_zoom, None
        self.set_zoom(percent)

    def _system_changed(self, *_: object) -> None:
        if self.scheme == "system":
            self.set_scheme("system")

    def _contrast_changed(self, *_: object) -> None:
        if self.contrast_follows:
            self.set_contrast(desktop_contrast())

    def _apply(self) -> None:
        self.changing.emit()
        app = QApplication.instance()
        if isinstance(app, QApplication):
            self.apply(app)
        self.version += 1
        self.changed.emit()
        for top in QApplication.topLevelWidgets():
            if top.parentWidget() is None and not top.property(IN_PARTS):
                apply_theme_in(top)


class _Follower(QObject):
    """Holds the theme version that its widget has applied."""

    requested = Signal()

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.version = theme.version


def follow(widget: QWidget, apply: Callable[[], object]) -> None:
    """Call ``apply`` when the theme changes, together with the part of the window that ``widget`` lies in."""
    _Follower(widget).requested.connect(apply)


def apply_theme_in(part: QWidget) -> None:
    """Apply the theme to everything in ``part``."""
    for follower in part.findChildren(_Follower):
        if isValid(follower) and follower.version != theme.version:
            follower.version = theme.version
            follower.requested.emit()


def desktop_still() -> bool:
    """Return True if the desktop asks for less motion: its style has no animations."""
    return QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0


def desktop_contrast() -> bool:
    """Return True if the desktop asks for high contrast. Qt before 6.10 does not report it."""
    accessibility = getattr(QGuiApplication.styleHints(), "accessibility", None)
    return accessibility is not None and accessibility().contrastPreference().name == "HighContrast"


theme = Theme()


_TOKENS = {
    (False, False): LIGHT,
    (True, False): DARK,
    (False, True): LIGHT | MORE_LIGHT,
    (True, True): DARK | MORE_DARK,
}


def tokens() -> dict[str, str]:
    """Return the current colours: role → ``#RRGGBB``."""
    return _TOKENS[theme.dark, theme.contrast]


def dark() -> bool:
    """Return True if the theme is dark."""
    return theme.dark


def scale() -> float:
    """The zoom factor: 1.0 is 100 %."""
    return theme.zoom / 100


def px(pixels: float) -> int:
    """Return a length in pixels at the current zoom."""
    return round(pixels * theme.zoom / 100)


def C(role: str, alpha: float = 1.0) -> QColor:
    """Return the current colour of ``role``."""
    color = QColor(tokens()[role])
    if alpha < 1.0:
        color.setAlphaF(alpha)
    return color


def hex_fill(group: str) -> QColor:
    """Return the fill of a field group in the hex view: frame, id, time, host, body, topic, props, propsAlt."""
    if theme.contrast:
        return C("pane")
    return QColor((HEX_DARK if theme.dark else HEX_LIGHT)[group])


def over(top: QColor, base: QColor) -> QColor:
    """Return the opaque colour of ``top`` drawn over ``base``."""
    a = top.alphaF()
    mixed = [a * x + (1 - a) * y for x, y in zip(_parts(top), _parts(base), strict=True)]
    return QColor.fromRgbF(*mixed)


def _parts(color: QColor) -> tuple[float, float, float]:
    return color.redF(), color.greenF(), color.blueF()


def ink(band: QColor) -> QColor:
    """Return white or near-black, whichever has more contrast on ``band``."""
    return QColor(_ink(band.name()))


@lru_cache(maxsize=256)
def _ink(band: str) -> str:
    return max(("#FFFFFF", "#14161C"), key=lambda color: contrast(color, band))


def contrast(first_colour: str, second_colour: str) -> float:
    """Contrast ratio of two ``#RRGGBB`` after WCAG 2.2."""
    lighter, darker = sorted((_luminance(first_colour), _luminance(second_colour)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ui(size: int = 13, weight: int = 400) -> QFont:
    """Return the font of texts; ``size`` in px at 100 %. Figures are tabular.

    Light letters on a dark ground look bolder than they are, Latin ones more than Chinese ones. Where both are in
    one line, regular Latin letters are thinner.
    """
    if weight == REGULAR and theme.dark and not theme.contrast and language() == "zh_CN":
        weight = REGULAR_BESIDE_CHINESE
    return QFont(_font(False, size, weight))


def mono(size: int = 12, weight: int = 400) -> QFont:
    """Return the font of store data: offsets, sizes, keys, names of fields and files, bytes."""
    return QFont(_font(True, size, weight))


@lru_cache(maxsize=64)
def _font(code: bool, size: int, weight: int) -> QFont:
    font = QFont()
    font.setFamilies(list(MONO_FAMILIES if code else UI_FAMILIES))
    font.setPixelSize(max(6, px(size)))
    font.setWeight(QFont.Weight(weight))
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if code:
        font.setStyleHint(QFont.StyleHint.Monospace)
    if hasattr(font, "setFeature"):
        font.setFeature(QFont.Tag("calt"), 0)  # "0x41" stays as it is, also among words
        if not code:
            font.setFeature(QFont.Tag("tnum"), 1)
    return font


def palette() -> QPalette:
    """Return the application's palette in the current colours."""
    colours = QPalette()
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    for key, name in (
        (role.Window, "window"),
        (role.Base, "pane"),
        (role.AlternateBase, "raised"),
        (role.Button, "raised"),
        (role.WindowText, "text"),
        (role.Text, "text"),
        (role.ButtonText, "text"),
        (role.BrightText, "accentText"),
        (role.Highlight, "select"),
        (role.HighlightedText, "text"),
        (role.Link, "accent"),
        (role.LinkVisited, "accent"),
        (role.PlaceholderText, "text3"),
        (role.ToolTipBase, "raised"),
        (role.ToolTipText, "text"),
        (role.Light, "pane"),
        (role.Midlight, "hair"),
        (role.Mid, "line"),
        (role.Dark, "line"),
        (role.Accent, "accent"),
    ):
        colours.setColor(key, C(name))
    for key in (role.WindowText, role.Text, role.ButtonText):
        colours.setColor(group.Disabled, key, C("disabled"))
    return colours


def style_sheet() -> str:
    """Return the style sheet: edges, paddings and states that a palette cannot express. Parts of windows use it, see
    :mod:`viewer.shell.window_theme`.
    """
    return _sheet(theme.dark, theme.contrast, theme.zoom)


@lru_cache(maxsize=4)
def _sheet(dark_: bool, high_contrast: bool, _zoom: int) -> str:

    lengths = {f"p{n}": f"{px(n)}px" for n in (3, 4, 5, 6, 8, 11, 12, 20, 24, 26, 28)}
    return SHEET.format(**_TOKENS[dark_, high_contrast], **lengths)


SHEET = """
QMenuBar {{ background: {window}; color: {text2}; border: 0; padding: 3px 6px; }}
QMenuBar::item {{ padding: 3px 8px; background: transparent; border-radius: 4px; }}
QMenuBar::item:selected {{ background: {select}; color: {text}; }}
QMenu {{ background: {pane}; color: {text}; border: 1px solid {line}; padding: 4px; }}
QMenu::item {{ padding: {p4} {p24} {p4} {p12}; border-radius: 4px; }}
QMenu::item:selected {{ background: {select}; color: {text}; }}
QMenu::item:disabled {{ color: {disabled}; }}
QMenu::icon {{ padding-left: {p8}; }}
QMenu::separator {{ height: 1px; background: {hair}; margin: 4px 6px; }}
QStatusBar {{ background: {window}; color: {text2}; border-top: 1px solid {hair}; }}
QStatusBar::item {{ border: 0; }}
QSplitter::handle {{ background: {hair}; }}
QSplitter::handle:hover {{ background: {accent}; }}
QSplitter::handle:horizontal {{ width: 1px; }} QSplitter::handle:vertical {{ height: 1px; }}
QTableView, QTreeView, QListView {{ background: {pane}; border: 0; outline: 0; gridline-color: transparent; }}
QTreeView#store\\.tree {{ background: {side}; }}
QHeaderView {{ background: {raised}; }}
QHeaderView::section {{ background: {raised}; color: {text3}; border: 0; border-bottom: 1px solid {hair}; padding: 0
    {p8}; font-size: {p12}; }}
QLineEdit, QPlainTextEdit {{ placeholder-text-color: {text3}; }}
QLineEdit, QPlainTextEdit, QComboBox, QSpinBox {{ background: {pane}; color: {text}; border: 1px solid {field};
    border-radius: 5px; padding: 0 {p8}; min-height: {p24}; selection-background-color: {accent};
    selection-color: {accentText}; }}
QLineEdit:focus, QPlainTextEdit:focus, QComboBox:focus, QSpinBox:focus {{ border: 2px solid {accent};
    padding: 0 7px; min-height: {p24}; }}
QLineEdit[state="ok"] {{ border: 1px solid {ok}; }}
QLineEdit[state="error"] {{ border: 2px solid {error}; }}
QLineEdit[bare="true"] {{ border: 0; background: transparent; }}
QPlainTextEdit[bare="true"] {{ border: 0; background: {pane}; }}
QComboBox {{ padding-right: {p24}; }}
QComboBox::drop-down {{ border: 0; width: {p20}; }}
QComboBox::down-arrow {{ image: none; }}
QComboBox QAbstractItemView {{ background: {pane}; border: 1px solid {line}; selection-background-color: {select};
    selection-color: {text}; }}
QPushButton {{ background: {raised}; color: {text}; border: 1px solid {line}; border-radius: 5px; padding: 0 {p12};
    min-height: {p24}; }}
QPushButton:hover {{ background: {hover}; border-color: {field}; }}
QPushButton:pressed {{ background: {select}; }}
QPushButton:focus {{ border: 2px solid {accent}; padding: 0 11px; }}
QPushButton:disabled {{ color: {disabled}; border-color: {hair}; }}
QPushButton[kind="primary"] {{ background: {accent}; color: {accentText}; border-color: {accent}; font-weight: 600; }}
QPushButton[kind="primary"]:focus {{ border: 2px solid {text}; }}
QPushButton[kind="danger"] {{ background: {pane}; color: {error}; border-color: {error}; font-weight: 600; }}
QPushButton[kind="primary"]:disabled {{ background: {sunken}; color: {disabled}; border-color: {hair}; }}
QPushButton[kind="danger"]:disabled {{ color: {disabled}; border-color: {hair}; }}
QPushButton[kind="flat"] {{ background: transparent; border-color: transparent; color: {accent}; }}
QPushButton[kind="flat"]:hover {{ background: {select}; }}
QPushButton[kind="flat"]:focus {{ border: 2px solid {accent}; }}
QPushButton[kind="pill"] {{ background: transparent; border-radius: {p11}; color: {text2}; font-size: {p12};
    min-height: {p20}; }}
QPushButton[kind="pill"]:hover {{ background: {select}; color: {text}; }}
QPushButton[kind="pill"]:disabled {{ color: {disabled}; border-color: {hair}; }}
QPushButton[kind="pill"]:checked {{ background: {select}; color: {accent}; border-color: {accent}; }}
QToolButton {{ background: transparent; border: 1px solid transparent; border-radius: 5px; color: {text2}; padding:
3px; }} QToolButton:hover {{ background: {sunken}; }}
QToolButton:focus {{ border: 2px solid {accent}; padding: 2px; }}
QToolButton:checked {{ background: {select}; color: {accent}; }}
QToolButton:disabled {{ color: {disabled}; background: transparent; }}
QToolButton::menu-indicator {{ image: none; }}
QScrollBar:vertical {{ background: transparent; width: {p11}; margin: 0; }}
QScrollBar::handle:vertical {{ background: {line}; border-radius: 3px; margin: 2px 3px; min-height: {p28}; }}
QScrollBar:horizontal {{ background: transparent; height: {p11}; margin: 0; }}
QScrollBar::handle:horizontal {{ background: {line}; border-radius: 3px; margin: 3px 2px; min-width: {p28}; }}
QScrollBar::handle:hover {{ background: {field}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSlider {{ min-height: {p24}; }}
QSlider::groove:horizontal {{ height: 3px; background: {line}; border-radius: 1px; }}
QSlider::sub-page:horizontal {{ background: {accent}; border-radius: 1px; }}
QSlider::handle:horizontal {{ background: {pane}; border: 2px solid {accent}; width: 11px; height: 11px;
    margin: -6px 0; border-radius: 7px; }}
QSlider::handle:horizontal:focus {{ background: {select}; border: 3px solid {accent}; }}
QSlider::sub-page:horizontal:disabled {{ background: {line}; }}
QSlider::handle:horizontal:disabled {{ border-color: {line}; }}
QCheckBox, QRadioButton {{ color: {text}; spacing: 6px; border: 2px solid transparent; border-radius: 4px;
    padding: 1px 3px; }}
QCheckBox::indicator, QRadioButton::indicator {{ width: {p12}; height: {p12}; border: 1px solid {field};
    background: {pane}; border-radius: 3px; }}
QRadioButton::indicator {{ border-radius: 7px; }}
QCheckBox::indicator:checked {{ background: {accent}; border-color: {accent}; }}
QRadioButton::indicator:checked {{ background: {accent}; border: 3px solid {select}; width: {p8}; height: {p8};
    outline: 1px solid {accent}; }}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {{ border-color: {hair}; }}
QCheckBox:focus, QRadioButton:focus {{ border-color: {accent}; }}
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {line}; padding: 3px 5px; }}
QDialog {{ background: {pane}; }}
"""
