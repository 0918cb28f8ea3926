"""Text for people: addresses with ports, and text from elsewhere made safe to look at."""

from __future__ import annotations

from typing import Final

ELLIPSIS: Final = "…"


def safe(text: str) -> str:
    """Escape everything that a terminal would act on, or that hides what is there: text may be hostile."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def format_endpoint(address: str, port: int) -> str:
    """Format an address and a port: ``10.0.0.1:1801`` or ``[fe80::1]:1801``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def cut(text: str, length: int) -> str:
    """Return a text with at most this many characters; one that was cut ends in an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def counted(count: int, what: str) -> str:
    """Return a number with its noun: ``1 finding``, ``2,000 findings``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
