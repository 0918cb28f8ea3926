"""A running queue manager: the core on asyncio, its network, its data folder and its control channel."""
