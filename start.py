#!/usr/bin/env python3
"""Set mcpl-heartbeat up in this folder with nothing but Python, then run something with it.

    python3 start.py demo      install, then watch an agent being woken
    python3 start.py serve     install with the shared store, then serve it over HTTP
    python3 start.py test      install with the test tools, then run the tests
    python3 start.py install   only install, with the shared store, and say where the command is

What follows the word goes on to the demo, to "mcpl-heartbeat serve" or to pytest. Options before
the word:

    --env DIR       the virtual environment (default: .venv beside this file)
    --package FILE  install this wheel, sdist or folder instead of this folder, editable

It needs neither pip nor ensurepip on the machine, keeps to pip's own settings (index, proxy,
certificate, constraints), may be run again at any time, and is quick when there is nothing to do.
"""

# Only the standard library, and a syntax that old Pythons can read far enough to be told off.
import base64
import configparser
import hashlib
import io
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST = (3, 11)
# One release known by its digest can be fetched from anywhere, even where this Python has no
# certificates to check a server by (a fresh Debian has none).
PIP_VERSION = "26.3"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
PUBLIC_INDEX = "https://pypi.org/simple"
PIP_WHEEL = re.compile(r"pip-(\d+(?:\.\d+)*)-py3-none-any\.whl")
SHOWN = ("Collecting ", "Building wheel", "Installing collected", "Successfully inst", "ERROR")
# What each word needs beside the wake server.
STORE = ["postgres", "serve"]
WORDS = {"demo": [], "serve": STORE, "test": [*STORE, "test"], "install": STORE}


class Stop(Exception):
    """Something a person has to know and do; its text says what."""


class Misuse(Stop):
    """A command line that is not understood."""


def say(text):
    """Print one line of progress at once; stdout stays the program's own."""
    print(f"start: {text}", file=sys.stderr, flush=True)


def main(arguments):
    """Install as asked and become what was asked for. Exit 2 for wrong use, 1 for a failure."""
    try:
        word, rest, env, package = read_command_line(arguments)
        if word is None:
            print(__doc__.strip())
            return 0 if "--help" in arguments or "-h" in arguments else 2
        if os.name != "posix":
            raise Stop("mcpl-heartbeat runs on Linux and macOS, not on this system yet.")
        use_new_enough_python(arguments)
        install(env, package, WORDS[word])
    except Stop as stop:
        say(str(stop))
        return 2 if isinstance(stop, Misuse) else 1
    except KeyboardInterrupt:
        say("stopped; run the same command again to go on.")
        return 130
    scripts = env / "bin"
    if word == "install":
        print(scripts / "mcpl-heartbeat")
        return 0
    command = [scripts / "mcpl-heartbeat", word, *rest]
    if word == "test":
        # Most tests wait for a server more than they compute, so four at once pay on any machine.
        command = [scripts / "pytest", "-n", "4", "--dist", "worksteal", *rest]
        os.chdir(HERE)
    sys.stdout.flush()
    return os.execv(str(command[0]), [str(part) for part in command])


def read_command_line(arguments):
    """Split the arguments into (word, what follows it, environment, package)."""
    env, package = HERE / ".venv", None
    rest = list(arguments)
    while rest and rest[0] not in WORDS:
        option = rest.pop(0)
        if option in ("-h", "--help"):
            return None, [], env, package
        if option not in ("--env", "--package") or not rest:
            raise Misuse(f"{option!r} is not understood. Say one of: {', '.join(WORDS)}.")
        value = Path(rest.pop(0)).resolve()
        if option == "--env":
            env = value
        else:
            package = value
    if rest[:1] == ["install"] and len(rest) > 1:
        raise Misuse(f"nothing may follow install, but {rest[1]!r} does; options go before it.")
    return (rest[0] if rest else None), rest[1:], env, package


def use_new_enough_python(arguments):
    """Go on as a newer Python where this one is too old and there is another."""
    if sys.version_info >= OLDEST:
        return
    for name in ("python3.13", "python3.12", "python3.11", "python3.14"):
        path = shutil.which(name)
        works = path and subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL) == 0
        if works:
            say(f"this Python is {sys.version.split()[0]}; going on with {path}")
            os.execv(path, [path, str(HERE / "start.py"), *arguments])
    raise Stop(f"Python 3.11 or later is needed; this is {sys.version.split()[0]}.")


