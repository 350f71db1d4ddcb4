"""Servers that do one thing wrong: ``python fakes.py KIND --stdio``."""

import json
import sys
import time

kind = sys.argv[1]


def answer(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if kind == "dies":
    print("no module named heart", file=sys.stderr, flush=True)
    sys.exit(3)
if kind == "chatty":
    print("Starting up!", flush=True)
for line in sys.stdin:
    if kind == "hangs":
        continue
    request = json.loads(line)
    match request.get("method"):
        case "initialize":
            version = "2025-11-25" if kind == "newer" else request["params"]["protocolVersion"]
            mcpl = {
                "version": "0.5",
                "pushEvents": True,
                "featureSets": {"heartbeat": {"uses": ["pushEvents", "tools"]}},
            }
            capabilities = {"tools": {}}
            if kind != "plain":
                capabilities["experimental"] = {"mcpl": mcpl}
            about = {"name": "fake", "version": "0"}
            result = {"capabilities": capabilities, "serverInfo": about}
            answer(request, result | {"protocolVersion": version})
        case "featureSets/update":
            if kind == "no-receipt":
                continue
            accepted = kind != "refuses"
            answer(request, {"accepted": accepted, "reason": "not on Sundays"})
        case "tools/list" if kind == "odd":
            answer(request, {"tools": [{"name": "heartbeat_status"}]})
        case "tools/call" if kind == "odd":
            answer(request, {"content": ["text"]})
        case "tools/list":
            answer(
                request, {"tools": [] if kind == "toolless" else [{"name": "heartbeat_trigger"}]}
            )
        case "tools/call":
            answer(
                request, {"content": [{"type": "text", "text": "Nothing today."}], "isError": True}
            )
if kind == "stays":
    time.sleep(60)
