"""The compiled scan over files: its arrays and their room, and the events that it leaves to dissectors."""
