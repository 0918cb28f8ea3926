"""The channel by which commands and programs of a computer reach what serves a folder there."""