def install(env, package, extras):
    """Bring ``env`` to hold the package with ``extras``, all of it compiled to bytecode."""
    started = time.monotonic()
    stamp_file = env / "mcpl-heartbeat-start.json"
    wanted = {"package": str(package or HERE), "digest": digest(package or HERE / "pyproject.toml")}
    stamp = read_stamp(stamp_file)
    same = all(stamp.get(key) == value for key, value in wanted.items())
    if same and set(extras) <= set(stamp.get("extras", ())) and runs(env):
        compile_sources(env, package)
        return
    stamp_file.unlink(missing_ok=True)
    if runs(env):
        say(f"using {env}")
    else:
        say(f"making {env} with Python {sys.version.split()[0]}")
        make_environment(env)
    if not has_pip(env):
        add_pip(env)
    extras = sorted(set(extras) | set(stamp.get("extras", ()) if same else ()))
    wish = str(package or HERE) + (f"[{','.join(extras)}]" if extras else "")
    say(f"installing {wish}")
    if package:
        # A rebuilt wheel has the version of the one before, and pip would keep that one.
        run_pip(env, "uninstall", ["--yes", "mcpl-heartbeat"])
    run_pip(env, "install", ["--compile", *([] if package else ["--editable"]), wish])
    compile_sources(env, package)
    stamp_file.write_text(json.dumps({**wanted, "extras": extras}), encoding="utf-8")
    say(f"installed in {time.monotonic() - started:.0f} s")


def read_stamp(path):
    """Return what the last finished installation noted, or nothing."""
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def digest(path):
    """Return the digest of one file; a folder is told apart by its name alone."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except IsADirectoryError:
        return str(time.time_ns())
    except OSError as error:
        raise Stop(f"cannot read {path}: {error.strerror}") from None


def python_of(env):
    """Return the environment's interpreter."""
    return env / "bin" / "python"


