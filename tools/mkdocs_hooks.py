"""Hooks of mkdocs: pages generated during the build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, file_sort_key

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the schemas of this checkout, not of an installed msmqwire

from tools.schema_docs import pages  # noqa: E402


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the wire-format pages and their diagrams under `wire/`, in the order of a folder's files."""
    generated = [File.generated(config, f"wire/{name}", content=content) for name, content in pages().items()]
    for file in sorted(generated, key=file_sort_key):
        files.append(file)
    return files
