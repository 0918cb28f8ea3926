"""The page: one file of HTML with its style, scripts and data, that loads nothing and runs nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Any, Final

from msmqwire.analysis.report.details import compressed
from msmqwire.analysis.report.table_json import table_json
from msmqwire.analysis.web_assets import CHART_SCRIPT, CHART_STYLE, COPIED_CELLS, web_asset

SCRIPTS: Final = (
    "elements.js",
    "format.js",
    "data.js",
    "virtual_table.js",
    "packet_view.js",
    "drawer.js",
    "timeline.js",
    "overview.js",
    "ladder.js",
    "sessions.js",
    "lives.js",
    "messages.js",
    "findings.js",
    "packets.js",
    "page.js",
)
"""The scripts in the order in which they run, after the charts: they share one scope."""
_PLACE: Final = re.compile(r"\{(policy|title|version|styles)\}")


def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return resources.files("msmqwire.analysis.report").joinpath("assets", name).read_text(encoding="utf-8")


def page(
    title: str, version: str, data: dict[str, Any], tables: dict[str, Any], pieces: Iterable[str]
) -> Iterator[str]:
    """Yield the text of the page.

    Args:
        title: the title of the page.
        version: the version of msmqwire.
        data: the data of the parts of the page.
        tables: tables by name, which the page unpacks; columns are arrays of integers.
        pieces: fields and bytes of packets, compressed.
    """
    styles = [web_asset(CHART_STYLE).decode(), asset("page.css")]
    shared = [web_asset(name).decode() for name in (CHART_SCRIPT, COPIED_CELLS)]
    scripts = [*shared, *(asset(name) for name in SCRIPTS)]
    values = {
        "policy": policy(styles, scripts),
        "title": html.escape(title),
        "version": html.escape(version),
        "styles": "\n".join(f"<style>{style}</style>" for style in styles),
    }
    before, _, rest = asset("page.html").partition("{data}")
    between, _, after = rest.partition("{scripts}")
    yield _filled(before, values)
    yield _data("report", "application/json", _json(data))
    for name, table in tables.items():
        yield _data(name, "text/plain", compressed(table_json(table)))
    for number, piece in enumerate(pieces):
        yield _data(f"details-{number}", "text/plain", piece)
    yield _filled(between, values)
    yield from (f"<script>{script}</script>\n" for script in scripts)
    yield _filled(after, values)


def policy(styles: list[str], scripts: list[str]) -> str:
    """Return the policy of the page: these styles and scripts and nothing else, and no connections."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_source, scripts))}",
            f"style-src {' '.join(map(_source, styles))}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _json(data: Any) -> str:
    """Return JSON in which nothing can end the element that it stands in, or begin another."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _data(name: str, kind: str, content: str) -> str:
    """Return an element with data, which no browser runs; `content` has no ``<``."""
    return f'<script type="{kind}" id="{name}">{content}</script>\n'


def _filled(template: str, values: dict[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1]], template)
