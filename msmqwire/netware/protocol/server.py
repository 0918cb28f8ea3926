"""The calls about the file server, its volume, its clock and its connections.

A client makes them before and after its login. They say what is true of a queue service: NetWare 3.11, whose
queue calls it has, one volume, no accounting, no fault tolerance, no transactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model import times
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.protocol.calls import NO_DATA, CallContext, Fields, Operation
from msmqwire.netware.rules.volumes import VOLUMES

_VERSION: Final = {"OSMajorVersion": 3, "OSMinorVersion": 11, "QueueingVersion": 1}
_TIME: Final = ("Year", "Month", "Day", "Hour", "Minute", "Second", "DayOfWeek")
_NOBODY: Final = 0xFFFFFFFF
_OVER_IP: Final = 0x0B
_SECTOR: Final = 512
_WORD_MAX: Final = 0xFFFF


def _clock(call: CallContext) -> Fields:
    return _time(call.now)


def _time(time: datetime) -> dict[str, int]:
    """Return a time with its day of the week."""
    return dict(zip(_TIME, (*times.to_bytes(time), time.astimezone(UTC).isoweekday() % 7), strict=True))


def _information(call: CallContext) -> Fields:
    connections = call.host.connections
    return _VERSION | {
        "ServerName": call.host.name,
        "ConnectionsSupportedMax": connections.most,
        "ConnectionsInUse": len(connections),
        "ConnectionsMaxUsed": connections.peak,
        "VolumesSupportedMax": len(VOLUMES),
    }


def _buffer_size(call: CallContext) -> Fields:
    """Accept the size that the client wants: what a reply may have is in the preamble of each request."""
    return {"BufferSize": call.data.BufferSize}


def _packet_size(call: CallContext) -> Fields:
    """Accept the size that the client wants, without packet signatures and checksums."""
    return {"AcceptedMaxSize": call.data.ProposedMaxSize}


def _end_of_job(call: CallContext) -> Fields:
    call.service.files.close_task(call.caller)
    return NO_DATA


def _volume_number(call: CallContext) -> Fields:
    return {"VolumeNumber": call.service.volumes.number(call.data.VolumeName)}


def _volume_info(call: CallContext) -> Fields:
    """Return the sizes in clusters large enough for words of 16 bits."""
    space = call.service.volumes.space(call.data.VolumeNumber)
    sectors = 1
    while space.total_bytes > _SECTOR * sectors * _WORD_MAX and sectors <= _WORD_MAX // 2:
        sectors *= 2
    cluster = _SECTOR * sectors
    return {
        "SectorsPerCluster": sectors,
        "TotalVolumeClusters": min(space.total_bytes // cluster, _WORD_MAX),
        "AvailableClusters": min(space.free_bytes // cluster, _WORD_MAX),
        "TotalDirectorySlots": min(space.entries, _WORD_MAX),
        "AvailableDirectorySlots": min(space.free_entries, _WORD_MAX),
        "VolumeName": space.name,
    }


def _station(call: CallContext) -> Caller:
    """Return the connection that a request names. Raises NcpRefused."""
    number = call.data.TargetConnectionNumber
    found = call.host.connections.get(number)
    if found is None:
        raise NcpRefused(f"there is no connection {number}", CompletionCode.BAD_STATION_NUMBER)
    return found


def _logged_info(call: CallContext) -> Fields:
    """Return the login of a connection; nobody for one without a login, or whose object was deleted."""
    station = _station(call)
    holder = call.service.objects.get(station.object_id)
    if holder is None or station.login_time is None:
        return NO_DATA
    found = holder if station is call.caller else call.service.bindery.get_name(call.caller, holder.id)
    return {
        "UserID": found.id,
        "UserType": found.type,
        "UserName": found.name,
        **_time(station.login_time),
    }


def _old_address(call: CallContext) -> Fields:
    """Return no address: connections over TCP have none of IPX."""
    _station(call)
    return NO_DATA


def _address(call: CallContext) -> Fields:
    return {**_old_address(call), "ConnectionType": _OVER_IP}


def _access_level(call: CallContext) -> Fields:
    level = int(call.service.bindery.own_level(call.caller))
    holder = call.service.objects.get(call.caller.object_id)
    return {"AccessLevel": level << 4 | level, "LoggedObjectID": _NOBODY if holder is None else holder.id}


def _console(call: CallContext) -> Fields:
    call.service.bindery.check_console(call.caller)
    return NO_DATA


def _login_status(_call: CallContext) -> dict[str, Any]:
    return {"UserLoginAllowed": 1}


OPERATIONS: Final[Mapping[str, Operation]] = {
    "GetVolumeInfoWithNumber": _volume_info,
    "GetFileServerDateAndTime": _clock,
    "EndOfJob": _end_of_job,
    "NegotiateBufferSize": _buffer_size,
    "GetBigPacketMaxSize": _packet_size,
    "GetVolumeNumber": _volume_number,
    "GetFileServerInformation": _information,
    "GetInternetAddressOld": _old_address,
    "GetStationsLoggedInfoOld": _logged_info,
    "GetInternetAddress": _address,
    "GetStationsLoggedInfo": _logged_info,
    "GetBinderyAccessLevel": _access_level,
    "CheckConsolePrivileges": _console,
    "GetFileServerLoginStatus": _login_status,
}
"""Without NDS, whose refusal sends clients to the bindery, and without keyed logins: their proof is made of a
weak hash of the password, which is not kept. A client that gets no login key sends LoginObject.
"""
