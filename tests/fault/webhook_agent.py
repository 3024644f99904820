#!/usr/bin/env python3
"""
A webhook agent that dies on request: webhook_agent.py PORT WORKLOG [STEP@N]

It writes a line to WORKLOG for each turn before it answers, so that the harness knows the work done. It dies the N-th
time it reaches STEP: received, worked, half (in the middle of an answer). A turn posted to /later gets an empty answer,
and its reply through replyUrl, repeated until the daemon takes it.
"""
import http.server
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

LOG = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
STEP, _, COUNT = (sys.argv[3] if len(sys.argv) > 3 else "").partition("@")
ANSWERS = {}  # Idempotency-Key -> the answer, for repeated requests
PASSED = {"n": 0}
LOCK = threading.Lock()


def die_here(step):
    with LOCK:
        if step != STEP:
            return False
        PASSED["n"] += 1
        return PASSED["n"] == int(COUNT)


def pass_step(step):
    if die_here(step):
        os._exit(9)


def reply_later(url, key, answer):
    data = json.dumps(answer).encode()
    while True:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json", "Idempotency-Key": key})
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except urllib.error.HTTPError as e:
            if e.code not in (500, 503):
                os.write(LOG, f"refused {e.code} {key}\n".encode())
                return
        except OSError:
            pass  # the daemon was killed and will be back
        time.sleep(0.02)


class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        turn = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Idempotency-Key"]
        pass_step("received")
        with LOCK:
            known = key in ANSWERS
            ANSWERS[key] = {"reply": turn["text"]}
        if not known:
            os.write(LOG, f"worked {key}\n".encode())
        pass_step("worked")
        later = self.path == "/later"
        if later and not known:
            threading.Thread(target=reply_later, args=(turn["replyUrl"], key, ANSWERS[key]), daemon=True).start()
        self.answer({} if later else ANSWERS[key])

    def answer(self, answer):
        data = json.dumps(answer).encode()
        half = die_here("half")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if half else data)
        self.wfile.flush()
        if half:
            os._exit(9)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    allow_reuse_address = True

    def handle_error(self, *_):
        pass  # the daemon was killed


Server(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
