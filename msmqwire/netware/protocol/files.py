"""The calls about files: of jobs, and of volumes, which show a queue server's rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.netware.model import names
from msmqwire.netware.model.files import FileAccess, VolumeFile
from msmqwire.netware.model.job_fields import handle_of, six_byte_handle
from msmqwire.netware.protocol.calls import NO_DATA, CallContext, Fields, Operation, ToRead, ToWrite
from msmqwire.netware.protocol.queues import complete_path

_READ, _WRITE = 0x01, 0x02
_COUNT_SIZE: Final = 2
_NAME_SIZE: Final = 14


def _close(call: CallContext) -> Fields:
    call.service.files.close(call.caller, handle_of(call.data.FileHandle))
    return NO_DATA


def _read(call: CallContext) -> ToRead:
    """Read the bytes available: fewer than requested at the end of the file, and if the client accepts no
    more.
    """
    data = call.data
    room = max(0, call.room - _COUNT_SIZE - data.FileOffset % 2)
    count = min(data.ByteCount, room)
    return ToRead(call.service.files.read(call.caller, handle_of(data.FileHandle), data.FileOffset, count))


def data_read(access: FileAccess, data: bytes) -> Fields:
    """Return the data of the reply to ReadFile: a byte of padding comes first from an odd offset."""
    return {"ByteCount": len(data), "Data": bytes(access.offset % 2) + data}


def _write(call: CallContext) -> ToWrite:
    data = call.data
    access = call.service.files.write(
        call.caller, handle_of(data.FileHandle), data.FileOffset, len(data.Data)
    )
    return ToWrite(access, data.Data)


def _open(call: CallContext) -> Fields:
    path, rights = complete_path(call), call.data.DesiredAccessRights
    handle = call.service.volumes.open_file(
        call.caller, path, may_read=bool(rights & _READ), may_write=bool(rights & _WRITE)
    )
    return _opened(call, path, handle)


def _create(call: CallContext) -> Fields:
    path = complete_path(call)
    return _opened(call, path, call.service.volumes.create_file(call.caller, path))


def _opened(call: CallContext, path: str, handle: int) -> Fields:
    """Return an opened file. Times and attributes of files are not kept."""
    path = names.volume_path(path)
    name = path.partition(":")[2].rpartition("\\")[2]
    return {
        "FileHandle": six_byte_handle(handle),
        "FileName": name[:_NAME_SIZE],
        "FileSize": call.service.files.size(VolumeFile(path)),
    }


OPERATIONS: Final[Mapping[str, Operation]] = {
    "CloseFile": _close,
    "ReadFile": _read,
    "WriteFile": _write,
    "OpenFile": _open,
    "CreateFile": _create,
}
