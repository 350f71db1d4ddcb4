"""The command line. ``--stdio``, which a host waits for, takes a short way in.

Nothing heavy is imported here: click and rich only for people, the server only for hosts. Hence the
imports inside functions.
"""

# ruff: noqa: PLC0415

import gc
import signal
import sys

_SYSTEMS = ("linux", "darwin")
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
    # What is imported stays: collecting among it would only cost start-up time and memory.
    gc.disable()
    from mcpl_heartbeat.shell import stdio

    gc.freeze()
    gc.enable()
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

    try:
        return int(command.main(arguments, prog_name="mcpl-heartbeat", standalone_mode=False) or 0)
    except click.ClickException as error:
        return _failed(f"mcpl-heartbeat: {error.format_message()} See mcpl-heartbeat --help.", 2)
    except click.Abort:
        return 130


def _failed(text: str, status: int) -> int:
    if sys.stderr is not None:
        print(text, file=sys.stderr)
    return status
