"""The data of the first calls of a client: about the file server, its volume, its connections and logins.

Functions 18, 20, 24, 33, 97 and 104; function 22, subfunction 5; function 23, subfunctions 17 to 28, 70, 200
and 205. Numbers are big-endian, but for the connection numbers of 32 bits.
"""

from __future__ import annotations

from typing import Final

from msmqwire.ncp.calls import FUNCTION_22, Call
from msmqwire.ncp.constants import OBJECT_NAME_MAX
from msmqwire.ncp.queue_calls import EMPTY
from msmqwire.schema import REST, Header, Part, Ref, oem_text, raw, uint

_SECTION: Final = "NCP file server environment"
_NAME_SIZE: Final = OBJECT_NAME_MAX + 1
VOLUME_NAME_SIZE: Final = 16
"""Bytes of the name of a volume."""
LOGIN_KEY_SIZE: Final = 8
"""Bytes of the key of a keyed login."""


def _structure(name: str, *parts: Part, meaning: str = "") -> Header:
    return Header(f"Ncp{name}", _SECTION, parts, meaning)


def _word(name: str, meaning: str = "") -> Part:
    return uint(16, name, meaning, big_endian=True)


_CONNECTION: Final = "The number of the connection."
VOLUME_NUMBER: Final = _structure("VolumeNumber", uint(8, "VolumeNumber", "The number of the volume."))
VOLUME_NAME: Final = _structure(
    "VolumeName",
    uint(8, "VolumeNameLength"),
    oem_text("VolumeName", Ref("VolumeNameLength"), "The name of the volume."),
)
VOLUME_INFO: Final = _structure(
    "VolumeInfo",
    _word("SectorsPerCluster", "Sectors of 512 bytes in a cluster."),
    _word("TotalVolumeClusters", "The clusters of the volume."),
    _word("AvailableClusters", "The free ones among them."),
    _word("TotalDirectorySlots", "The directories and files for which there is room."),
    _word("AvailableDirectorySlots", "The free ones among them."),
    oem_text("VolumeName", VOLUME_NAME_SIZE, "The name of the volume."),
    _word("RemovableFlag", "0 for a volume that is not removable."),
    meaning="The size of a volume.",
)
_TIME: Final = (
    uint(8, "Year", "Two digits; 80 to 99 are the 1900s."),
    uint(8, "Month", "1 to 12."),
    uint(8, "Day", "1 to 31."),
    uint(8, "Hour", "0 to 23."),
    uint(8, "Minute", "0 to 59."),
    uint(8, "Second", "0 to 59."),
    uint(8, "DayOfWeek", "0 for Sunday, 6 for Saturday."),
)
DATE_AND_TIME: Final = _structure("DateAndTime", *_TIME, meaning="The clock of the file server.")
BUFFER_SIZE: Final = _structure("BufferSize", _word("BufferSize", "Bytes that a read or write may have."))
PROPOSED_SIZE: Final = _structure(
    "ProposedPacketSize",
    _word("ProposedMaxSize", "Bytes of the largest packet that the client takes."),
    uint(8, "SecurityFlag", "The packet signatures and checksums that the client wants."),
)
ACCEPTED_SIZE: Final = _structure(
    "AcceptedPacketSize",
    _word("AcceptedMaxSize", "Bytes of the largest packet."),
    _word("EchoSocket", "The IPX socket that returns packets; 0 for none."),
    uint(8, "SecurityFlag", "The packet signatures and checksums that are used."),
)
SERVER_INFORMATION: Final = _structure(
    "FileServerInformation",
    oem_text("ServerName", _NAME_SIZE, "The name of the file server."),
    uint(8, "OSMajorVersion", "The version of NetWare whose calls it has."),
    uint(8, "OSMinorVersion"),
    _word("ConnectionsSupportedMax", "Service connections at once."),
    _word("ConnectionsInUse", "Service connections."),
    _word("VolumesSupportedMax", "Volumes at once."),
    uint(8, "OSRevision"),
    uint(8, "SFTSupportLevel", "The level of its fault tolerance."),
    uint(8, "TTSLevel", "The level of its transactions."),
    _word("ConnectionsMaxUsed", "The most service connections that there have been at once."),
    uint(8, "AccountVersion", "The version of its accounting; 0 for none, as in all versions."),
    uint(8, "VAPVersion"),
    uint(8, "QueueingVersion", "The version of its queue services."),
    uint(8, "PrintServerVersion"),
    uint(8, "VirtualConsoleVersion"),
    uint(8, "SecurityRestrictionVersion"),
    uint(8, "InternetBridgeVersion"),
    uint(8, "MixedModePathFlag"),
    uint(8, "LocalLoginInfoCcode"),
    _word("ProductMajorVersion"),
    _word("ProductMinorVersion"),
    _word("ProductRevisionVersion"),
    uint(8, "OSLanguageID"),
    uint(8, "SixtyFourBitOffsetsSupportedFlag"),
    uint(8, "OESServer", "1 for Open Enterprise Server."),
    uint(8, "OESLinuxOrNetWare"),
    raw("Reserved", 48),
    meaning="The file server.",
)
CONNECTION: Final = _structure("TargetConnection", uint(32, "TargetConnectionNumber", _CONNECTION))
OLD_CONNECTION: Final = _structure("OldTargetConnection", uint(8, "TargetConnectionNumber", _CONNECTION))
LOGGED_INFO: Final = _structure(
    "LoggedInfo",
    uint(32, "UserID", "The object that is logged in; 0 for none.", big_endian=True),
    _word("UserType", "The type of the object."),
    oem_text("UserName", _NAME_SIZE, "The name of the object."),
    *_TIME,
    uint(8, "Reserved"),
    meaning="The login of a connection, and its time; zeros without a login.",
)
_ADDRESS: Final = (
    uint(32, "NetworkAddress", "The IPX network.", big_endian=True),
    raw("NetworkNodeAddress", 6, "The IPX node."),
    _word("NetworkSocket", "The IPX socket."),
)
OLD_ADDRESS: Final = _structure("OldInternetAddress", *_ADDRESS, meaning="The IPX address of a client.")
ADDRESS: Final = _structure(
    "InternetAddress",
    *_ADDRESS,
    uint(8, "ConnectionType", "2 for NCP over IPX, 0x0B over IP."),
    meaning="The address of a client.",
)
LOGIN_KEY: Final = _structure(
    "LoginKey",
    raw("LoginKey", LOGIN_KEY_SIZE, "Random bytes that the next keyed login encrypts."),
    meaning="The key of a keyed login.",
)
KEYED_LOGIN: Final = _structure(
    "KeyedLogin",
    raw("LoginKey", LOGIN_KEY_SIZE, "The login key, encrypted with a hash of the password."),
    _word("ObjectType", "The type of the object."),
    uint(8, "ObjectNameLength"),
    oem_text("ObjectName", Ref("ObjectNameLength"), "The name of the object."),
    meaning="An object and the proof of its password.",
)
ACCESS_LEVEL: Final = _structure(
    "BinderyAccessLevel",
    uint(8, "AccessLevel", "High half: the level to write; low half: the level to read."),
    uint(32, "LoggedObjectID", "The object that is logged in; 0xFFFFFFFF for none.", big_endian=True),
)
LOGIN_STATUS: Final = _structure("LoginStatus", uint(8, "UserLoginAllowed", "1 if clients may log in."))
NDS: Final = _structure(
    "DirectoryServices",
    uint(8, "SubFunctionCode", "1 to ask for the directory, 2 for a fragment of a request to it."),
    raw("Data", REST, "The data of the subfunction."),
    meaning="A request to NetWare Directory Services.",
)


