"""The console: pages about a running queue manager for a browser, with what they may change.

It runs in the process and the event loop of the server, and uses the operations of the control channel.
Whoever reaches its port can cost little before a login, and a login needs a token from the folder.
"""

from __future__ import annotations

from msmqwire.qm.runtime.console.options import PORT, ConsoleOptions

__all__ = ["PORT", "ConsoleOptions"]
