"""A queue manager that runs: the core on asyncio, its network, its folder, and how others talk to it."""
