"""An MCP server that says exactly what a test wants, over stdio: `raw_mcp_server.py JSON`, with `results` by method.

A method that is null is never answered; others get an error, that of `errors` if it is there.
`stderr` is printed first, and `exit` ends the program at
once. What clients send is appended to the file `log`, if named. With `asks`, a request, a tool call makes the server
ask its client, and the result is the answer.
"""

import json
import sys
from typing import Any

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def main(script: dict[str, Any]) -> None:
    print(script.get("stderr", ""), file=sys.stderr, flush=True)
    if "exit" in script:
        sys.exit(script["exit"])
    results = {"initialize": INITIALIZED, "ping": {}, **script.get("results", {})}
    called: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if called is not None and request.get("id") == "question":
            text = json.dumps(request.get("result", request.get("error")))
            result = {"content": [{"type": "text", "text": text}]}
            print(json.dumps({"jsonrpc": "2.0", "id": called, "result": result}), flush=True)
            called = None
            continue
        if "log" in script:
            with open(script["log"], "a") as log:
                log.write(line)
        method = request.get("method")
        if method == "tools/call" and "asks" in script:
            called = request["id"]
            print(json.dumps({"jsonrpc": "2.0", "id": "question", **script["asks"]}), flush=True)
            continue
        if "id" not in request or (method in results and results[method] is None):
            continue
        error = script.get("errors", {}).get(method, {"code": -32601, "message": "unknown"})
        answer = {"result": results[method]} if method in results else {"error": error}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
