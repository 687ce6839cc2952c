"""A program that speaks the protocol badly: `python -I -S hostile_program.py BEHAVIOUR EFFECTS`. It imports little, so
that it starts at once. What it does with permission is a line of the file EFFECTS."""

import json
import os
import signal
import sys
import time

BEHAVIOUR, EFFECTS = (*sys.argv[1:], os.devnull)[:2]
PROMPTS: list[object] = []  # Ids of prompts that are not answered yet


def send(message: object) -> None:
    raw(json.dumps(message) + "\n")


def raw(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def update(**fields: object) -> None:
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}})


def say(text: str) -> None:
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def tool(call_id: object, **fields: object) -> None:
    update(**{"sessionUpdate": "tool_call", "toolCallId": call_id, "title": "T", **fields})


def ask(number: int, request_id: object = None, options: object = None) -> None:
    offered = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}] if options is None else options
    params = {"sessionId": "s", "toolCall": {"toolCallId": f"p{number}"}, "options": offered}
    request_id = request_id or f"q{number}"
    send({"jsonrpc": "2.0", "id": request_id, "method": "session/request_permission", "params": params})


def effect(word: str) -> None:
    with open(EFFECTS, "a") as file:
        file.write(word + "\n")


def end_turn() -> None:
    say("Bye.")
    send({"jsonrpc": "2.0", "id": PROMPTS.pop(), "result": {"stopReason": "end_turn"}})


def answered(message: dict[str, object]) -> None:
    """An answer to one of our requests."""
    result = message.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        effect(str(message["id"]))
        if BEHAVIOUR == "dies after permission":
            die()
    ANSWERS.append(message)
    if BEHAVIOUR in ASKING and len(ANSWERS) == ASKING[BEHAVIOUR] and PROMPTS:
        end_turn()


ANSWERS: list[object] = []
ASKING = {"one id for two questions": 2, "question with bad options": 4, "dies after permission": 1}


def request(method: str, number: object, params: object) -> None:
    send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def die(status: int = 1) -> None:
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(status)


