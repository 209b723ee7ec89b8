"""The style sheet: short, because style sheets slow large views; colours are roles, lengths follow the zoom."""

from __future__ import annotations

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
QLineEdit, QPlainTextEdit, QComboBox, QSpinBox {{ background: {pane}; color: {text}; border: 1px solid {field};
    border-radius: 5px; padding: 0 {p8}; min-height: {p24}; selection-background-color: {accent};
    selection-color: {accentText}; }}
QLineEdit:focus, QPlainTextEdit:focus, QComboBox:focus, QSpinBox:focus {{ border: 2px solid {accent};
    padding: 0 7px; min-height: {p24}; }}
QLineEdit[state="ok"] {{ border: 1px solid {ok}; }}
QLineEdit[state="error"] {{ border: 2px solid {error}; }}
QLineEdit[bare="true"] {{ border: 0; background: transparent; }}
QPlainTextEdit[bare="true"] {{ border: 0; background: {pane}; }}
QComboBox::drop-down {{ border: 0; width: {p20}; }}
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
QCheckBox::indicator:checked, QRadioButton::indicator:checked {{ background: {accent}; border: 3px solid {select};
    width: {p8}; height: {p8}; outline: 1px solid {accent}; }}
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled {{ border-color: {hair}; }}
QCheckBox:focus, QRadioButton:focus {{ border-color: {accent}; }}
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {line}; padding: 3px 5px; }}
QDialog {{ background: {pane}; }}
"""
