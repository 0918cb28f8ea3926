"""The addresses at which queue managers are: a GUID is that of one of them, DMPR-3.1.1-05.

Machines that were cloned with their queue manager share its GUID. Their messages have the same identities,
one of two is taken for a copy and dropped, and acknowledgements go to the wrong one.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple

from msmqwire.analysis.lint.registry import listed

GUIDS_MAX: Final = 1 << 14
"""Queue managers whose addresses are remembered; of more, the one that was silent longest is forgotten."""
ADDRESSES_MAX: Final = 16
"""Addresses of a queue manager that are remembered; more make no findings."""

TWO_ADDRESSES: Final = listed("DMPR-3.1.1-05", "One queue manager GUID at two addresses", severity="NOTE")


class Place(NamedTuple):
    """An address, and where in a capture a queue manager was seen there first."""

    address: str
    file: str | None
    frame: int | None


class Addresses:
    """The addresses of one queue manager."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: tuple[Place, ...] = ()

    def add(self, place: Place) -> Place | None:
        """Take a place where it was seen; return one at another address, the first time for each address.

        An address of another kind is not another address: a machine has one for itself, of IPv4 and of IPv6.
        """
        kind = _kind(place.address)
        known = self._places
        if kind is None or len(known) >= ADDRESSES_MAX or any(one.address == place.address for one in known):
            return None
        self._places = (*known, place)
        return next((one for one in known if _kind(one.address) == kind), None)


class QueueManagers:
    """The addresses of all queue managers of a capture."""

    def __init__(self) -> None:
        self._by_guid: OrderedDict[object, Addresses] = OrderedDict()

    def add(self, guid: object, place: Place) -> Place | None:
        """Take a place where a queue manager was seen; return one at another address as `Addresses.add`."""
        addresses = self._by_guid.get(guid)
        if addresses is None:
            addresses = self._by_guid[guid] = Addresses()
            if len(self._by_guid) > GUIDS_MAX:
                self._by_guid.popitem(last=False)
        else:
            self._by_guid.move_to_end(guid)
        return addresses.add(place)


@lru_cache(maxsize=1 << 12)
def _kind(address: str) -> tuple[int, bool] | None:
    """Return the version of an address, and whether it is of a link; None for one that says nothing."""
    try:
        number = ip_address(address)
    except ValueError:
        return None
    if number.is_loopback or number.is_unspecified:
        return None
    return number.version, number.is_link_local


def two_addresses(guid: object, here: Place, there: Place) -> str:
    """Return the finding in words."""
    file = "" if there.file == here.file or not there.file else f" of {there.file}"
    seen = "" if there.frame is None else f" (frame {there.frame}{file})"
    return (
        f"one queue manager GUID at two addresses: {guid} is at {here.address}, and at {there.address}"
        f"{seen}: machines cloned with their queue manager, a forged sender, or one machine with several "
        "addresses (DHCP, NAT, several networks)"
    )
