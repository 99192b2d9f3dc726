"""A run as server-sent events, which `EventSource` in a web page reads; only the standard library serves it.

Without an argument, the program asks itself once and prints what a page would get; with a port, such as 8000, it
serves http://127.0.0.1:8000/ until Ctrl-C.

    $ python examples/stream_to_page.py
    event: call
    data: {"name": "calculator", "arguments": {"expression": "12 * 34"}}
    event: result
    data: {"text": "408"}
    event: text
    ...
    event: finished
    data: {"stopped": "done"}
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from ferrule import CallFinished, ResultReady, RunFinished, TextDelta, calculator, model

PAGE = """<!doctype html><meta charset="utf-8"><pre id="out"></pre><script>
const source = new EventSource("/ask?question=" + encodeURIComponent(prompt("A question", "What is 12 * 34?")));
const show = e => { out.textContent += e.type + " " + e.data + "\\n"; if (e.type == "finished") source.close(); };
for (const kind of ["call", "result", "text", "finished"]) source.addEventListener(kind, show);
</script>"""


def to_message(event):
    """The name and the data of an event for the page; None for one that it doesn't show."""
    match event:
        case TextDelta(text=text):
            return "text", {"text": text}
        case CallFinished(call=call):
            return "call", {"name": call.name, "arguments": call.decode()}
        case ResultReady(result=result):
            return "result", {"text": result.text}
        case RunFinished(reason=reason):
            return "finished", {"stopped": reason}


class Handler(BaseHTTPRequestHandler):
    """Answers `/` with the page, and `/ask?question=…` with the events of a run, each as soon as it comes."""

    def do_GET(self):
        url = urlsplit(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if url.path == "/ask" else "text/html; charset=utf-8")
        self.end_headers()
        if url.path != "/ask":
            self.wfile.write(PAGE.encode())
            return
        [question] = parse_qs(url.query)["question"]
        # Leaving the block, as when the page is closed and a write fails, cancels the run.
        with model("embedded").chat(question).using(calculator).stream_sync() as run:
            for kind, data in filter(None, map(to_message, run)):
                self.wfile.write(f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode())
                self.wfile.flush()

    def log_message(self, *_):
        """Print no line for each request."""


def main() -> None:
    """Serve, or ask once."""
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    if len(sys.argv) > 1:
        server.serve_forever()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with urlopen(f"http://127.0.0.1:{server.server_port}/ask?question=What+is+12+*+34%3F") as answer:
        print(answer.read().decode().replace("\n\n", "\n"), end="")


if __name__ == "__main__":
    main()
