"""Hooks of mkdocs: pages and pictures generated during the build."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, file_sort_key

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the schemas of this checkout, not of an installed msmqwire

from tools.report_pictures import EXAMPLE, example_report, pictures  # noqa: E402
from tools.schema_docs import pages  # noqa: E402

_PICTURE: Final = re.compile(r"!\[[^\]]*\]\((report/[^)]+)\)\n")


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the wire-format pages under `wire/`, and a report with pictures of it under `report/`."""
    generated = [File.generated(config, f"wire/{name}", content=content) for name, content in pages().items()]
    report = example_report()
    made = {EXAMPLE: report, **pictures(report)}
    generated += [File.generated(config, f"report/{name}", content=content) for name, content in made.items()]
    for file in sorted(generated, key=file_sort_key):
        files.append(file)
    return files


def on_page_markdown(markdown: str, /, *, files: Files, **_: Any) -> str:
    """Leave out pictures that could not be made: there is no chromium."""
    return _PICTURE.sub(lambda picture: picture[0] if files.get_file_from_path(picture[1]) else "", markdown)
