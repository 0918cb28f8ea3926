"""The options that settle what specifications leave open: signatures and session keys, byte orders of NCP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue
from msmqwire.netware.readings import Reading as NcpReading

Reading = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        metavar="NAME=VALUE",
        help="How signatures and keys are read and made, where the specification leaves it open.",
    ),
]

CaptureReading = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        metavar="NAME=VALUE",
        help="How signatures and keys are read, or fields of NCP in disputed byte orders (job_number=big).",
    ),
]


def readings_of(texts: Iterable[str] | None) -> Readings:
    """Return the readings with these switches set. Raises typer.BadParameter."""
    try:
        return Readings.of(dict(map(_named, texts or ())))
    except InvalidValue as exc:
        raise typer.BadParameter(exc.why, param_hint="--reading") from None


def capture_readings_of(texts: Iterable[str] | None) -> tuple[Readings, NcpReading]:
    """Return the readings of message security and of NCP with these switches. Raises typer.BadParameter."""
    known = (*Readings.fields(), *NcpReading.options())
    try:
        named = dict(map(_named, texts or ()))
        for name in named:
            if name not in known:
                raise InvalidValue(f"{name!r} is none of {', '.join(known)}", path="Readings")
        of_ncp = {name: named.pop(name) for name in NcpReading.options() if name in named}
        return Readings.of(named), NcpReading.of(of_ncp)
    except InvalidValue as exc:
        raise typer.BadParameter(exc.why, param_hint="--reading") from None


def _named(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidValue(f"{text!r} is not NAME=VALUE", path="Readings")
    return name, value
