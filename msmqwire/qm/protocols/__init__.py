"""The protocols, apart from the core: one folder each. None depends on another, and none does I/O."""
