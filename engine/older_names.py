"""Older names of the Python API: scripts that use them work for one more version, with a deprecation warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed_keyword(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function accepts ``old`` as another name of its keyword argument ``new``."""

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


def renamed_attribute(old: str, new: str) -> property:
    """Return the property for the older name of an attribute or method."""

    def read(owner: Any) -> Any:
        warnings.warn(f"{type(owner).__name__}.{old} is called {new} now", DeprecationWarning, stacklevel=2)
        return getattr(owner, new)

    return property(read, doc=f"Older name of ``{new}``.")
