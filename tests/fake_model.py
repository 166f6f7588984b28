#!/usr/bin/env python3
"""A model for agents in tests, on loopback: asks for one tool, and is done when it has been used.

    fake_model.py PORTFILE

Speaks as much of Anthropic's messages and of OpenAI's responses as Claude Code and Codex need. Writes its port into PORTFILE.
"""

import http.server
import json
import os
import sys

COMMAND = "touch made-by-agent"
DONE = "Touched the file."


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(b"{}", "application/json")

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        if self.path.startswith("/v1/messages") and "count_tokens" not in self.path:
            self.stream(anthropic(asked))
        elif self.path.startswith("/v1/responses"):
            self.stream(openai(asked))
        else:
            self.answer(b'{"input_tokens": 1}', "application/json")

    def stream(self, events):
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self.answer(text.encode(), "text/event-stream")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def anthropic(asked):
    messages = asked.get("messages") or []
    tools = [tool.get("name") for tool in asked.get("tools") or []]
    last = messages[-1]["content"] if messages else ""
    used = isinstance(last, list) and any(part.get("type") == "tool_result" for part in last)
    wants = "Bash" in tools and not used
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model", "m"), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if wants:
        given = json.dumps({"command": COMMAND, "description": "Touch a file"})
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": given}}
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": DONE}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if wants else "end_turn", "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def openai(asked):
    items = asked.get("input") or []
    names = [tool.get("name") for tool in asked.get("tools") or []]
    used = any(isinstance(item, dict) and item.get("type") == "function_call_output" for item in items)
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    if names and not used:
        if "exec_command" in names:
            name, given = "exec_command", {"cmd": COMMAND, "sandbox_permissions": "require_escalated", "justification": "Touch a file?"}
        else:
            name, given = "shell", {"command": ["bash", "-lc", COMMAND], "with_escalated_permissions": True, "justification": "Touch a file?"}
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": json.dumps(given)}
    else:
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": DONE}]}
    yield {"type": "response.output_item.done", "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    draft = sys.argv[1] + ".new"
    with open(draft, "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(draft, sys.argv[1])
    server.serve_forever()


main()
