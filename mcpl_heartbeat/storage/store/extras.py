"""What the extras bring, and how it is said, everywhere alike, that some of it is not installed."""

import importlib.util

from mcpl_heartbeat.storage.store.ports import StoreError

SERVE = {
    "sqlalchemy": "sqlalchemy",
    "alembic": "alembic",
    "starlette": "starlette",
    "hypercorn": "hypercorn",
    "prometheus_client": "prometheus-client",
    "platformdirs": "platformdirs",
}
"""The modules of the extra ``serve``, each with the name of its distribution."""
POSTGRES = {"psycopg": "psycopg"}
"""Likewise of the extra ``postgres``, which is of use only beside ``serve``."""


def need(*modules: str) -> None:
    """Raise ``StoreError`` when one is not installed, naming all that is missing and the command.

    Whatever was asked for, all that is missing of the extra is named: it is installed as a whole.
    """
    if all(map(_there, modules)):
        return
    named, extra = SERVE, "serve"
    if not POSTGRES.keys().isdisjoint(modules):
        named, extra = SERVE | POSTGRES, "serve,postgres"
    *others, last = (name for module, name in named.items() if not _there(module))
    what = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    raise StoreError(
        f"{what} not installed: pip install 'mcpl-heartbeat[{extra}]', "
        f"or from a checkout: pip install '.[{extra}]'"
    )


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
