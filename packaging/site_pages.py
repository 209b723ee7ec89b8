"""Copy the documentation to a folder in the form that the site is built from, with ``mkdocs.yml``.

``python packaging/site_pages.py FOLDER`` needs nothing beside Python. Links to commands of the window become bold
text. Pages at the top of the project that the documentation links to come along. One page is the site's alone: every
class and function of the Python API, which mkdocstrings writes from the docstrings when the site is built.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "resources" / "docs"
COMMAND_LINK = re.compile(r"\[([^]]*)\]\(command:[^)]+\)")
COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
TOP_LINK = re.compile(r"\]\((?:\.\./)+([A-Z]+\.md)\)")
DOCS_LINK = re.compile(r"\]\(resources/docs/([^)]+)\)")
TOP_PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
API_PAGE = "reference/python-api.md"
API_MODULES = (
    "engine.inspection.snapshot",
    "engine.inspection.samples",
    "engine.message_store",
    "engine.config",
    "engine.errors",
    "engine.client.messages",
    "engine.client.producer",
    "engine.client.consumer",
    "engine.client.pulling",
    "engine.client.popping",
    "engine.client.admin",
    "engine.client.blocking",
    "engine.client.instance",
    "engine.client.events",
    "engine.broker.serving",
    "engine.pipeline",
)
"""Modules that scripts import. Ruff asks for docstrings in them (``pyproject.toml``)."""
API_OPTIONS = {
    "docstring_style": "google",
    "extensions": [{str(ROOT / "packaging" / "site_docstrings.py"): {"modules": API_MODULES}}],
    "filters": ["!^_"],
    "heading_level": 2,
    "members_order": "source",
    "separate_signature": True,
    "show_if_no_docstring": False,
    "show_root_full_path": True,
    "show_root_heading": True,
    "show_signature_annotations": True,
    "show_source": False,
}


def main() -> None:
    """Write the pages into the folder that is named, with a configuration that builds the site beside them."""
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("contents.json"))
    for path in (folder / "docs").rglob("*.md"):
        depth = len(path.relative_to(folder / "docs").parts) - 1
        path.write_text(site_text(path.read_text("utf-8"), "../" * depth), "utf-8")
    for name in TOP_PAGES:
        text = DOCS_LINK.sub(r"](\1)", (ROOT / name).read_text("utf-8"))
        (folder / "docs" / name).write_text(re.sub(r"\[([^]]*)\]\(CHANGELOG\.md\)", r"\1", text), "utf-8")
    python_page = folder / "docs" / "reference" / "python.md"
    link = f"\n## All classes and functions\n\nThey are listed in [Python API]({Path(API_PAGE).name}).\n"
    python_page.write_text(python_page.read_text("utf-8") + link, "utf-8")
    (folder / "docs" / API_PAGE).write_text(api_page(), "utf-8")
    configuration = {
        "site_name": "Storescope",
        "docs_dir": "docs",
        "site_dir": "pages",
        "use_directory_urls": False,
        "markdown_extensions": ["tables", "fenced_code", "toc"],
        "plugins": [{"mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT)], "options": API_OPTIONS}}}}],
        "nav": navigation(folder / "docs"),
    }
    (folder / "mkdocs.yml").write_text(json.dumps(configuration, indent=1, ensure_ascii=False), "utf-8")


def site_text(text: str, to_top: str) -> str:
    """Return a page for the site; ``to_top`` leads from its folder to the first page."""
    text = COMMAND_LINK.sub(r"**\1**", COMMENT.sub("", text))
    return TOP_LINK.sub(lambda match: f"]({to_top}{match[1]})", text)


def api_page() -> str:
    """Return the page that names the modules; mkdocstrings puts their docstrings in the place of each line."""
    return "# Python API\n\n" + "\n".join(f"::: {module}\n" for module in API_MODULES)


def navigation(docs: Path) -> list[dict[str, list[str]]]:
    """Return the sections and their pages, in the order of the help."""
    listed: dict[str, list[str]] = json.loads((DOCS / "contents.json").read_text("utf-8"))
    named = {path for paths in listed.values() for path in paths}
    every = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    sections = []
    for title, patterns in listed.items():
        pages: list[str] = []
        for pattern in patterns:
            matching = [path for path in every if fnmatchcase(path, pattern) and path not in named]
            pages += matching if "*" in pattern else [pattern]
            if pattern == "reference/python.md":
                pages.append(API_PAGE)
        sections.append({title: pages})
    sections[-1]["The project"] += TOP_PAGES
    sections.append({"中文": [path for path in every if path.startswith("zh_CN/")]})
    return sections


if __name__ == "__main__":
    main()
