"""How surely a message is delivered, as programs and commands name it."""

from __future__ import annotations

from typing import Final

EXPRESS: Final = "express"
RECOVERABLE: Final = "recoverable"
TRANSACTIONAL: Final = "transactional"
DELIVERIES: Final = (EXPRESS, RECOVERABLE, TRANSACTIONAL)
