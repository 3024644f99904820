"""Hostile people in chats: markup, mentions, control characters and names of files, through the simulators."""
import json
import os
import subprocess
import time
import urllib.request

from target import PATIENCE, Target, Trial

TELEGRAM, DISCORD = "100000001:dragoman-simulator-token", "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token"
STRANGER = "written-by-a-stranger"
NAMES = ("../../state/operator.key", "..\\..\\x.exe", "/etc/passwd", ".", "..", "con.txt", "a" * 400 + ".zip", "x\u202etxt.exe",
         "bomb.zip", "a/b/c.txt", "-rf", "$(id).sh", ".bashrc", "x\r\ny.txt", "\u2215etc\u2215passwd", "~/.ssh/id_rsa", "%2e%2e%2fx", " ", "🙂" * 80)
PIECES = ("@everyone", "@here", "<@&900000000000000001>", "<@42>", "<#1>", "</help:1>", "\u202e", "\u2066", "\u200b", "\x1b[31m", "[a](http://x)",
          "[a](tg://user?id=42)", "<script>", "<b>", "</b>", "&lt;", "```", "`", "**", "__", "||", "~~", "> ", "# ", "* ", "\\", "|a|b|", "\n", "\n\n",
          "http://127.0.0.1/", "javascript:x", "[SILENT]", "/stop", "/help", "/pausex", "/new", "{{7*7}}", "%s", "'; DROP TABLE turns; --", "🙂", "e\u0301" * 9,
          "a" * 200, "١٢٣", "\ufeff", "<@!9>", "@dragoman", "<t:0:R>", "$(id)", "../..", "\u2028")


class Sim:
    def __init__(self, program, platform):
        self.process = subprocess.Popen([program, platform, "--port", "0", "--quiet", "--no-limits"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.base = self.process.stdout.readline().decode().strip()

    def call(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(urllib.request.Request(self.base + path, data), timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    def stop(self):
        self.process.terminate()
        self.process.wait()


def text_of(rng):
    return "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 30)))[:1800]


def await_text(sim, text, trial):
    """Reads what the bot does until it writes the text; all of its messages."""
    after, seen, end = 0, [], time.monotonic() + PATIENCE
    while time.monotonic() < end:
        page = sim.call(f"/sim/messages?after={after}&wait=2000&limit=100")
        seen += page["items"]
        after = page["last"] if page["items"] else after
        if any(text in json.dumps(item, ensure_ascii=False) for item in page["items"]):
            return seen
    trial.got(f"no answer to '{text}'")
    return seen


def attack(sim, trial, rng, size, send):
    for i in range(size):
        trial.count()
        message = send(rng, text_of(rng))
        sim.call("/sim/send", message)


def chat(lab, platform, token, base, send, stranger, friend):
    trial = Trial(f"people on {platform}: markup, mentions, file names", "valid calls only, no one is pinged, strangers get nothing, files stay in their folder")
    sim = Sim(lab.sim, platform)
    adapter = {"type": platform, "botToken": token, "apiBase": sim.base + base, "admins": ["42"], "dm": "none", "rateLimit": {"turns": 0},
               "debounceMs": 0, "debounceMaxMs": 0, "pace": {"perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0}}
    target = Target(lab.binary, {"http": {"listen": "127.0.0.1:0"}, "agents": {"echo": {"type": "echo"}}, "adapters": {"chat": adapter}},
                    [token])
    rng = lab.rng(platform + " people")
    try:
        target.start()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and target.get("/api/v2/instances/chat")["data"]["state"] != "connected":
            time.sleep(0.05)
        attack(sim, trial, rng, 150 * lab.factor, send)
        for _ in range(10):
            trial.count()
            sim.call("/sim/send", stranger(STRANGER + " " + text_of(rng), {"content": STRANGER, "file_name": rng.choice(NAMES)}))
        sim.call("/sim/send", friend("the-end"))
        seen = await_text(sim, "the-end", trial)
        for item in seen:
            shown = json.dumps(item, ensure_ascii=False)
            trial.expect(STRANGER not in shown, f"an answer to a stranger: {shown[:300]}")
            message = item.get("message") or item
            trial.expect(not message.get("mention_everyone") and not message.get("mention_roles"), f"a ping: {shown[:300]}")
        invalid = sim.call("/sim/calls?valid=false")["items"]
        trial.expect(not invalid, f"{len(invalid)} invalid calls, such as {json.dumps(invalid[:1])[:600]}")
        for root, folders, files in os.walk(target.dir):
            for name in files:
                with open(os.path.join(root, name), "rb") as f:
                    trial.expect(root.endswith("state") or STRANGER.encode() not in f.read(), f"a stranger's file: '{name}' in {root}")
            for name in files + folders:
                trial.expect("\\" not in name and not any(ord(c) < 32 for c in name) and len(name.encode()) < 256, f"'{name}' in {root}")
        trial.expect(target.key.encode() in open(os.path.join(target.dir, "state/operator.key"), "rb").read(), "the operator key was replaced")
        target.stop(trial, 200)
        if not trial.through:
            target.remove()
    finally:
        target.kill()
        sim.stop()
    lab.add(trial)


def run(lab):
    def telegram(rng, text):
        if rng.random() < 0.4:
            return {"from": 42, "caption": text[:900], "document": {"content": "x" * rng.randrange(50), "file_name": rng.choice(NAMES)}}
        return {"from": 42, "text": text or "x"}

    def discord(rng, text):
        if rng.random() < 0.4:
            return {"from": "42", "text": text, "files": [{"content": "x" * rng.randrange(50), "file_name": rng.choice(NAMES)}]}
        return {"from": "42", "text": text or "x"}

    chat(lab, "telegram", TELEGRAM, "", telegram, lambda t, f: {"from": 43, "caption": t[:900], "document": f}, lambda t: {"from": 42, "text": t})
    chat(lab, "discord", DISCORD, "/api/v10", discord, lambda t, f: {"from": "43", "text": t, "files": [f]}, lambda t: {"from": "42", "text": t})
