"""The queue manager: model, events, protocol engines, store, simulation."""
