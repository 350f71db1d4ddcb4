"""``python -m mcpl_heartbeat``, the same as the command."""

from mcpl_heartbeat.cli import main

if __name__ == "__main__":
    main()
