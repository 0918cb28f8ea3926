"""The console: pages about a running queue manager for a browser, and the changes that they may make.

It runs in the process and the event loop of the server, and uses the operations of the control channel. A
client that reaches its port can cost little before a login, and a login needs a token from the folder.
"""

from __future__ import annotations

from msmqwire.qm.runtime.console.options import PORT, ConsoleOptions

__all__ = ["PORT", "ConsoleOptions"]
