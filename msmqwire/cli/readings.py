"""The option that settles what the specification leaves open about signatures and session keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue

Reading = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        metavar="NAME=VALUE",
        help="How signatures and keys are read and made, where the specification leaves it open.",
    ),
]


def readings_of(texts: Iterable[str] | None) -> Readings:
    """Return the readings with these switches set. Raises typer.BadParameter."""
    try:
        return Readings.of(dict(map(_named, texts or ())))
    except InvalidValue as exc:
        raise typer.BadParameter(exc.why, param_hint="--reading") from None


def _named(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidValue(f"{text!r} is not NAME=VALUE", path="Readings")
    return name, value
