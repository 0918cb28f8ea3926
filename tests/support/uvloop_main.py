"""``python -m tests.support.uvloop_main``: ``msmqwire`` with uvloop as its event loop."""

from __future__ import annotations

import asyncio

import uvloop

from msmqwire.cli import main

if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    main()
