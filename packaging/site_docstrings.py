"""Turn docstrings into Markdown for the site's page of the Python API: an extension of griffe, which reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
LITERAL_BLOCK = re.compile(r"::$", re.MULTILINE)
CITATION = re.compile(r"\bdocs/([a-z-]+/[a-z-]+)\.md(#[a-z0-9-]+)?")
_PAGE = "python-api.html"
"""Links need the page's own name: mkdocstrings puts a prefix before a fragment alone."""


class DocstringsAsMarkdown(griffe.Extension):
    """Roles such as ``:class:`MessageStore``` become links to that class, or code if the page does not list it; ``::``
    in front of indented text becomes a colon, and citations of pages become links to them: the page of the Python API
    is one folder below the first page.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules

    def on_package(self, *, pkg: griffe.Module, **_further: Any) -> None:
        """Change the docstrings of the modules that the page lists, once the whole package is loaded."""
        modules = [pkg[name.partition(".")[2]] for name in self._modules if name.partition(".")[0] == pkg.name]
        for module in modules:
            for item in _objects(module):
                if item.docstring is not None:
                    text = ROLE.sub(lambda match, item=item: self._link(match[1], item), item.docstring.value)
                    text = CITATION.sub(r"[\g<0>](../\1.html\2)", text)
                    item.docstring.value = LITERAL_BLOCK.sub(":", text)

    def _link(self, name: str, place: griffe.Object) -> str:
        """Return a link to the heading of ``name``, as ``place`` names it; code if the page has no such heading."""
        target = _target(_path(name, place), place)
        if target is None or (target if target.is_module else target.module).path not in self._modules:
            return f"`{name}`"
        return f"[`{name}`]({_PAGE}#{target.path})"


def _objects(item: griffe.Object) -> list[griffe.Object]:
    """Return the object and everything that it defines, without what it imports."""
    members = [member for member in item.members.values() if not member.is_alias and not member.is_module]
    return [item, *(inner for member in members for inner in _objects(member))]


def _path(name: str, place: griffe.Object) -> str:
    first, _, rest = name.partition(".")
    try:
        resolved = place.resolve(first)
    except griffe.NameResolutionError:
        return name
    return f"{resolved}.{rest}" if rest else resolved


def _target(path: str, place: griffe.Object) -> griffe.Object | None:
    """Return the object of this path if mkdocstrings gives it a heading: it is public and has a docstring."""
    package, _, inner = path.partition(".")
    if package != place.package.name or not inner:
        return None
    try:
        target = place.package[inner]
        target = target.final_target if target.is_alias else target
    except (KeyError, griffe.GriffeError):
        return None
    parents, above = [], target
    while above is not None and not above.is_module:
        parents.append(above)
        above = above.parent
    return target if all(item.docstring and not item.name.startswith("_") for item in parents) else None
