"""The constants of [MC-MQSRM] 2.1.3.1, in seconds and bytes; names are those of RFC 3208."""

from typing import Final

UDP_PORTS: Final = (3055, 3056)
"""Ports on which PGM is encapsulated: of packets for the group, and of those for one host."""

TXW_MAX_RTE: Final = 70_000.0  # bytes a second; SRMP-2.1.3.1-01
TXW_SECS: Final = 300.0  # SRMP-2.1.3.1-02
TXW_ADV_SHARE: Final = 0.15  # TXW_ADV_SECS and TXW_ADV_IVL, of TXW_SECS; SRMP-2.1.3.1-03, -04
TOKEN_BUCKET: Final = 0.040  # seconds of TXW_MAX_RTE; SRMP-2.1.3.1-09

IHB_MIN: Final = 1.0  # SRMP-2.1.3.1-05
IHB_MAX: Final = 15.0
AMBIENT_SPM_PACKETS: Final = 50  # SRMP-2.1.3.1-11
AMBIENT_SPM_IVL: Final = 0.5

RDATA_DELAY: Final = 0.060  # SRMP-2.1.3.1-12

NAK_RB_IVL: Final = (0.01, 0.05)  # SRMP-2.1.3.1-10
NAK_RPT_IVL: Final = 0.75  # SRMP-2.1.3.1-06
NAK_RDATA_IVL: Final = 2.0  # SRMP-2.1.3.1-07
NAK_NCF_RETRIES: Final = 10  # SRMP-2.1.3.1-08
NAK_DATA_RETRIES: Final = 10

NCF_SHARE: Final = 0.1
"""The rate of NCFs, of TXW_MAX_RTE: our own limit. It confirms far more packets than could be repaired."""
NAK_MAX_RTE: Final = 64_000.0
"""Bytes of NAKs a second of a receiver: our own limit, for a forger of packets chooses their destination."""

APDU_MAX: Final = 65_536  # SRMP-2.1.3.1-15
TPDU_MAX: Final = 1_400
"""The longest packet that a source makes by default: fits into Ethernet, in IP and in UDP."""