def runs(env):
    """Say whether the environment has a Python of a fit version that starts."""
    check = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.call([python_of(env), "-c", check], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def has_pip(env):
    """Say whether pip can be run there (an interrupted start may have left it out)."""
    command = [python_of(env), "-m", "pip", "--version"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.call(command, **quiet) == 0


def make_environment(env):
    """Make a virtual environment, with the pip of this Python where it brings one."""
    if env.exists() and not (env / "pyvenv.cfg").exists() and any(env.iterdir()):
        raise Stop(f"{env} is there and is no virtual environment; move it away, or use --env.")
    try:
        import venv  # noqa: PLC0415 - some systems package it apart
    except ImportError:
        raise Stop("this Python has no venv module; install it (Debian: python3-venv).") from None
    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian packages it apart

        with_pip = True
    except ImportError:
        with_pip = False
    try:
        venv.EnvBuilder(clear=env.exists(), symlinks=True, with_pip=with_pip).create(env)
    except (OSError, subprocess.CalledProcessError) as error:
        if not with_pip:
            raise Stop(f"cannot make {env}: {error}") from None
        venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(env)


def run_pip(env, verb, arguments):
    """Run the environment's pip; show its main lines, and all of them if it fails."""
    command = [python_of(env), "-m", "pip", "--no-input", "--disable-pip-version-check"]
    command += [verb, *arguments]
    # These would send the packages elsewhere than into the environment.
    astray = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_DRY_RUN", "PIP_QUIET")
    environment = {key: value for key, value in os.environ.items() if key not in astray}
    lines = []
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout:
            lines.append(line)
            if line.strip().startswith(SHOWN):
                say("  " + line.strip().partition(" (from ")[0][:90])
    if process.returncode:
        sys.stderr.write("".join(lines))
        raise Stop("pip could not install; its words are above. Then run the same command again.")


def compile_sources(env, package):
    """Compile what an editable installation runs from; pip compiles what it copies."""
    if package is None:
        sources = [HERE / "mcpl_heartbeat"]
        subprocess.call([python_of(env), "-m", "compileall", "-q", *sources])


def add_pip(env):
    """Unpack pip into the environment, fetched from where pip's settings say packages come from."""
    wheel = fetch_pip(PipSettings())
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    target = subprocess.check_output([python_of(env), "-c", code], text=True).strip()
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        archive.extractall(target)
    subprocess.call([python_of(env), "-m", "compileall", "-q", target])


class PipSettings:
    """The part of pip's settings that says where packages come from, read as pip reads it."""

    def __init__(self):
        self.values = {}
        for path in self.files():
            parser = configparser.RawConfigParser()
            try:
                parser.read(path, encoding="utf-8")
            except (configparser.Error, UnicodeDecodeError) as error:
                say(f"skipping {path}: {error}")
                continue
            for section in ("global", "install"):
                if parser.has_section(section):
                    self.values.update(parser.items(section))
        for key, value in os.environ.items():
            if key.startswith("PIP_") and value:
                self.values[key[4:].lower().replace("_", "-")] = value

    @staticmethod
    def files():
        """Name pip's files, the weakest first."""
        named = os.environ.get("PIP_CONFIG_FILE")
        if named == os.devnull:
            return []
        shared = os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
        own = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        paths = [f"{folder}/pip/pip.conf" for folder in reversed(shared) if folder]
        paths += ["/etc/pip.conf", "~/.pip/pip.conf", f"{own}/pip/pip.conf"]
        if sys.platform == "darwin":
            paths.append("~/Library/Application Support/pip/pip.conf")
        return [Path(path).expanduser() for path in (*paths, *([named] if named else []))]

    def places(self):
        """List the addresses to look for pip at, in order."""
        found = self.values.get("find-links", "").split()
        if self.values.get("no-index", "").lower() not in ("1", "true", "yes", "on"):
            indexes = self.values.get("index-url", PUBLIC_INDEX).split()
            indexes += self.values.get("extra-index-url", "").split()
            found += [index.rstrip("/") + "/pip/" for index in indexes]
        return [place if "://" in place else Path(place).resolve().as_uri() for place in found]

    def trusts(self, host):
        """Say whether the settings name this host as one to take unchecked."""
        names = [name.split(":")[0] for name in self.values.get("trusted-host", "").split()]
        return host in ("localhost", "127.0.0.1", "::1", *names)

    def opener(self, checked):
        """Return what opens addresses, by these settings' certificates and proxy."""
        context = ssl.create_default_context()
        if self.values.get("cert"):
            context.load_verify_locations(self.values["cert"])
        if not checked:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        handlers = [urllib.request.HTTPSHandler(context=context)]
        if self.values.get("proxy"):
            proxy = self.values["proxy"]
            handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
        return urllib.request.build_opener(*handlers)


def fetch_pip(settings):
    """Return pip's wheel from the first place that has one.

    Content counts if it has the digest above, or if the place that named it and the place that
    sent it are both known for who they say they are.
    """
    reasons = []
    for place in settings.places():
        try:
            for address, known, named_safely in candidates(settings, place):
                say(f"adding pip from {hide_password(address)}")
                content, sent_safely = read(settings, address)
                found = hashlib.sha256(content).hexdigest()
                safe = named_safely and sent_safely
                if found == PIP_SHA256 or (safe and known in ("", found)):
                    return content
                reasons.append(f"{hide_password(address)}: not the expected content")
        except (OSError, ValueError) as error:
            reasons.append(f"{hide_password(place)}: {error}")
    raise Stop(
        "no pip: this Python has no ensurepip (Debian: python3-venv), and none could be fetched. "
        + "; ".join(reasons)
    )


def candidates(settings, place):
    """List (address, SHA-256 or "", whether the list can be trusted), the best one first."""
    folder = Path(urllib.request.url2pathname(urllib.parse.urlsplit(place).path))
    if place.startswith("file:") and folder.is_dir() and not (folder / "index.html").exists():
        links = [path.name for path in folder.iterdir()]
        base, checked = place.rstrip("/") + "/", True
    else:
        base = place + ("index.html" if place.startswith("file:") else "")
        page, checked = read(settings, base)
        links = re.findall(r"""href\s*=\s*["']([^"']+)["']""", page.decode("utf-8", "replace"))
    wheels = []
    for link in links:
        address, _, fragment = urllib.parse.urljoin(base, link).partition("#")
        match = PIP_WHEEL.fullmatch(address.rsplit("/", 1)[-1])
        if match:
            known = re.match(r"sha256=([0-9a-f]{64})", fragment)
            rank = (match[1] == PIP_VERSION, [int(part) for part in match[1].split(".")])
            wheels.append((rank, address, known[1] if known else "", checked))
    return [wheel[1:] for wheel in sorted(wheels, reverse=True)[:2]]


def read(settings, address):
    """Return (content, whether the sender was checked)."""
    parts = urllib.parse.urlsplit(address)
    headers = {"Accept": "text/html, */*;q=0.5"}
    if parts.username is not None and parts.scheme != "file":
        pair = ":".join(map(urllib.parse.unquote, (parts.username, parts.password or "")))
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    request = urllib.request.Request(urllib.parse.urlunsplit(parts), headers=headers)
    checked = parts.scheme in ("https", "file") or settings.trusts(parts.hostname)
    try:
        with settings.opener(checked=not settings.trusts(parts.hostname)).open(
            request, timeout=60
        ) as answer:
            return answer.read(), checked
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ssl.SSLCertVerificationError):
            raise
        # What comes back is used only if its digest is the one written above.
        with settings.opener(checked=False).open(request, timeout=60) as answer:
            return answer.read(), False


def hide_password(address):
    """Return the address as it may be shown."""
    return re.sub(r"://[^/@]*@", "://…@", address)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
