"""``python -m msmqwire`` is the same command as ``msmqwire``."""

from msmqwire.cli import main

if __name__ == "__main__":
    main()
