"""Files that several pages need.

uPlot 1.6.32, for charts, is a third party's, under the MIT licence in ``uPlot.LICENSE``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

CHART_SCRIPT: Final = "uPlot.iife.min.js"
CHART_STYLE: Final = "uPlot.min.css"
COPIED_CELLS: Final = "copied_cells.js"


def web_asset(name: str) -> bytes:
    """Return the content of one of the files."""
    return files(__name__).joinpath(name).read_bytes()
