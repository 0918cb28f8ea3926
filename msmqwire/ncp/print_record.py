"""The content of queueRecord in a job of a print queue, written by clients.

Queue services do not read it, and the chapter does not describe it; print servers read it. Sources give two
widths to the name of the form, which agree on its first bytes.
"""

from __future__ import annotations

from typing import Final

from msmqwire.ncp.constants import QUEUE_RECORD_SIZE
from msmqwire.schema import Header, oem_text, raw, uint

PRINT_RECORD: Final = Header(
    "NWPrintRecord",
    "queueRecord of print queues",
    (
        uint(8, "Version"),
        uint(8, "TabSize", "Blanks for a tab."),
        uint(16, "Copies", "How often the job is printed.", big_endian=True),
        raw("ControlFlags", 2, "Flags of the print server, whose bits no source gives."),
        uint(16, "LinesPerPage", big_endian=True),
        uint(16, "CharactersPerLine", big_endian=True),
        oem_text("FormName", 16, "The form to be mounted in the printer."),
        raw("Reserved", 6),
        oem_text("BannerUser", 13, "The name of the user on the banner page."),
        oem_text("BannerFile", 13, "The name of the job on the banner page."),
        oem_text("HeaderFileName", 14, "The file name in the header line."),
        oem_text("Path", 80, "The directory of that file."),
    ),
    "A print job's properties, which the print server reads.",
    size=QUEUE_RECORD_SIZE,
)
