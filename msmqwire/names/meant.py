r"""Format names nearly typed: ``private$\orders``, ``FormatName:DIRECT=...``, a backslash left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msmqwire.errors import InvalidName
from msmqwire.names.addresses import ADDRESS_READERS, is_ip, without_brackets
from msmqwire.names.formats import DirectName, FormatName, MultipleElementName, kind_of, parse_format_name
from msmqwire.names.grammar import ILLEGAL_FORMAT_NAME, ILLEGAL_PATH_NAME
from msmqwire.names.nearest import nearest

EXAMPLE: Final = r"DIRECT=TCP:10.0.0.5\private$\orders"
_TEXT_MAX: Final = 600
"""Characters of a text that is worth a guess."""
_COM_PREFIX: Final = re.compile(r"\s*FormatName:\s*", re.IGNORECASE)
_PRIVATE: Final = re.compile(r"\\*private\$[\\/]*", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(\w+):(.*)", re.DOTALL)
_WITHOUT_ROOT: Final = re.compile(r"^(//[^/\\]+)[/\\]")
_PORT: Final = re.compile(r":\d+(?=\\)")


def wanted_format_name(text: str, computer: str = ".") -> FormatName:
    r"""Return the format name that a user or a program gives; an error shows a valid one.

    A queue named ``private$orders`` is refused, though the grammar has it: a backslash was forgotten.

    Args:
        text: the name.
        computer: that of a queue that is named without one; ``.`` where only this computer reads the name.

    Raises InvalidName.
    """
    try:
        name = parse_format_name(text)
    except InvalidName as exc:
        meant = format_name_meant(text, computer)
        hint = f"write {meant}" if meant else "" if kind_of(text) else f"as {EXAMPLE}"
        if meant and _PORT.search(text):
            hint += ", and the port apart"
        why = f"{exc.why}; {hint}" if hint else exc.why
        raise InvalidName(
            why, offset=exc.offset, hresult=exc.hresult, near=(meant,) if meant else ()
        ) from None
    _check(name, text)
    return name


def check_backslash(queue: str, text: str, hresult: int = ILLEGAL_PATH_NAME) -> None:
    r"""Refuse a queue named ``private$orders``, which is ``private$\orders`` without its backslash.

    Args:
        queue: the name of the queue, without the computer and the mark of private queues.
        text: the whole name.
        hresult: the code of the error.

    Raises InvalidName.
    """
    if queue.lower().startswith("private$"):
        meant = _with_backslashes(text)
        why = f"a backslash is missing after private$; write {meant}"
        raise InvalidName(why, offset=text.lower().index("private$") + 8, hresult=hresult, near=(meant,))


def format_name_meant(text: str, computer: str = ".") -> str | None:
    r"""Return the format name that a wrong one is most likely to mean; None if there is none.

    For the path name of a queue, ``private$\orders``, that is its direct name. The returned name is sound.
    """
    if len(text) > _TEXT_MAX:
        return None
    for candidate in _candidates(_COM_PREFIX.sub("", text, count=1).strip(), computer):
        if candidate != text and _is_sound(candidate):
            return candidate
    return None


def _is_sound(text: str) -> bool:
    try:
        _check(parse_format_name(text), text)
    except InvalidName:
        return False
    return True


def _check(name: FormatName, text: str) -> None:
    for element in name.elements if isinstance(name, MultipleElementName) else (name,):
        if isinstance(element, DirectName) and not element.private:
            check_backslash(element.queue or "", text, ILLEGAL_FORMAT_NAME)


def _candidates(text: str, computer: str) -> Iterator[str]:
    yield text
    kind, equals, rest = text.partition("=")
    if equals and kind_of(text) is None:
        near = nearest(kind, ["DIRECT", "PUBLIC", "PRIVATE", "MULTICAST"], most=1)
        yield from (f"{one}={rest}" for one in near)
    if not equals:
        rest = text
    if match := _ADDRESS.fullmatch(rest):
        protocol, address = match[1].upper(), match[2]
        near = (
            (protocol,) if protocol in ADDRESS_READERS else nearest(protocol, ["TCP", "OS", "HTTP"], most=1)
        )
        for one in near:
            if one == "TCP":
                yield from _by_host(_with_backslashes(_PORT.sub("", address, count=1)), computer)
            yield f"DIRECT={one}:{_with_backslashes(address)}"
            if one.startswith("HTTP"):
                address = _WITHOUT_ROOT.sub(r"\1/msmq/", address)
                yield f"DIRECT={one}:{address}"
    elif not equals and rest and not set(rest) & set("\\/:$"):
        yield f"DIRECT=OS:{computer}\\private$\\{rest}"
    elif not equals or kind_of(text) == DirectName.kind:
        yield from _by_host(_with_backslashes(rest), computer)


def _by_host(path: str, computer: str) -> Iterator[str]:
    r"""Yield direct names of a queue by its path, ``10.0.0.5\private$\orders`` or ``private$\orders``."""
    path = path.removeprefix(".\\").lstrip("\\")
    host, backslash, _ = path.partition("\\")
    if not backslash or host.lower() == "private$":
        yield f"DIRECT=OS:{computer}\\{path}"
    else:
        yield f"DIRECT={'TCP' if is_ip(without_brackets(host)) else 'OS'}:{path}"


def _with_backslashes(path: str) -> str:
    """Return the path of a queue with a backslash before and after the mark of a private one."""
    match = _PRIVATE.search(path)
    if match is None:
        return path.replace("/", "\\")
    before, after = path[: match.start()].rstrip("\\/"), path[match.end() :].replace("/", "\\")
    return "\\".join((*([before] if before else []), "private$", after))