def _function(function: int, name: str, request: Header, reply: Header) -> Call:
    return Call(function, name, request, reply, function=function)


SERVER_CALLS: Final = (
    _function(18, "GetVolumeInfoWithNumber", VOLUME_NUMBER, VOLUME_INFO),
    _function(20, "GetFileServerDateAndTime", EMPTY, DATE_AND_TIME),
    _function(24, "EndOfJob", EMPTY, EMPTY),
    _function(33, "NegotiateBufferSize", BUFFER_SIZE, BUFFER_SIZE),
    _function(97, "GetBigPacketMaxSize", PROPOSED_SIZE, ACCEPTED_SIZE),
    _function(104, "DirectoryServices", NDS, EMPTY),
    Call(5, "GetVolumeNumber", VOLUME_NAME, VOLUME_NUMBER, function=FUNCTION_22),
    Call(17, "GetFileServerInformation", EMPTY, SERVER_INFORMATION),
    Call(19, "GetInternetAddressOld", OLD_CONNECTION, OLD_ADDRESS),
    Call(22, "GetStationsLoggedInfoOld", OLD_CONNECTION, LOGGED_INFO),
    Call(23, "GetLoginKey", EMPTY, LOGIN_KEY),
    Call(24, "KeyedObjectLogin", KEYED_LOGIN, EMPTY),
    Call(26, "GetInternetAddress", CONNECTION, ADDRESS),
    Call(28, "GetStationsLoggedInfo", CONNECTION, LOGGED_INFO),
    Call(70, "GetBinderyAccessLevel", EMPTY, ACCESS_LEVEL),
    Call(200, "CheckConsolePrivileges", EMPTY, EMPTY),
    Call(205, "GetFileServerLoginStatus", EMPTY, LOGIN_STATUS),
)
