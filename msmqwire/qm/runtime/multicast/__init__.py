"""Multicast for a queue manager: PGM on raw IP, or encapsulated in UDP."""

from msmqwire.qm.runtime.multicast.network import MulticastNetwork
from msmqwire.qm.runtime.multicast.options import PgmMode, PgmOptions, parse_pgm_options

__all__ = ["MulticastNetwork", "PgmMode", "PgmOptions", "parse_pgm_options"]
