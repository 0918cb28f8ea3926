"""MSMQ: the binary protocol, ping, SRMP over HTTP and PGM, and remote read."""

# SPDX-License-Identifier: GPL-2.0-only

from msmqwire.plugins.scapy import *  # noqa: F403
