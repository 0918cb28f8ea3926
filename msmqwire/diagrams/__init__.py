Ladder = ladder = None
