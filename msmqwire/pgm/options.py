"""The option extensions of PGM to values and back: RFC 3208 section 9."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.pgm.layouts import (
    NAK_LIST_HEAD,
    NAK_LIST_ITEM,
    NAK_LIST_MAX,
    OPTION_END,
    OPTION_HEAD,
    OPTION_HEAD_SIZE,
    OPTIONS,
    OptionType,
)
from msmqwire.pgm.reading import Reader, build, build_record, fixed
from msmqwire.pgm.values import (
    OptFin,
    OptFragment,
    Option,
    OptJoin,
    OptLength,
    OptNakList,
    OptRst,
    OptSyn,
    UnknownOption,
)

OPTIONS_MAX: Final = 64
"""Our own limit on the options of a packet: a refusal must stay cheap. The RFC allows 16."""

OPTION_LENGTH_MIN: Final = 4
SEQUENCE_NUMBER_SIZE: Final = 4
NETWORK_SIGNIFICANT: Final = frozenset({OptionType.OPT_NAK_LIST})
"""The known options for which a packet has the N bit: section 9.3; other options never have it."""

_CLASSES: Final[dict[int, Any]] = {
    kind.kind: kind for kind in (OptLength, OptFragment, OptJoin, OptSyn, OptFin, OptRst)
}


def parse_options(reader: Reader) -> tuple[Option, ...]:
    """Return the options that begin here, OPT_LENGTH first. Raises MalformedPacket."""
    start = reader.offset
    first = _parse_option(reader, 0)
    if not isinstance(first, OptLength):
        raise MalformedPacket("the first option is not OPT_LENGTH", path="options.0", offset=start)
    assert first.TotalLength is not None
    end = start + first.TotalLength
    if not reader.offset <= end <= reader.end:
        why = f"{counted(first.TotalLength, 'octet')} of options, {agreed(reader.end - start, 'are')} left"
        raise MalformedPacket(why, path="options.0.TotalLength", offset=start + OPTION_HEAD_SIZE)
    options: list[Option] = [first]
    inside = Reader(reader.data, reader.offset, end)
    while not options[-1].E:
        if len(options) == OPTIONS_MAX:
            raise MalformedPacket(f"more than {OPTIONS_MAX} options", path="options", offset=inside.offset)
        options.append(_parse_option(inside, len(options)))
    if inside.left:
        why = f"the last option ends {counted(inside.left, 'octet')} before the total length"
        raise MalformedPacket(why, path="options", offset=inside.offset)
    reader.offset = end
    return tuple(options)


def _parse_option(reader: Reader, number: int) -> Option:
    path, start = f"options.{number}", reader.offset
    head = reader.read(OPTION_HEAD, path)
    common = {"E": bool(head.OptionType & OPTION_END), "OptionLength": head.OptionLength}
    length = head.OptionLength
    kind, size = head.OptionType & ~OPTION_END, length - OPTION_HEAD_SIZE
    if length < OPTION_LENGTH_MIN:
        why = f"{counted(length, 'octet')}, at least {agreed(OPTION_LENGTH_MIN, 'are')} due"
        raise MalformedPacket(why, path=f"{path}.OptionLength", offset=start + 1)
    if kind == OptionType.OPT_NAK_LIST:
        count, rest = divmod(size - fixed(NAK_LIST_HEAD), SEQUENCE_NUMBER_SIZE)
        if rest or count > NAK_LIST_MAX:
            why = f"{counted(length, 'octet', 'are')} not a list of up to {NAK_LIST_MAX} sequence numbers"
            raise MalformedPacket(why, path=f"{path}.OptionLength", offset=start + 1)
        value = reader.read(NAK_LIST_HEAD, path)
        items = reader.take(count * SEQUENCE_NUMBER_SIZE, f"{path}.SequenceNumbers")
        numbers = tuple(
            NAK_LIST_ITEM.read(items, at)[0].SequenceNumbers
            for at in range(0, len(items), SEQUENCE_NUMBER_SIZE)
        )
        return OptNakList(numbers, Reserved=value.Reserved, U=value.U, **common)
    layout = OPTIONS.get(kind)
    if layout is None:
        return UnknownOption(kind, reader.take(size, path), **common)
    due = fixed(layout)
    if due != size:
        why = f"{counted(length, 'octet')}, {agreed(due + OPTION_HEAD_SIZE, 'are')} due"
        raise MalformedPacket(why, path=f"{path}.OptionLength", offset=start + 1)
    value = reader.read(layout, path)
    option: Option = _CLASSES[kind](**{name: value[name] for name in layout.fields}, **common)
    return option


def complete_options(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return options with OPT_LENGTH before them, if any are there and it is not."""
    return options if not options or isinstance(options[0], OptLength) else (OptLength(), *options)


def build_options(options: tuple[Option, ...]) -> bytes:
    """Return the bytes of options as they are, lengths and the E bit worked out where None."""
    contents = [_content(option, f"options.{number}") for number, option in enumerate(options)]
    total = sum(len(content) + OPTION_HEAD_SIZE for content in contents)
    if options and isinstance(options[0], OptLength) and options[0].TotalLength is None:
        contents[0] = build(OPTIONS[OptionType.OPT_LENGTH], "options.0", TotalLength=total)
    data = bytearray()
    for number, (option, content) in enumerate(zip(options, contents, strict=True)):
        path = f"options.{number}"
        last = number == len(options) - 1 if option.E is None else option.E
        length = option.OptionLength
        if length is None:
            length = OPTION_HEAD_SIZE + len(content)
        if not 0 <= option.kind < OPTION_END:
            raise InvalidValue(f"{option.kind} is not in 0..127", path=f"{path}.OptionType")
        kind = option.kind | (OPTION_END if last else 0)
        data += build(OPTION_HEAD, path, OptionType=kind, OptionLength=length) + content
    return bytes(data)


def _content(option: Option, path: str) -> bytes:
    match option:
        case UnknownOption():
            return option.content
        case OptLength(TotalLength=None):
            return build(OPTIONS[OptionType.OPT_LENGTH], path, TotalLength=0)
        case OptNakList():
            head = build(NAK_LIST_HEAD, path, Reserved=option.Reserved, U=option.U)
            item, built = NAK_LIST_ITEM.record(), [head]
            for number in option.SequenceNumbers:
                item.SequenceNumbers = number
                built.append(build_record(item, path))
            return b"".join(built)
        case _:
            layout = OPTIONS[option.kind]
            return build(layout, path, **{name: getattr(option, name) for name in layout.fields})
