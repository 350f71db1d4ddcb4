"""mcpl-heartbeat: one program for the liveness of AI agents."""

__version__ = "0.1.0"
