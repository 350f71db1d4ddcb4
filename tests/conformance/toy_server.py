"""A toy server as a command: ``toy_server.py MODE``. It needs nothing but the standard library."""

import json
import os
import signal
import sys
import time


def serve(mode: str) -> None:
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode in {"deaf", "stubborn"}:
        print("ready", file=sys.stderr, flush=True)
        time.sleep(3600)
    for line in sys.stdin:
        message = json.loads(line)
        if mode == "dies":
            print("last words", file=sys.stderr, flush=True)
            sys.exit(3)
        if mode == "floods":
            while True:
                print(json.dumps({"jsonrpc": "2.0", "method": "notifications/flood"}))
        if mode == "prints":
            print("hello", flush=True)
        if mode == "half":
            print('{"jsonrpc": "2.0", ', end="", flush=True)
            sys.exit(0)
        if mode == "polite" and "id" in message:
            where = {"environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109  (no import more than needed)
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": where}
            print("served", file=sys.stderr, flush=True)
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
