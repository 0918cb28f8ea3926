"""The default limits of a message."""

from __future__ import annotations

from typing import Final

# 4 MB of message data (SRMP-2.2.2-18), and 1 MB for the envelope and the framing.
ENTITY_SIZE_MAX: Final = 0x0050_0000
