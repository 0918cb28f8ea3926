"""The values of NTSTATUS that MSMQ returns in place of an HRESULT: [MS-ERREF] 2.3.1."""

from __future__ import annotations

from enum import IntEnum


class NtStatus(IntEnum):
    """Results of [MS-MQRR] 3.1.4.5 to 3.1.4.13, and of [MS-MQDMPR] 3.1.7.1.17."""

    STATUS_INVALID_HANDLE = 0xC0000008  # DMPR-1.8-01
    STATUS_INVALID_PARAMETER = 0xC000000D  # DMPR-1.8-01
    STATUS_ACCESS_DENIED = 0xC0000022  # DMPR-1.8-01
    STATUS_NOT_FOUND = 0xC0000225  # DMPR-1.8-01, MQMQ-1.7-01
