"""The files of jobs, by the handles that a file server gives: NCP functions 66, 72 and 73."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.ncp.job_structures import file_handle
from msmqwire.netware.client.connection import NcpConnection

BLOCK_SIZE: Final = 0x8000
"""Bytes that one request reads or writes: below the 64 KiB of a unit, and even; see `JobFile.blocks`."""
FILE_SIZE_MAX: Final = 0xFFFFFFFF
"""The longest file in bytes: an offset has 32 bits."""


class JobFile:
    """An open file of a job.

    Attributes:
        handle: the six bytes for calls on files.
        written: the count of bytes written.
    """

    def __init__(self, connection: NcpConnection, handle: bytes) -> None:
        """Take the four bytes of jobFileHandle."""
        self._connection = connection
        self.handle = file_handle(handle)
        self.written = 0

    async def write(self, data: bytes) -> None:
        """Append bytes.

        Raises InvalidValue if the file would get too large, NcpRefused, MalformedPacket and Unreachable.
        """
        if self.written + len(data) > FILE_SIZE_MAX:
            raise InvalidValue(f"a file of more than {FILE_SIZE_MAX} bytes", path="data")
        view = memoryview(data)
        for start in range(0, len(data), BLOCK_SIZE):
            block = bytes(view[start : start + BLOCK_SIZE])
            await self._connection.call(  # QMS-jobfields-34
                "WriteFile",
                FileHandle=self.handle,
                FileOffset=self.written,
                ByteCount=len(block),
                Data=block,
            )
            self.written += len(block)

    async def blocks(self, size: int) -> AsyncIterator[bytes]:
        """Read the file from its beginning to its end, at `size` bytes.

        Reads begin at even offsets as long as replies are complete, so that no reply has a byte of padding.
        Raises MalformedPacket if the server returns fewer bytes, NcpRefused and Unreachable.
        """
        offset = 0
        while offset < size:
            block = await self._block(offset, min(BLOCK_SIZE, size - offset))
            if not block:
                raise MalformedPacket(
                    f"the file ends at byte {offset}, and was to have {size}", path="NcpFileData"
                )
            yield block
            offset += len(block)

    async def _block(self, offset: int, count: int) -> bytes:
        reply = await self._connection.call(
            "ReadFile", FileHandle=self.handle, FileOffset=offset, ByteCount=count
        )
        padding = offset & 1
        data: bytes = reply.Data[padding : padding + reply.ByteCount]
        if reply.ByteCount > count or len(data) != reply.ByteCount:
            why = f"{reply.ByteCount}, {count} were asked for and {len(data)} are there"
            raise MalformedPacket(why, path="NcpFileData.ByteCount", offset=8)
        return data
