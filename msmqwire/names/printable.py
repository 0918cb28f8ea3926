"""Text from elsewhere, made safe to look at."""

from __future__ import annotations


def safe(text: str) -> str:
    """Escape everything that a terminal would act on, or that hides what is there: text may be hostile."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
