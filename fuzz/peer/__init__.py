"""Testing a peer by property: directed cases, walks of a state machine, oracles, shrinking, evidence."""
