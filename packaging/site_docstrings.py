"""Turn docstrings into Markdown for the site's page of the Python API: an extension of griffe, which reads them."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
LITERAL_BLOCK = re.compile(r"::$", re.MULTILINE)
CITATION = re.compile(r"\bdocs/([a-z-]+/[a-z-]+)\.md(#[a-z0-9-]+)?")


class DocstringsAsMarkdown(griffe.Extension):
    """Roles such as ``:class:`MessageStore``` become code, ``::`` in front of indented text a colon, and citations of
    pages links to them: the page of the Python API is one folder below the first page.
    """

    def on_object(self, *, obj: griffe.Object, **_further: Any) -> None:
        """Change the docstring of a module, class, function or attribute that was read."""
        if obj.docstring is not None:
            text = CITATION.sub(r"[\g<0>](../\1.html\2)", ROLE.sub(r"`\1`", obj.docstring.value))
            obj.docstring.value = LITERAL_BLOCK.sub(":", text)