def prompt(number: object) -> None:
    PROMPTS.append(number)
    say("Hello. ")
    match BEHAVIOUR:
        case "one id for two questions":
            ask(1, "same")
            ask(2, "same")
            return
        case "question with bad options":
            for n, options in enumerate((3, [], [3, {"optionId": 4}], [{"optionId": "yes", "kind": 5}])):
                ask(n, options=options)
            return
        case "dies after permission":
            ask(1)
            return
        case "question after the end":
            end_turn()
            ask(1)
            return
        case "another session":
            words = {"type": "text", "text": "Of another session. "}
            chunk = {"sessionUpdate": "agent_message_chunk", "content": words}
            other = {"sessionId": "other", "update": chunk}
            send({"jsonrpc": "2.0", "method": "session/update", "params": other})
        case "request flood":
            wanted = {"sessionId": "s", "path": "/etc/passwd"}
            for n in range(5_000):
                send({"jsonrpc": "2.0", "id": n, "method": "fs/read_text_file", "params": wanted})
        case "50 MB of output":
            tool("t")
            body = [{"type": "content", "content": {"type": "text", "text": "z" * 1_000_000}}]
            for _ in range(50):
                update(sessionUpdate="tool_call_update", toolCallId="t", content=body)
        case "30 MB in a line" | "33 MB in a line":
            tool("t")
            text = "z" * (int(BEHAVIOUR[:2]) * 2**20) + " the end"
            body = [{"type": "content", "content": {"type": "text", "text": text}}]
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed", content=body)
        case "gives a title":
            update(sessionUpdate="session_info_update", title="Boats")
        case "names its variables":
            say(f"{' '.join(sorted(os.environ))}. ")
        case "50 MB in a line":
            raw('{"text": "')
            for _ in range(50):
                raw("x" * 1_000_000)
            time.sleep(3600)
        case "garbage":
            for line in (
                "not json",
                "{",
                "[]",
                "[1]",
                '"text"',
                "null",
                "\x00\x01",
                '{"id": [1]}',
                '{"id": {}, "result": 1}',
            ):
                raw(line + "\n")
            raw('{"jsonrpc": "2.0", "id": 99, "error": "not an object"}\n' + '{"method": 7}\n' + "[" * 100_000 + "\n")
            os.write(1, b"\xff\xfe\n")
        case "endless garbage":
            raw("not json\n" * 20_000)
            time.sleep(3600)
        case "open tools":
            for n in range(40):
                tool(f"t{n}")
            time.sleep(3600)
        case "bad updates":
            for fields in (
                {},
                {"sessionUpdate": "unheard_of"},
                {"sessionUpdate": 7},
                {"sessionUpdate": "plan", "entries": 3},
            ):
                update(**fields)
            bad: tuple[object, ...] = (None, [], "x", {"update": "x"}, {"sessionId": "s"})
            for params in bad:
                send({"jsonrpc": "2.0", "method": "session/update", "params": params})
            update(sessionUpdate="agent_message_chunk", content=["text"])
            update(sessionUpdate="plan", entries=[{"content": 3, "status": "never"}, "x"])
            tool(None)
            tool({"a": 1})
            send({"jsonrpc": "2.0", "method": "unknown/notification", "params": {}})
            send({"jsonrpc": "2.0", "id": "x", "method": "unknown/request", "params": {}})
        case "half line":
            raw('{"jsonrpc": "2.0", "method": "session/upd')
            die()
        case "half lines":
            text = (
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "method": "session/update",
                        "params": {
                            "update": {
                                "sessionUpdate": "agent_message_chunk",
                                "content": {"type": "text", "text": "Whole. "},
                            }
                        },
                    }
                )
                + "\n"
            )
            for piece in (text[:20], text[20:50], text[50:]):
                raw(piece)
                time.sleep(0.01)
        case "dies":
            die(5)
        case "dies in tool":
            tool("t")
            die()
        case "dies at question":
            ask(1)
            die()
        case "closes output":
            os.close(1)
            time.sleep(3600)
        case "duplicate tools":
            tool("t")
            tool("t")
            tool("t", status="completed")
            tool("t", status="completed")
            update(sessionUpdate="tool_call_update", toolCallId="t", status="failed")
        case "duplicate answers":
            send({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
            say("Too late.")
        case "long line":
            sys.stdout.write('{"text": "' + "x" * 3_000_000)
            sys.stdout.flush()
            time.sleep(3600)
        case "huge tool":
            tool("t", rawInput={"x": "y" * 1_000_000})
            body = [{"type": "content", "content": {"type": "text", "text": "z" * 1_500_000}}]
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed", content=body)
        case "many values":
            tool("t", rawInput={"x": [[]] * 400_000})
            time.sleep(3600)
        case "large values":
            tool("t", rawInput={"x": ["y" * 10] * 5_000}, status="completed", rawOutput=["z" * 1_000_000, [1]])
        case "many requests":
            request("terminal/create", "t", {"command": "sleep 3600"})
            name = json.loads(sys.stdin.readline())["result"]["terminalId"]
            for number_of_request in range(300):
                request("terminal/wait_for_exit", number_of_request, {"terminalId": name})
            refused = [json.loads(sys.stdin.readline())["error"]["message"] for _ in range(100)]
            say(f"{len(refused)}: {refused[-1]}. ")
            request("terminal/release", "r", {"terminalId": name})
        case "half characters":
            choice = {"value": "a\ud800", "name": "\udfffA"}
            option = {"id": "o", "name": "n\ud800", "type": "select", "currentValue": "a\ud800", "options": [choice]}
            update(sessionUpdate="config_option_update", configOptions=[option])
        case "huge text":
            say("x" * 1_900_000)
        case "flood":
            for _ in range(20_000):
                say("y")
        case "too much text":
            for _ in range(4):
                say("x" * 1_500_000)
            time.sleep(3600)
        case "deep":
            value: object = "x"
            for _ in range(500):
                value = [value]
            tool("t", rawInput={"deep": value}, status="completed", rawOutput=value)
        case "question after cancel" | "dies at cancel":
            return
        case "endless replay" | "dies at load":
            say("Bye.")
            send({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
            die(0)
        case "many questions":
            for each in range(3):
                ask(each)
            time.sleep(3600)
        case "error":
            send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "error": {"code": -32603, "message": "Internal error", "data": {"d": 1}},
                }
            )
            return
        case "error as text":
            say("\n")
        case "error with data":
            data = {"message": "No credits left.", "stack": ["a", "b"]}
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": "Internal error", "data": data}})
            return
        case "no reason":
            send({"jsonrpc": "2.0", "id": number, "result": None})
            return
        case "cancels itself":
            send({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "cancelled"}})
            return
        case "stderr flood":
            sys.stderr.write("e" * 5_000_000)
            die()
        case "stops reading":
            time.sleep(3600)
        case _:
            pass
    say("Bye.")
    send({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})


def main() -> None:
    if BEHAVIOUR.startswith("silent"):
        time.sleep(3600)
    if BEHAVIOUR == "garbage first":
        raw("Welcome to the agent!\n\n")
    if BEHAVIOUR == "dies at start":
        die(3)
    if BEHAVIOUR == "ignores signals":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                version = 9 if BEHAVIOUR == "another version" else 1
                result = {"protocolVersion": version, "agentCapabilities": {"loadSession": True}}
                if BEHAVIOUR == "odd ways to log in":
                    result["authMethods"] = 7
                if BEHAVIOUR == "no initialize":
                    data = {"details": "Set API_KEY first."}
                    problem = {"code": -32603, "message": "Internal error", "data": data}
                    send({"jsonrpc": "2.0", "id": message["id"], "error": problem})
                    continue
            case "session/new":
                if BEHAVIOUR == "dies at new":
                    die()
                if BEHAVIOUR == "odd ways to log in":
                    problem = {"code": -32000, "message": "Authentication required", "data": ["x"]}
                    send({"jsonrpc": "2.0", "id": message["id"], "error": problem})
                    continue
                if BEHAVIOUR == "needs a login":
                    problem = {"code": -32000, "message": "Authentication required"}
                    send({"jsonrpc": "2.0", "id": message["id"], "error": problem})
                    continue
                result = {} if BEHAVIOUR == "no session id" else {"sessionId": "s"}
            case "session/load":
                if BEHAVIOUR == "endless replay":
                    while True:
                        say("again ")
                        time.sleep(0.001)
                if BEHAVIOUR == "dies at load":
                    die()
                result = {}
            case "session/prompt":
                prompt(message["id"])
                continue
            case "session/cancel":
                if BEHAVIOUR == "question after cancel":
                    ask(1)
                if BEHAVIOUR == "dies at cancel":
                    die()
                continue
            case None:
                answered(message)
                continue
            case _:
                continue
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})


main()
