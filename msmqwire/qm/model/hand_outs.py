"""The messages that programs have received and not ended, noted for the case that the process is killed."""

from __future__ import annotations

from collections.abc import Mapping


class HandOuts:
    """The messages that programs have at present, by their LookupIdentifiers.

    This base keeps the notes in memory: they end with it. `msmqwire.qm.runtime.hand_out_file.HandOutFile`
    writes them down as well, so that the next start finds them.
    """

    def __init__(self) -> None:
        self._noted: dict[int, int] = {}

    def note(self, lookup_identifier: int, deliveries: int, *, lasting: bool) -> None:
        """Note that a program has received a message.

        Args:
            lookup_identifier: identifies the message until it is moved; never used again.
            deliveries: its count of deliveries if the program does not end it.
            lasting: whether the message is still there after a restart.
        """
        self._noted[lookup_identifier] = 0

    def ended(self, lookup_identifier: int) -> bool:
        """Return whether a program had a message, which has now been ended or given back."""
        return self._noted.pop(lookup_identifier, None) is not None

    def withdraw(self, lookup_identifier: int) -> None:
        """Take back a note: the program never got the message."""
        self.ended(lookup_identifier)

    def left(self) -> Mapping[int, int]:
        """Return the count of deliveries of each message that programs had when the last process ended.

        It may also have messages that were ended, or given back and stored with this count.
        """
        return {}
