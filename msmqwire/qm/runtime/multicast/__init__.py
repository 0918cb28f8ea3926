"""Multicast for a queue manager: PGM on raw IP, or encapsulated in UDP."""

from msmqwire.qm.runtime.multicast.on_demand import MulticastOnDemand
from msmqwire.qm.runtime.multicast.options import PgmMode, PgmOptions, parse_pgm_options

__all__ = ["MulticastOnDemand", "PgmMode", "PgmOptions", "parse_pgm_options"]
