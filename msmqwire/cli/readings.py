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
        return Readings.of(named_values(texts))
    except InvalidValue as exc:
        raise typer.BadParameter(exc.why, param_hint="--reading") from None


def named_values(texts: Iterable[str] | None) -> dict[str, str]:
    """Return the names and values of such options. Raises typer.BadParameter."""
    return dict(map(_named, texts or ()))


def _named(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--reading")
    return name, value
