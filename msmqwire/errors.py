"""The exceptions of msmqwire: what was wrong, where, and whose fault it was.

Nothing else leaves the library on account of its input. Callers act on the types and the
attributes, never on the texts.
"""

from __future__ import annotations

from typing import Self


class MsmqError(Exception):
    """The root of all exceptions that msmqwire raises on purpose."""


class LocatedError(MsmqError, ValueError):
    """An error with a place.

    Attributes:
        why: the reason, one sentence without a place.
        path: the field, in the specification's names (``UserHeader.DestinationQueue.Count``);
            empty when no field can be named.
        offset: the byte, counted from the start of the packet; None when there is none.
    """

    def __init__(self, why: str, *, path: str = "", offset: int | None = None) -> None:
        place = ", ".join(filter(None, (path, "" if offset is None else f"byte {offset}")))
        super().__init__(f"{place}: {why}" if place else why)
        self.why, self.path, self.offset = why, path, offset

    def detached(self) -> Self:
        """The error without the frames it was raised in, which keep the bytes alive: to be held on to."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def to_json(self) -> dict[str, object]:
        """The error as the command line prints it: ``{"error", "path", "offset"}``."""
        return {"error": self.why, "path": self.path, "offset": self.offset}


class MalformedPacket(LocatedError):
    """The bytes are not the structure they should be: the peer's fault.

    A queue manager discards the packet and closes the session ([MS-MQQB] 3.1.5.1.3). For bytes
    that end too early the offset is where they end; for a field whose value can't be, where that
    field stands.
    """


class InvalidValue(LocatedError):
    """A value that can't be built: the caller's fault."""


class InvalidName(LocatedError):
    """A format name or path name that breaks the grammar of [MS-MQMQ] 2.1.

    Attributes:
        hresult: the code that an MSMQ call would return, MQ_ERROR_ILLEGAL_FORMATNAME
            (0xC00E001E) or MQ_ERROR_ILLEGAL_QUEUE_PATHNAME (0xC00E0014).
    """

    def __init__(self, why: str, *, path: str = "", offset: int | None = None, hresult: int) -> None:
        super().__init__(why, path=path, offset=offset)
        self.hresult = hresult


class CaptureError(MsmqError):
    """A capture file that can't be read on: what could be read before has been handed out.

    Attributes:
        file: the name of the file.
        offset: the byte in the (uncompressed) file at which reading stopped.
        cut: whether the file just ends too early, as one that still grows does; else it is damaged.
    """

    def __init__(self, why: str, *, file: str, offset: int, cut: bool = False) -> None:
        super().__init__(f"{file}, byte {offset}: {why}")
        self.why, self.file, self.offset, self.cut = why, file, offset, cut


class QueueError(MsmqError):
    """A queue manager does not do what it was asked for.

    Attributes:
        why: the reason.
        hresult: the code that an MSMQ call would return (MQ_ERROR_QUEUE_NOT_FOUND, 0xC00E0003, ...).
    """

    def __init__(self, why: str, hresult: int) -> None:
        super().__init__(why)
        self.why, self.hresult = why, hresult


class Unreachable(MsmqError):
    """A queue manager does not answer, or has gone."""


class NotDelivered(MsmqError):
    r"""A message that was sent did not come, or was not received, where it was to go.

    Attributes:
        identifier: of the message, ``guid\number``.
        why: the reason.
        message_class: the class of the negative acknowledgement; None when this side gave the message up.
    """

    def __init__(self, why: str, *, identifier: str, message_class: int | None = None) -> None:
        super().__init__(f"{identifier}: {why}")
        self.why, self.identifier, self.message_class = why, identifier, message_class


class StoreError(MsmqError):
    """A store of a queue manager can't be opened, read or written; the subclasses say what to do about it.

    Attributes:
        file: the name of the file.
        why: the reason and what to do, without the file.
    """

    def __init__(self, why: str, *, file: str) -> None:
        super().__init__(f"{file}: {why}")
        self.why, self.file = why, file


class StoreRefused(StoreError):
    """The system refuses to read or write: a full disk, an error of input or output, missing permissions.

    Nothing that was durable is lost. The caller keeps the refused changes and tries again later; should the
    process end before that, they are there as a whole or not at all.
    """


class StoreDamaged(StoreError):
    """The file is a store whose content is broken. It is left as it is."""


class StoreForeign(StoreError):
    """The file is not a store of a queue manager. It is left as it is."""


class StoreNewer(StoreError):
    """The store was written by a later version of msmqwire. It is left as it is."""


class StoreInUse(StoreError):
    """Another process, or another object of this one, has the store open."""


class StoreMissing(StoreError):
    """There is no store under this name, and none was to be made."""
