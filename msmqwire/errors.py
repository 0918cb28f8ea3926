"""The exceptions of msmqwire: the fault, its place, and its cause.

The library raises nothing else because of its input. Callers rely on types and attributes, never on texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from msmqwire.constants import HResult, hresult_name


class MsmqError(Exception):
    """The base of all exceptions that msmqwire raises on purpose."""


class LocatedError(MsmqError, ValueError):
    """An error with a location.

    Attributes:
        why: the reason, one sentence without the location.
        path: the field, in the specification's names (``UserHeader.DestinationQueue.Count``);
            empty if no field can be named.
        offset: the byte, counted from the start of the packet; None if unknown.
    """

    def __init__(self, why: str, *, path: str = "", offset: int | None = None) -> None:
        location = ", ".join(filter(None, (path, "" if offset is None else f"byte {offset}")))
        super().__init__(f"{location}: {why}" if location else why)
        self.why, self.path, self.offset = why, path, offset

    def detached(self) -> Self:
        """Drop the traceback, whose frames keep the bytes alive, so that the error can be stored."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def to_json(self) -> dict[str, object]:
        """Return the error as the command line prints it: ``{"error", "path", "offset"}``."""
        return {"error": self.why, "path": self.path, "offset": self.offset}


class MalformedPacket(LocatedError):
    """The bytes are not the structure they should be: the peer's fault.

    A queue manager discards the packet and closes the session ([MS-MQQB] 3.1.5.1.3). For bytes
    that end too early the offset is where they end; for an invalid value, that of its field.

    Attributes:
        requirement: the id of the requirement that is broken; empty if none was given.
    """

    def __init__(self, why: str, *, path: str = "", offset: int | None = None, requirement: str = "") -> None:
        super().__init__(why, path=path, offset=offset)
        self.requirement = requirement


class MalformedBody(LocatedError):
    """The bytes are not a body of the format that its type names, not even at their beginning.

    Attributes:
        offset: the byte, counted from the start of the body; None if unknown.
    """


class InvalidValue(LocatedError):
    """A value that can't be built: the caller's fault."""


class InvalidArgument(InvalidValue):
    """An argument that names nothing there is, or can be no value of its kind: wrong usage, found at once.

    Attributes:
        path: the parameter.
        near: the right names most like the wrong one, the best first; empty if none is.
    """

    def __init__(self, why: str, *, path: str = "", near: Iterable[str] = ()) -> None:
        super().__init__(why, path=path)
        self.near = tuple(near)


class InvalidSignature(LocatedError):
    """A signature that does not prove who made the message, or not of all that is in it: the peer's fault.

    The message is well-formed, but nothing of it may be believed.
    """


class UnsupportedAlgorithm(LocatedError):
    """A hash, a cipher or a key of an algorithm that messages do not have, or that is not installed.

    Messages have those of [MS-MQMQ] 2.2.19.3.

    Attributes:
        algorithm: its number.
    """

    def __init__(self, algorithm: int, why: str = "", *, path: str = "", offset: int | None = None) -> None:
        super().__init__(why or f"{algorithm:#x} is an unknown algorithm", path=path, offset=offset)
        self.algorithm = algorithm


class DecryptionFailed(MsmqError):
    """A body that can't be decrypted. The text is the same for every cause, which must not be revealed."""

    def __init__(self) -> None:
        super().__init__("the body can't be decrypted")


class InvalidName(LocatedError):
    """A format name or path name that breaks the grammar of [MS-MQMQ] 2.1.

    Attributes:
        hresult: the code that an MSMQ call would return, MQ_ERROR_ILLEGAL_FORMATNAME
            (0xC00E001E) or MQ_ERROR_ILLEGAL_QUEUE_PATHNAME (0xC00E0014).
        near: names that are likely to be meant, the best first; empty if none is known.
    """

    def __init__(
        self,
        why: str,
        *,
        path: str = "",
        offset: int | None = None,
        hresult: int,
        near: Iterable[str] = (),
    ) -> None:
        super().__init__(why, path=path, offset=offset)
        self.hresult, self.near = hresult, tuple(near)


class CaptureError(MsmqError):
    """A capture file that can't be read further; everything before has been returned.

    Attributes:
        file: the name of the file.
        offset: the byte in the (uncompressed) file at which reading stopped.
        cut: whether the file only ends too early, as one still being written does; otherwise it is damaged.
    """

    def __init__(self, why: str, *, file: str, offset: int, cut: bool = False) -> None:
        super().__init__(f"{file}, byte {offset}: {why}")
        self.why, self.file, self.offset, self.cut = why, file, offset, cut


class CaptureWarning(UserWarning):
    """A part of captures was not read; the rest is in the result.

    Attributes:
        error: the place where reading a file stopped, and the reason; None if it is about single frames.
        frames_not_read: why frames were not read, each reason with the number of frames.
    """

    def __init__(self, about: CaptureError | str, frames_not_read: tuple[tuple[str, int], ...] = ()) -> None:
        super().__init__(str(about))
        self.error = about if isinstance(about, CaptureError) else None
        self.frames_not_read = frames_not_read


class UnsupportedStore(MsmqError, ValueError):
    """A URL, or an option of its store, that this installation can't use: the caller's fault."""


class QueueError(MsmqError):
    """A request that a queue manager refuses.

    Attributes:
        why: the reason.
        hresult: the code that an MSMQ call would return (MQ_ERROR_QUEUE_NOT_FOUND, 0xC00E0003, ...).
    """

    def __init__(self, why: str, hresult: int) -> None:
        super().__init__(why)
        self.why, self.hresult = why, hresult

    @property
    def name(self) -> str:
        """The name of the code, ``MQ_ERROR_QUEUE_NOT_FOUND``, or its digits if it has none."""
        return hresult_name(self.hresult)

    def to_json(self) -> dict[str, object]:
        """Return the error as the control channel and the command line show it."""
        code = {"hresult": f"0x{self.hresult:08X}", "name": self.name}
        return {"error": self.why, "path": "", "offset": None, **code}


