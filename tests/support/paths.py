"""The folders of the project, its sample captures and the vectors of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
VECTORS: Final = ROOT / "tests" / "vectors"
