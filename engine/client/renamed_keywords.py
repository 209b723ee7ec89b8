"""Older names of keyword arguments: scripts that use them go on for one version, with a deprecation warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function takes ``old`` as another name of its keyword argument ``new``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{function.__qualname__} got {new} and its older name {old}")
                warnings.warn(f"{old}= is called {new}= now", DeprecationWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
