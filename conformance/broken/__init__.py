"""Servers broken on purpose; see ``conformance/FORMAT.md``, *Broken servers*."""
