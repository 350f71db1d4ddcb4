"""``mcpl-heartbeat check``: what is wrong in a host's wiring of this server, and what to do."""
