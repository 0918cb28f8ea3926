"""The numbers of NetWare's bindery, queue and file services under their common names.

The chapter on queue services names most of them and gives no numbers; these are the public ones.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final


class CompletionCode(IntEnum):
    """Completion codes of NCP replies. The codes from 0xD0 to 0xDB have other meanings at a login.

    Some values have two meanings, by the call they answer: the second name is an alias of the first.
    """

    SUCCESSFUL = 0x00
    OUT_OF_DISK_SPACE = 0x01
    BAD_LENGTH = 0x7E
    FILE_IN_USE = 0x80
    NO_MORE_FILE_HANDLES = 0x81
    NO_OPEN_PRIVILEGES = 0x82
    NO_CREATE_PRIVILEGES = 0x84
    NO_CREATE_DELETE_PRIVILEGES = 0x85
    INVALID_FILE_HANDLE = 0x88
    NO_DELETE_PRIVILEGES = 0x8A
    NO_READ_PRIVILEGES = 0x93
    NO_WRITE_PRIVILEGES = 0x94
    SERVER_OUT_OF_MEMORY = 0x96
    NO_SUCH_VOLUME = 0x98
    DIRECTORY_FULL = 0x99
    BAD_DIRECTORY_HANDLE = 0x9B
    INVALID_PATH = 0x9C
    NO_CONSOLE_RIGHTS = 0xC6
    ERR_Q_IO_FAILURE = 0xD0
    ERR_NO_QUEUE = 0xD1
    ERR_NO_Q_SERVER = 0xD2
    ERR_NO_Q_RIGHTS = 0xD3
    ERR_Q_FULL = 0xD4
    ERR_NO_Q_JOB = 0xD5
    ERR_NO_Q_JOB_RIGHTS = 0xD6
    ERR_Q_IN_SERVICE = 0xD7
    ERR_Q_NOT_ACTIVE = 0xD8
    ERR_Q_STN_NOT_SERVER = 0xD9
    ERR_Q_HALTED = 0xDA
    ERR_Q_MAX_SERVERS = 0xDB
    MEMBER_ALREADY_EXISTS = 0xE9
    NO_SUCH_MEMBER = 0xEA
    NOT_SET_PROPERTY = 0xEB
    NO_SUCH_SEGMENT = 0xEC
    PROPERTY_ALREADY_EXISTS = 0xED
    OBJECT_ALREADY_EXISTS = 0xEE
    INVALID_NAME = 0xEF
    WILD_CARD_NOT_ALLOWED = 0xF0
    INVALID_BINDERY_SECURITY = 0xF1
    NO_OBJECT_READ_RIGHTS = 0xF2
    NO_OBJECT_DELETE_RIGHTS = 0xF4
    NO_OBJECT_CREATE_RIGHTS = 0xF5
    NO_PROPERTY_DELETE_RIGHTS = 0xF6
    NO_PROPERTY_CREATE_RIGHTS = 0xF7
    NO_PROPERTY_WRITE_RIGHTS = 0xF8
    NO_PROPERTY_READ_RIGHTS = 0xF9
    NO_FREE_CONNECTION_SLOTS = 0xF9
    NO_SUCH_PROPERTY = 0xFB
    NCP_NOT_SUPPORTED = 0xFB
    NO_SUCH_OBJECT = 0xFC
    BAD_STATION_NUMBER = 0xFD
    BINDERY_LOCKED = 0xFE
    FAILURE = 0xFF


class ObjectType(IntEnum):
    """Types of bindery objects (NWOT_...)."""

    NWOT_USER = 0x0001
    NWOT_GROUP = 0x0002
    NWOT_PRINT_QUEUE = 0x0003  # QMS-createq-03
    NWOT_FILE_SERVER = 0x0004
    NWOT_JOB_SERVER = 0x0005  # QMS-qservers-07 and QMS-createqs-02
    NWOT_PRINT_SERVER = 0x0007  # QMS-qservers-07 and QMS-createqs-02
    NWOT_ARCHIVE_QUEUE = 0x0008  # QMS-createq-03
    NWOT_ARCHIVE_SERVER = 0x0009  # QMS-qservers-07 and QMS-createqs-02
    NWOT_JOB_QUEUE = 0x000A  # QMS-createq-03
    NWOT_WILD = 0xFFFF


class BinderySecurity(IntEnum):
    """The security byte of an object or property: the readers (low nibble) and the writers (high nibble).

    Each nibble is a level, not bits. A byte is made of one of each, ``NWBS_ANY_READ | NWBS_SUPER_WRITE``.
    """

    NWBS_ANY_READ = 0x00
    NWBS_LOGGED_READ = 0x01
    NWBS_OBJECT_READ = 0x02
    NWBS_SUPER_READ = 0x03
    NWBS_BINDERY_READ = 0x04
    NWBS_ANY_WRITE = 0x00
    NWBS_LOGGED_WRITE = 0x10
    NWBS_OBJECT_WRITE = 0x20
    NWBS_SUPER_WRITE = 0x30
    NWBS_BINDERY_WRITE = 0x40


class PropertyFlags(IntFlag):
    """The flags byte of a property; bit 0 is also that of an object."""

    BF_DYNAMIC = 0x01
    BF_SET = 0x02


class JobControlFlags(IntFlag):
    """The defined bits of jobControlFlags, table 26 of the chapter; undefined ones are kept without
    effect.
    """

    NWCF_SERVICE_AUTO_START = 0x08
    NWCF_SERVICE_RESTART = 0x10
    NWCF_ENTRY_OPEN = 0x20
    NWCF_USER_HOLD = 0x40
    NWCF_OPERATOR_HOLD = 0x80


class QueueStatus(IntFlag):
    """The status of a queue: the operations that its operators have stopped."""

    QS_CANT_ADD_JOBS = 0x01
    QS_SERVERS_CANT_ATTACH = 0x02
    QS_CANT_SERVICE_JOBS = 0x04


class TrusteeRights(IntFlag):
    """The rights of a trustee in a directory."""

    TR_READ = 0x01
    TR_WRITE = 0x02
    TR_OPEN = 0x04
    TR_CREATE = 0x08
    TR_ERASE = 0x10
    TR_ACCESS_CTRL = 0x20
    TR_FILE_SCAN = 0x40
    TR_MODIFY = 0x80


SUPERVISOR_ID: Final = 0x00000001
"""The object SUPERVISOR."""
ANY_SERVER: Final = 0xFFFFFFFF
"""targetServerID of a job that any queue server may service."""
ANY_JOB_TYPE: Final = 0xFFFF
"""The type in a request for a job of any type."""
AT_ONCE: Final = b"\xff" * 6
"""targetExecutionTime of a job to be serviced at the first opportunity."""

JOBS_MAX: Final = 250  # QMS-ext-08
"""Jobs in a queue."""
JOB_NUMBER_MAX: Final = 999  # QMS-ext-08
"""Job numbers are 1 to this."""
QUEUE_SERVERS_MAX: Final = 25  # QMS-ext-08
"""Queue servers attached to a queue."""
JOB_LIST_MAX: Final = 125
"""Job numbers in one reply of the newer calls."""
OBJECT_NAME_MAX: Final = 47
"""Characters in the name of an object."""
PASSWORD_MAX: Final = 127
"""Characters in a password."""
PROPERTY_NAME_MAX: Final = 15
"""Characters in the name of a property."""
QUEUE_PATH_MAX: Final = 118
"""Characters in the path given for a queue: with a separator, an ID and a NUL they fill a segment."""
SEGMENT_SIZE: Final = 128
"""Bytes in a segment of a property value, NWMAX_PROPERTY_VALUE_LENGTH."""
JOB_TIME_SIZE: Final = 6
"""Bytes in a time, NWMAX_QUEUE_JOB_TIME_SIZE."""
JOB_DESCRIPTION_SIZE: Final = 50
"""Bytes in jobDescription, NWMAX_JOB_DESCRIPTION_LENGTH."""
QUEUE_RECORD_SIZE: Final = 152
"""Bytes in queueRecord, which belong to the application."""
SERVER_STATUS_SIZE: Final = 64
"""Bytes in the status record of a queue server."""
