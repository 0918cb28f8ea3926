"""Text for people: addresses with ports, and text from elsewhere made safe to look at."""

from __future__ import annotations

from typing import Final

ELLIPSIS: Final = "…"
_SINGULARS: Final = {"are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
"""Verbs of one thing that are not the verb of several with an s."""


def safe(text: str) -> str:
    """Escape characters that a terminal would act on, or that hide text: it may be hostile."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def format_endpoint(address: str, port: int) -> str:
    """Format an address and a port: ``10.0.0.1:1801`` or ``[fe80::1]:1801``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def cut(text: str, length: int) -> str:
    """Return a text with at most this many characters; one that was cut ends in an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def counted(count: int, what: str, verb: str = "") -> str:
    """Return a number with its noun, and the verb that follows: ``1 finding``, ``2,000 findings are``.

    Args:
        count: the number.
        what: the noun that is counted, in the singular.
        verb: the verb in the plural; ``are`` becomes ``is`` after one.
    """
    many = what if count == 1 else _plural(what)
    return f"{count:,} {many} {agreeing(count, verb)}" if verb else f"{count:,} {many}"


def agreed(count: int, verb: str) -> str:
    """Return a number with its verb, where the noun went before: ``1 is``, ``0 are``, ``2,000 are``."""
    return f"{count:,} {agreeing(count, verb)}"


def with_article(noun: str) -> str:
    """Return a noun after its indefinite article: ``a port``, ``an address``, ``a URL``, ``an unsignedByte``.

    A `u` at the beginning is the vowel of "under" before an `n`, but not in "unit" and its like.
    """
    lower = noun.lower()
    vowel = lower.startswith(("a", "e", "i", "o")) or (lower.startswith("un") and not lower.startswith("uni"))
    return f"{'an' if vowel else 'a'} {noun}"


def _plural(what: str) -> str:
    if what.endswith("y") and what[-2:-1] not in "aeiou":
        return f"{what[:-1]}ies"
    return f"{what}es" if what.endswith(("s", "x", "ch", "sh")) else f"{what}s"


def agreeing(count: int, verb: str) -> str:
    """Return a verb for a number: ``is`` and ``follows`` for one, ``are`` and ``follow`` else."""
    if count != 1:
        return verb
    return _SINGULARS.get(verb) or _plural(verb)


def in_seconds(value: float) -> str:
    """Return a time in seconds, in milliseconds at the finest: ``10 s`` also of 9.99999, ``0.25 s``."""
    if 0 < value < 0.001:
        return f"{value:.1g} s"
    whole, _, rest = f"{value:,.3f}".partition(".")
    return f"{whole}.{rest}".rstrip("0").rstrip(".") + " s"
