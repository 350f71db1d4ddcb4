"""The rigs of the operations, for tasks."""

from tests.store.operations.conftest import other_rig, rig, sqlite_rig

__all__ = ["other_rig", "rig", "sqlite_rig"]
