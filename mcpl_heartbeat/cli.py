"""The command line. ``--stdio``, which a host waits for, takes a short way in.

Nothing heavy is imported here: click and rich only for people, the server only for hosts. Hence the
imports inside functions.
"""

# ruff: noqa: PLC0415

import gc
import signal
import sys
from typing import Any

_SYSTEMS = ("linux", "darwin")
_HOSTS = ("agent-framework", "mcpl-cc-bridge", "claude-code", "claude-desktop", "mcp")
_OF_LISTENING = ("--port", "-p", "--host", "--bind", "--address", "--addr")
"""What other servers call the parts of ``--listen``."""
_HINT = (
    "mcpl-heartbeat is an MCPL server that an agent's host starts with --stdio. "
    "To see it work, run: mcpl-heartbeat demo"
)


def main() -> None:
    """Run the command with ``sys.argv`` and exit: 0 done, 1 failed, 2 not understood."""
    arguments = sys.argv[1:]
    if sys.platform not in _SYSTEMS:
        text = f"mcpl-heartbeat does not run on {sys.platform} yet, only on Linux and macOS."
        sys.exit(_failed(text, 1))
    sys.exit(_serve() if arguments == ["--stdio"] else _for_people(arguments))


def _serve() -> int:
    # Until the server handles it, Ctrl-C ends us silently instead of with a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Collecting among what is imported and read at start would only cost time and memory; the
    # server turns it on again once the files are open.
    gc.disable()
    from mcpl_heartbeat.shell import stdio

    return stdio.run()


def _for_people(arguments: list[str]) -> int:
    import click

    from mcpl_heartbeat import __version__

    @click.group(
        name="mcpl-heartbeat",
        invoke_without_command=True,
        context_settings={"max_content_width": 100},
    )
    @click.option("--stdio", is_flag=True, help="Serve on standard input and output (for a host).")
    @click.version_option(__version__, prog_name="mcpl-heartbeat")
    @click.pass_context
    def command(context: click.Context, stdio: bool) -> int:
        """Wake an AI agent on its schedule and at its reminders: an MCPL server for its host."""
        if context.invoked_subcommand is not None:
            if stdio:
                raise click.UsageError("--stdio stands alone: no command can follow it.")
            return 0
        return _serve() if stdio else _failed(_HINT, 2)

    @command.command()
    @click.option("--raw", is_flag=True, help="Show the JSON lines themselves.")
    def demo(raw: bool) -> int:
        """Show the first wakes: starts the server and plays a host for it."""
        from mcpl_heartbeat.demo import main as demonstration

        return demonstration.run(raw=raw)

    @command.command()
    @click.argument("recipe", required=False, type=click.Path(dir_okay=False))
    @click.option("--host", type=click.Choice(_HOSTS), help="Whose config it is.")
    @click.option("--server", metavar="ID", help="Which server of it, if not the heartbeat one.")
    @click.option("--gate", metavar="FILE", help="The gate.json that agent-framework runs on.")
    @click.option("--strict", is_flag=True, help="Exit with 1 for warnings.")
    @click.option("--no-start", is_flag=True, help="Only read; start nothing.")
    @click.option(
        "--timeout", type=click.FloatRange(min=0.1), help="Seconds to wait for an answer."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    def check(
        recipe: str | None, no_start: bool, timeout: float | None, as_json: bool, **options: Any
    ) -> int:
        """Find what is wrong in a host's config, and say what its agent will get.

        RECIPE is the host's config or recipe; without one, this command as it stands. Exit code 0:
        all that this host can give will work (on a plain MCP client the tools alone), 1: warnings,
        with --strict, 2: something will not work.
        """
        from mcpl_heartbeat.check import main as checking

        chosen = checking.Options(recipe, starts=not no_start, seconds=timeout, **options)
        return checking.run(chosen, as_json=as_json)

    @command.command()
    @click.option("--config", metavar="FILE", help="The config file, if not the environment's.")
    @click.option("--reminders", metavar="FILE", help="The reminders file, likewise.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    def show(config: str | None, reminders: str | None, as_json: bool) -> int:
        """Show the schedule and the reminders on disk, without starting or touching anything.

        Exit code 1: a file is not there or cannot be used.
        """
        from mcpl_heartbeat import show as showing

        return showing.run(config, reminders, as_json=as_json)

    @command.command()
    @click.option(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:8765",
        show_default=True,
        help="Where to listen; port 0 takes any that is free.",
    )
    @click.option("--store", metavar="URL", help="The store, if not HEARTBEAT_STORE's.")
    @click.option("--allow-remote", is_flag=True, help="Listen where other machines can reach it.")
    def serve(listen: str, store: str | None, allow_remote: bool) -> int:
        """Serve over HTTP: the dead-man switch, leases, mail, briefings, and tasks.

        The URL is sqlite:////absolute/path/store.db or postgresql+psycopg://user@host/database;
        without one the store is a file in the platform's data folder. SIGTERM or Ctrl-C ends it
        with exit code 0, once what runs is finished. Exit code 1: it could not start.
        """
        from mcpl_heartbeat.shell.http import serve as serving

        return serving.run(listen, store, allow_remote=allow_remote)

    @command.group()
    def store() -> None:
        """Look after the shared store of the watch wing."""

    @store.command()
    @click.option("--store", "url", metavar="URL", help="The store, if not HEARTBEAT_STORE's.")
    def upgrade(url: str | None) -> int:
        """Bring the store's tables to this version of the program.

        A SQLite store, and an empty database, are brought up by themselves when they are opened.
        """
        from mcpl_heartbeat.shell import upgrade as upgrading

        return upgrading.run(url)

    try:
        status = command.main(arguments, prog_name="mcpl-heartbeat", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(status or 0)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "mcpl-heartbeat"
        text = error.format_message()
        if isinstance(error, click.NoSuchOption) and error.option_name in _OF_LISTENING:
            text = f"No such option: {error.option_name}. Use --listen HOST:PORT."
        return _failed(f"mcpl-heartbeat: {text} See {path} --help.", 2)
    except click.ClickException as error:
        return _failed(f"mcpl-heartbeat: {error.format_message()} See mcpl-heartbeat --help.", 2)
    except click.Abort:
        return 130
    except OSError as error:
        _leave_stdout()
        reason = error.strerror or str(error)
        what = "the output could not be written" if error.filename is None else error.filename
        return _failed(f"mcpl-heartbeat: {what}: {reason}.", 1)


def _leave_stdout() -> None:
    """Let Python's last flush at exit go nowhere, since it would fail as the one before did."""
    import contextlib
    import os

    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _failed(text: str, status: int) -> int:
    if sys.stderr is not None:
        print(text, file=sys.stderr)
    return status
