"""The delivery modes of messages, as programs and commands name them."""

from __future__ import annotations

from typing import Final

EXPRESS: Final = "express"
RECOVERABLE: Final = "recoverable"
TRANSACTIONAL: Final = "transactional"
DELIVERIES: Final = (EXPRESS, RECOVERABLE, TRANSACTIONAL)
