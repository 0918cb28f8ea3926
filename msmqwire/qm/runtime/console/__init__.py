"""The console: pages about a running queue manager for a browser, and the changes that they may make.

The pages are files; all that they show and change goes through the API of `msmqwire.qm.runtime.api`, at the
same port, which runs in the process and the event loop of the server. A
client that reaches its port can cost little before a login, and a login needs a token from the folder.
"""

from __future__ import annotations

from msmqwire.qm.runtime.console.options import PORT, ConsoleOptions

__all__ = ["PORT", "ConsoleOptions"]