class ReadTimeout(QueueError, TimeoutError):
    """No message has come in time: MQ_ERROR_IO_TIMEOUT. It is a TimeoutError of Python, too."""

    def __init__(self, why: str) -> None:
        super().__init__(why, HResult.MQ_ERROR_IO_TIMEOUT)


class NcpRefused(MsmqError):
    """A call that a NetWare file server refuses, with no effect.

    Attributes:
        why: the reason.
        code: the completion code, one of `msmqwire.ncp.constants.CompletionCode` if it has a name.
        name: the name of the code, ``ERR_NO_Q_RIGHTS``, as far as a client knows it; else empty.
    """

    def __init__(self, why: str, code: int, name: str = "") -> None:
        super().__init__(why)
        self.why, self.code, self.name = why, code, name


class NcpLoginRefused(NcpRefused):
    """A NetWare file server that does not let a client in: it has no connection, or refuses the login."""


class Unreachable(MsmqError):
    """A queue manager that does not answer or is gone."""


class AnswerTimeout(Unreachable, TimeoutError):
    """The other side did not answer in time."""


class ProtocolViolation(Unreachable):
    """The other side answers, and not as the protocol requires: nothing of it may be believed."""


class HostNotFound(Unreachable):
    """A computer whose name has no address, as far as can be found out here."""


class ManagerStopped(QueueError, Unreachable):
    """A queue manager that stops ends waiting calls: MQ_ERROR_OPERATION_CANCELLED. Nothing was received."""


class TransactionAborted(Unreachable):
    """A transaction is over: its queue manager was lost before the commit, and nothing of it was done."""


class OutcomeUnknown(Unreachable):
    """A queue manager was lost while it was to change something: it has done so, wholly, or not at all."""


class ChangeWaits(OutcomeUnknown):
    """The disk of a queue manager refuses a change, which waits in its memory until the disk has room."""


class EndUnknown(OutcomeUnknown):
    """A queue manager was lost while it was to delete a received message: it has, or the message is back.

    Attributes:
        message: the message, for a program that has not got it otherwise; None for one that has.
    """

    message: object = None


class EngineFailed(MsmqError):
    """A fault of msmqwire itself inside a queue manager, which has ended on account of it.

    Earlier durable state is kept. Nothing that was not has been acknowledged or answered.

    Attributes:
        why: the unforeseen exception.
    """

    def __init__(self, why: BaseException) -> None:
        super().__init__(f"a fault of msmqwire itself, the queue manager has ended: {why!r}")
        self.why = why


class NotDelivered(MsmqError):
    r"""A sent message that did not reach its destination, or was not received there.

    Attributes:
        identifier: the identifier of the message, ``guid\number``.
        why: the reason.
        message_class: the class of the negative acknowledgement; None if the sending side gave up.
    """

    def __init__(self, why: str, *, identifier: str, message_class: int | None = None) -> None:
        super().__init__(f"{identifier}: {why}")
        self.why, self.identifier, self.message_class = why, identifier, message_class


class StoreError(MsmqError):
    """A store of a queue manager that can't be opened, read or written; the subclasses tell cause and remedy.

    Attributes:
        file: the name of the file.
        why: the reason and the remedy, without the file.
    """

    def __init__(self, why: str, *, file: str) -> None:
        super().__init__(f"{file}: {why}")
        self.why, self.file = why, file


class StoreRefused(StoreError):
    """The system refuses to read or write: a full disk, an I/O error, missing permissions.

    Nothing durable is lost. The caller keeps the refused changes and retries later; if the process ends
    before that, either all of them are stored or none.
    """


class StoreDamaged(StoreError):
    """The file is a store with broken content. It is left unchanged."""


class StoreForeign(StoreError):
    """The file is not a store of a queue manager. It is left unchanged."""


class StoreNewer(StoreError):
    """The store was written by a later version of msmqwire. It is left unchanged."""


class StoreInUse(StoreError):
    """The store is open in another process, or in another object of this one."""


class StoreMissing(StoreError):
    """No store of this name exists, and none was to be created."""


class AuthenticationFailed(MsmqError):
    """A peer that did not prove who it is, or bytes that it did not sign: nothing of them may be believed.

    Attributes:
        why: the reason; never a secret.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class RpcFault(MsmqError):
    """A remote call that the server did not answer with results.

    Attributes:
        status: the status of the fault: an HRESULT of the called method, or a status of RPC.
        name: the name of the status, or its number as text.
    """

    def __init__(self, status: int, name: str) -> None:
        super().__init__(f"the remote call failed: {name}")
        self.status, self.name = status, name


class RpcRefused(MsmqError):
    """An association that the server refuses or ends.

    Attributes:
        why: the reason.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class LakeError(MsmqError):
    """A lake that can't be read or written; the subclasses tell cause and remedy.

    Attributes:
        file: the folder or the file.
        why: the reason and the remedy, without the file.
    """

    def __init__(self, why: str, *, file: str) -> None:
        super().__init__(f"{file}: {why}")
        self.why, self.file = why, file


class LakeMissing(LakeError):
    """No lake is there."""


class LakeMismatch(LakeError):
    """The arguments contradict the contents of the lake. It is left unchanged."""


class LakeDamaged(LakeError):
    """The log, the state or a file of the lake is broken, or the folder has links or entries of other users.

    It is left unchanged.
    """
