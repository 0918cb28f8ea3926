"""The protocols beside the core, one folder each; none knows of another, and nothing here does I/O."""
