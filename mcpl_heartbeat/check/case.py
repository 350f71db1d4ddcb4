"""What a rule looks at: an entry, how its host starts it, and what was looked up. Pure."""

from collections.abc import Mapping

import msgspec

from mcpl_heartbeat.check.hosts import Plan
from mcpl_heartbeat.check.recipe import Entry, Host, Recipe


class FileFact(msgspec.Struct, frozen=True):
    """What is known of a state file: where it really is, and why it cannot be written (or "")."""

    real: str
    unwritable: str = ""
    unusable: str = ""
    """A sentence on content that a server cannot use, or only in part."""
    unreadable: str = ""
    """A sentence on why it cannot be read; a server then leaves it alone."""


class Facts(msgspec.Struct, frozen=True):
    """What was looked up on the machine for one entry."""

    command: str | None
    """The program that the command starts, ``None`` when there is none."""
    files: dict[str, FileFact]
    missing_arguments: tuple[str, ...] = ()
    """Whole paths among the arguments where nothing is."""
    silent: bool = False
    held_by: str | None = None
    zone_known: bool = True
    store_trouble: str = ""
    """Why the shared store cannot be used, as a sentence (or "")."""
    key_known: bool | None = None
    """Whether the store knows the key of the environment; ``None``: unseen, or there is none."""
    key_unseen: str = ""
    """Why that could not be seen, as a clause (or "")."""


class Case(msgspec.Struct, frozen=True):
    """One entry with all that its rules look at."""

    recipe: Recipe
    entry: Entry
    plan: Plan
    facts: Facts
    environ: Mapping[str, str]

    @property
    def host(self) -> Host:
        """The host that starts it."""
        return self.recipe.host

    def at(self, member: str) -> str:
        """Say where a member of the entry stands."""
        return f"{self.entry.where}.{member}".lstrip(".")

    def in_launch(self, member: str) -> str:
        """Say where a member stands beside ``command``."""
        return f"{self.entry.launch_where}.{member}".lstrip(".")
