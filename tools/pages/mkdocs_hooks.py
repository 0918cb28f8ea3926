"""Hooks of mkdocs: pages and pictures generated during the build."""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, file_sort_key
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the schemas of this checkout, not of an installed msmqwire

from tools.pages import command_docs, console_pictures, report_pictures, schema_docs, state_diagrams  # noqa: E402
from tools.pages.browser import has_browser  # noqa: E402

_PICTURE: Final = re.compile(r"^!\[[^\]]*\]\(([^)]*(?:report|console)/[^)]+)\)\n", re.MULTILINE)


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the content made from the code: pages of formats, states and commands; a report; pictures."""
    report = report_pictures.example_report()
    made: dict[str, str | bytes] = {
        "qm-states.md": _states(),
        "reference/commands.md": command_docs.page(),
        f"report/{report_pictures.EXAMPLE}": report,
        **{f"wire/{name}": content for name, content in schema_docs.pages().items()},
        **{f"report/{name}": content for name, content in report_pictures.pictures(report).items()},
        **{f"console/{name}": content for name, content in console_pictures.pictures().items()},
    }
    if not has_browser():
        print("No chromium with Playwright: the documentation is built without pictures.", file=sys.stderr)
    generated = [File.generated(config, name, content=content) for name, content in made.items()]
    for file in sorted(generated, key=file_sort_key):
        files.append(file)
    return files


def _states() -> str:
    page = state_diagrams.page()
    if shutil.which("dot") is not None:
        return state_diagrams.drawn(page)
    print("No Graphviz: the diagrams of states are left as text.", file=sys.stderr)
    return page


def on_page_markdown(markdown: str, /, *, page: Page, files: Files, **_: Any) -> str:
    """Leave out pictures that could not be made."""
    folder = posixpath.dirname(page.file.src_uri)

    def kept(picture: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, picture[1]))
        return picture[0] if files.get_file_from_path(path) else ""

    return _PICTURE.sub(kept, markdown)
