"""What parts may ask of a window with a store in it is answered by the window that stands on the screen."""

from __future__ import annotations

import ast
import inspect

import pytest

from viewer.pane.store_window import StoreWindow
from viewer.shell.main_window import MainWindow

ASKED = sorted(name for name, one in vars(StoreWindow).items() if getattr(one, "__isabstractmethod__", False))


def test_there_is_something_to_ask():
    assert {"go", "say", "open", "settled"} <= set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_the_window_on_the_screen_answers_as_it_is_asked(name):
    asked, answered = inspect.getattr_static(StoreWindow, name), inspect.getattr_static(MainWindow, name)
    assert not getattr(answered, "__isabstractmethod__", False)
    assert type(asked) is type(answered)
    if inspect.isfunction(asked):
        assert list(inspect.signature(asked).parameters) == list(inspect.signature(answered).parameters)
        assert inspect.iscoroutinefunction(asked) == inspect.iscoroutinefunction(answered)


def test_another_window_has_the_same_settings_and_no_store(window, settings):
    other = window.another()
    try:
        assert type(other) is type(window)
        assert other.settings is settings
        assert other.session is None
        assert other.topic_colours is None
    finally:
        other.close()
        other.deleteLater()


def test_the_door_knows_no_part_of_the_shell():
    tree = ast.parse(inspect.getsource(inspect.getmodule(StoreWindow)))
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {one for one in named if one and one.startswith("viewer.shell")}
