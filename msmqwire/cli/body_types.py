"""Types of bodies on the command line: numbers, and the names of VARENUM."""

from __future__ import annotations

from typing import Annotated

from click import BadParameter

from msmqwire.cli.options import Option
from msmqwire.constants import VarEnum, variant_of

TYPES_HELP = "a number as 768 or 0x300, or a name as VT_BSTR or VT_UI1|VT_VECTOR"
BodyType = Annotated[
    str | None, Option("--body-type", metavar="TYPE", help=f"MessagePropertiesHeader.BodyType: {TYPES_HELP}.")
]


def body_type_of(text: str | None) -> int | None:
    """Return the number of a type as an option has it, None for none. Raises BadParameter."""
    if text is None:
        return None
    try:
        return variant_of(text)
    except ValueError:
        from msmqwire.names.nearest import nearest

        near = nearest(text, VarEnum.__members__, most=1)
        meant = f"did you mean {near[0]}? It is " if near else "it is "
        why = f"{text!r:.80} is not a type of a body; {meant}{TYPES_HELP}"
        raise BadParameter(why, param_hint="--body-type") from None
