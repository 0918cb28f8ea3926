"""The channel by which commands and programs of a computer reach the server of a folder there."""
