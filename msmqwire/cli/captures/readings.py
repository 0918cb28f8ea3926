"""The options for questions that specifications leave open: signatures, session keys, fields of protocols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from click import BadParameter

from msmqwire.cli.errors import usage
from msmqwire.cli.options import Option
from msmqwire.crypto.readings import Readings

if TYPE_CHECKING:
    from msmqwire.analysis.protocols.readings import NcpReadings

Reading = Annotated[
    list[str] | None,
    Option(
        "--reading",
        metavar="NAME=VALUE",
        help="Reading of the specification where it is open: of signatures and keys.",
    ),
]

CaptureReading = Annotated[
    list[str] | None,
    Option(
        "--reading",
        metavar="NAME=VALUE",
        help="Reading of the specification where it is open: of signatures and keys{readings}.",
    ),
]


def readings_of(texts: Iterable[str] | None) -> Readings:
    """Return the readings with these switches set. Raises BadParameter."""
    with usage("--reading"):
        return Readings.of(named_values(texts))


def capture_readings_of(texts: Iterable[str] | None) -> tuple[Readings, NcpReadings]:
    """Return the readings of message security and of NCP with these switches. Raises BadParameter."""
    from msmqwire.analysis.dissection import readings as dissection_readings

    with usage("--reading"):
        return dissection_readings.readings_of(named_values(texts))


def named_values(texts: Iterable[str] | None) -> dict[str, str]:
    """Return the names and values of such options. Raises BadParameter."""
    return dict(map(_named, texts or ()))


def _named(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--reading")
    return name, value
