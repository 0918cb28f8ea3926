"""The data of the calls by which clients and queue servers use the files of jobs: NCP functions 66, 72, 73.

Functions 76 and 77, which open and create files by path, show the rights that a queue server has.
"""

from __future__ import annotations

from typing import Final

from msmqwire.ncp.calls import Call
from msmqwire.ncp.queue_calls import EMPTY
from msmqwire.schema import REST, Header, Part, Ref, oem_text, raw, uint

_SECTION: Final = "NCP file services"

_RESERVED: Final = uint(8, "Reserved")
_HANDLE: Final = raw("FileHandle", 6, "The handle of an open file.")
_OFFSET: Final = uint(32, "FileOffset", "Where in the file.", unit="bytes", big_endian=True)
_COUNT: Final = uint(16, "ByteCount", "How many bytes.", unit="bytes", big_endian=True)


def _structure(name: str, *parts: Part, meaning: str = "") -> Header:
    return Header(f"Ncp{name}", _SECTION, parts, meaning)


CLOSE: Final = _structure("CloseFile", _RESERVED, _HANDLE)
READ: Final = _structure("ReadFile", _RESERVED, _HANDLE, _OFFSET, _COUNT)
DATA: Final = _structure(
    "FileData",
    _COUNT,
    raw("Data", REST, "If the offset asked for is odd, one byte of padding, then the bytes."),
    meaning="Bytes of a file.",
)
WRITE: Final = _structure(
    "WriteFile",
    _RESERVED,
    _HANDLE,
    _OFFSET,
    _COUNT,
    raw("Data", Ref("ByteCount"), "The bytes."),
)
_PATH: Final = (uint(8, "PathLength"), oem_text("Path", Ref("PathLength"), "The path of the file."))
_DIRECTORY: Final = uint(8, "DirectoryHandle", "0: the path is complete.")
OPEN: Final = _structure(
    "OpenFile",
    _DIRECTORY,
    uint(8, "SearchAttributes", "Which files are found: 2 for hidden ones, too; 4 for those of the system."),
    uint(8, "DesiredAccessRights", "1: to read; 2: to write."),
    *_PATH,
)
CREATE: Final = _structure(
    "CreateFile", _DIRECTORY, uint(8, "FileAttributes", "1: read-only; 2: hidden."), *_PATH
)
OPENED: Final = _structure(
    "OpenedFile",
    _HANDLE,
    uint(16, "Reserved", big_endian=True),
    oem_text("FileName", 14, "The name of the file."),
    uint(8, "FileAttributes"),
    uint(8, "FileExecuteType"),
    uint(32, "FileSize", unit="bytes", big_endian=True),
    uint(16, "CreationDate", "Day in 5 bits, month in 4, year since 1980 in 7.", big_endian=True),
    uint(16, "LastAccessedDate", big_endian=True),
    uint(16, "ModifiedDate", big_endian=True),
    uint(16, "ModifiedTime", "Half seconds in 5 bits, minutes in 6, hours in 5.", big_endian=True),
    meaning="A file that was opened.",
)


def _call(function: int, name: str, request: Header, reply: Header) -> Call:
    return Call(function, name, request, reply, function=function)


FILE_CALLS: Final = (
    _call(66, "CloseFile", CLOSE, EMPTY),
    _call(72, "ReadFile", READ, DATA),
    _call(73, "WriteFile", WRITE, EMPTY),
    _call(76, "OpenFile", OPEN, OPENED),
    _call(77, "CreateFile", CREATE, OPENED),
)
