"""A program that asks `sluice mcp` over pipes, and holds every answer to its form and its bound."""

import contextlib
import json
import re
import subprocess

from sluice_run import SLUICE, require, require_equal, require_words


class Client:
    def __init__(self, *arguments, name="a test", cwd=None):
        self.process = subprocess.Popen([SLUICE, "mcp", *map(str, arguments)], cwd=cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.count = 0
        self.hello = self.ask("initialize", protocolVersion="2025-11-25", capabilities={},
                              clientInfo={"name": name, "version": "1"})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.count += 1
        self.say({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        reply = json.loads(self.process.stdout.readline())
        require_equal(reply["id"], self.count, "id of the reply")
        return reply.get("result") or reply["error"]

    def tools(self):
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def call(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)
        answer = result["structuredContent"]
        text = result["content"][0]["text"]
        require_equal(json.loads(text), answer, f"text of {tool}")
        require(len(text.encode()) <= arguments.get("max_bytes", 4096), f"{tool} is too long")
        acted_on = re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", text)
        require(acted_on is None, f"{tool} has {acted_on and acted_on[0]!r}")
        require(not result["isError"] or answer["outcome"] == "could not look",
                f"{tool}: an error, and {answer['outcome']}")
        return answer

    def found(self, tool, **arguments):
        answer = self.call(tool, **arguments)
        require_equal(answer["outcome"], "found", f"{tool}: {answer['why']}")
        return answer

    def refused(self, tool, *words, **arguments):
        answer = self.call(tool, **arguments)
        require_equal(answer["outcome"], "could not look", f"outcome of {tool}")
        require_words(answer["why"], words, tool)

    def close(self):
        self.process.stdin.close()
        require_equal(self.process.wait(), 0, "exit code")
        self.process.stdout.close()


@contextlib.contextmanager
def client(*arguments, **options):
    opened = Client(*arguments, **options)
    try:
        yield opened
        opened.close()
    finally:
        opened.process.kill()
        opened.process.wait()
