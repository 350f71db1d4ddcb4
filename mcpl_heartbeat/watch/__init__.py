"""The watch wing: dead-man switches, leases, mail, checkpoints and the briefing they add up to."""
