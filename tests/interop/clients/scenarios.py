"""What the Python clients share. They read `{"scenario", "arguments"}` from lines of standard input, and print a line
with each outcome."""

import asyncio
import inspect
import json
import sys
import traceback


class Scenarios:
    """`connect` makes what each scenario gets as its first argument from the base URL."""

    def __init__(self, connect):
        self._connect = connect
        self._by_name = {}

    def add(self, function):
        self._by_name[function.__name__] = function
        return function

    def serve(self):
        for line in sys.stdin:
            order = json.loads(line)
            try:
                outcome = {"returned": self._run(order["scenario"], **order["arguments"])}
            except Exception:
                outcome = {"raised": traceback.format_exc()}
            print(f"\n=> {json.dumps(outcome)}", flush=True)

    def _run(self, scenario, url, **arguments):
        result = self._by_name[scenario](self._connect(url), **arguments)
        return asyncio.run(result) if inspect.iscoroutine(result) else result


def described(error):
    """The name of an exception and the status that it carries."""
    return [type(error).__name__, getattr(error, "status_code", None)]


def told(call, *args, **options):
    """What the call raises."""
    try:
        call(*args, **options)
    except Exception as error:
        return described(error)
    return None
