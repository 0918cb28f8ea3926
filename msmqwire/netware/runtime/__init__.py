"""The queue service on asyncio: its folder, its driver, and the control channel of its administration."""
