"""Text for people: addresses with ports, and text from elsewhere made safe to look at."""

from __future__ import annotations


def safe(text: str) -> str:
    """Escape everything that a terminal would act on, or that hides what is there: text may be hostile."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def format_endpoint(address: str, port: int) -> str:
    """Format an address and a port: ``10.0.0.1:1801`` or ``[fe80::1]:1801``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
