"""Names that were mistyped: which of the known ones are meant, and the error that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from msmqwire.errors import InvalidArgument
from msmqwire.names.printable import with_article

NEAREST_MAX: Final = 3
"""Names that an error proposes."""
LISTED_MAX: Final = 12
"""The number of known names up to which an error lists all."""
_NAME_MAX: Final = 80
"""Characters of a wrong name that are compared and shown."""
_WORSE: Final = 0.15
"""The difference in likeness, of 1, from which on a name is not proposed beside the best one."""
_PART_MIN: Final = 3
"""Characters of a wrong name that may be just a part of the one that is meant."""


def nearest(name: str, known: Iterable[str], most: int = NEAREST_MAX) -> tuple[str, ...]:
    """Return the known names most like a wrong one, the best first; in any case.

    First the same letters in another case, then names that are alike, then those that begin with the wrong
    one or contain it.
    """
    return tuple(dict.fromkeys(_nearest(name[:_NAME_MAX].strip().lower(), known, most)))[:most]


def _nearest(name: str, known: Iterable[str], most: int) -> Iterator[str]:
    by_lower: dict[str, str] = {}
    for one in known:
        by_lower.setdefault(one.lower(), one)
    if name in by_lower:
        yield by_lower[name]
        return
    near = get_close_matches(name, by_lower, n=most)
    ratios = [SequenceMatcher(None, name, one).ratio() for one in near]
    yield from (by_lower[one] for one, ratio in zip(near, ratios, strict=True) if ratio > ratios[0] - _WORSE)
    if len(name) >= _PART_MIN:
        yield from (one for lower, one in by_lower.items() if lower.startswith(name))
        yield from (one for lower, one in by_lower.items() if name in lower)


def unknown_name(
    name: object, known: Iterable[str], what: str, *, path: str = "", see: str = ""
) -> InvalidArgument:
    """Return the error for a name that is none of the known ones.

    Its text is ``'tpc' is not a transport; did you mean tcp? There are tcp, udp and pgm``.

    Args:
        name: the wrong one.
        known: the right ones.
        what: the noun for such names, in the singular, without an article.
        path: the parameter that has the name.
        see: the place that lists all of them, as ``docs/columns.md lists all``; shown if they are many.
    """
    names = list(dict.fromkeys(known))
    near = nearest(str(name), names)
    wrong = f"{name!r:.{_NAME_MAX + 2}} is not {with_article(what)}"
    if len(names) > LISTED_MAX:
        everything, after_near = see, f" ({see})"
    else:
        everything = (
            f"there {'is' if len(names) == 1 else 'are'} {_listed(names, 'and') if names else 'none'}"
        )
        after_near = f" T{everything[1:]}"
    if near:
        why = f"{wrong}; did you mean {_listed(near, 'or')}?{after_near if everything else ''}"
    else:
        why = f"{wrong}: {everything}" if everything else wrong
    return InvalidArgument(why, path=path, near=near)


def _listed(names: Iterable[str], word: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
