"""Access to ``resources/``: icons in any colour, the application's icon, and translations. Nothing else reads them.

Code contains English texts. :func:`tr` translates a text with the gettext catalogue of the window's language. A text in
a table that is built at import, before the language is known, is marked with :func:`words` and passed to :func:`tr`
when it is shown.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QLibraryInfo,
    QLocale,
    QObject,
    QRectF,
    Qt,
    QTranslator,
    Signal,
)
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap

from viewer.look import formats
from viewer.look.catalogue import CONTEXT_END, Catalogue, read_catalogue

LANGUAGES = ("en", "zh_CN")


def words(text: str) -> str:
    """Mark a text for the catalogue, without translating it yet. Return it unchanged."""
    return text


def words_in(_context: str, text: str) -> str:
    """Mark a text like :func:`words`, for :func:`tr_in` with the same context."""
    return text


def plural_words(singular: str, several: str) -> tuple[str, str]:
    """Mark singular and plural of a text for the catalogue, for a later ``tr_plural(*forms, n=6)``."""
    return singular, several


QT_LACKS = (words("&Look in:"), words("Files of &type:"))
"""Texts of Qt's file dialog that Qt's own Chinese catalogue lacks."""


class _QtWords(QTranslator):
    """Qt's own catalogue of a language; texts that it lacks come from ours."""

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str | None:
        """Return the translation; None if there is none."""
        if source in QT_LACKS:
            return language_state.catalogue.find(source)
        return super().translate(context, source, disambiguation, n) or None


class _Language(QObject):
    """The window's language. Widgets that show texts connect to ``changed``."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = "en"
        self.catalogue = Catalogue()
        self.qt_words: QTranslator | None = None
        """Qt's own catalogue of this language; None if it has none."""


language_state = _Language()


def tr(text: str, /, **values: Any) -> str:
    """Translate ``text`` and fill its ``{names}``: ``tr("up to {offset:,}", offset=6)``."""
    translation = language_state.catalogue.find(text)
    template = text if translation is None else translation
    return template.format(**values) if values else template


def tr_in(context: str, text: str, /, **values: Any) -> str:
    """Translate like :func:`tr` a text whose translation depends on its context: ``tr_in("evidence", "Found")``."""
    translation = language_state.catalogue.find(f"{context}{CONTEXT_END}{text}")
    template = text if translation is None else translation
    return template.format(**values) if values else template


def tr_plural(singular: str, several: str, /, n: int, **values: Any) -> str:
    """Translate a text in its singular or plural form for the count ``n``, and fill its ``{names}``.

    In a text with two counts, the second is a value: ``tr_plural("{n:,} unit in {queues}", "{n:,} units in
    {queues}", n=6, queues=tr_plural("{n:,} queue", "{n:,} queues", n=2))``.
    """
    template = language_state.catalogue.find_plural(singular, n)
    if template is None:
        template = singular if n == 1 else several
    return template.format(n=n, **values)


def language() -> str:
    """Return the window's language: ``en`` or ``zh_CN``."""
    return language_state.name


def set_language(name: str) -> None:
    """Set the language; an unknown name means English."""
    name = name if name in LANGUAGES else "en"
    if name == language_state.name:
        return
    language_state.name = name
    language_state.catalogue = catalogue(name)
    formats.set_translations(language_state.catalogue)
    translate_qt_dialogs()
    language_state.changed.emit()


def translate_qt_dialogs() -> None:
    """Translate Qt's own dialogs and menus (files, fonts, a field's context menu) into the window's language.

    Does nothing before the QApplication exists: call it again then.
    """
    app = QCoreApplication.instance()
    if app is None:
        return
    if language_state.qt_words is not None:
        app.removeTranslator(language_state.qt_words)
        language_state.qt_words = None
    if language_state.name != "en":
        translator = _QtWords(app)
        folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        if translator.load(f"qtbase_{language_state.name}", folder):
            app.installTranslator(translator)
            language_state.qt_words = translator


def system_language() -> str:
    """Return ``zh_CN`` on a system set to Chinese, else ``en``."""
    return "zh_CN" if QLocale.system().language() == QLocale.Language.Chinese else "en"


@lru_cache(maxsize=2)
def catalogue(name: str) -> Catalogue:
    """Return the catalogue ``i18n/NAME/LC_MESSAGES/storescope.po``; an empty one for English."""
    if name == "en":
        return Catalogue()
    return read_catalogue(resource_bytes(f"i18n/{name}/LC_MESSAGES/storescope.po").decode())


def resource_bytes(path: str) -> bytes:
    """Return the bytes of ``resources/path``."""
    return files("resources").joinpath(path).read_bytes()


@lru_cache(maxsize=128)
def _svg(name: str) -> str:
    return files("resources").joinpath("icons", f"{name}.svg").read_text("utf-8")


@lru_cache(maxsize=512)
def _picture(name: str, color: str, size: int, ratio: float) -> QPixmap:
    from PySide6.QtSvg import QSvgRenderer

    picture = QPixmap(round(size * ratio), round(size * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    text = _svg(name).replace("currentColor", color)
    QSvgRenderer(QByteArray(text.encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def icon_pixmap(name: str, color: QColor, size: int = 20, ratio: float | None = None) -> QPixmap:
    """Return the icon ``name`` in ``color``, ``size`` logical pixels high."""
    app = QGuiApplication.instance()
    if ratio is None:
        ratio = app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0
    return _picture(name, color.name(), size, ratio)


def app_icon() -> QIcon:
    """Return the application's icon in the sizes that desktops use."""
    icon = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        icon.addPixmap(_picture("app", "#000000", size, 1.0))
    return icon


def app_pixmap(size: int) -> QPixmap:
    """Return the application's icon as one pixmap."""
    app = QGuiApplication.instance()
    return _picture("app", "#000000", size, app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0)
