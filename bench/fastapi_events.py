"""
The baseline of the section `sessions`: the back end that developers write for this job, FastAPI with one SQLite connection of aiosqlite.

    python3 bench/fastapi_events.py DATABASE PORT

It stores an event before it answers, as Dragoman does: WAL, synchronous=FULL, one commit for each request.
"""
import json
import sys
from typing import Any, Dict, Optional

import aiosqlite
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Event(BaseModel):
    session_id: str
    event_type: str
    tool_name: Optional[str] = None
    content: str
    metadata: Dict[str, Any] = {}
    timestamp: str


@app.on_event("startup")
async def open_database():
    db = app.state.db = await aiosqlite.connect(sys.argv[1])
    await db.execute("PRAGMA journal_mode=WAL")
    await db.execute("PRAGMA synchronous=FULL")
    await db.execute("CREATE TABLE agent_sessions(session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)")
    await db.execute("CREATE TABLE events(id INTEGER PRIMARY KEY, session_id TEXT, event_type TEXT, tool_name TEXT, content TEXT, "
                     "metadata TEXT, timestamp TEXT)")
    await db.commit()


@app.on_event("shutdown")
async def close_database():
    await app.state.db.close()  # its thread would keep the program


@app.get("/readyz")
async def ready():
    return {"status": "ok"}


@app.post("/api/webhook/event")
async def receive(event: Event):
    db = app.state.db
    await db.execute("INSERT OR IGNORE INTO agent_sessions(session_id) VALUES (?)", (event.session_id,))
    await db.execute("INSERT INTO events(session_id, event_type, tool_name, content, metadata, timestamp) VALUES (?, ?, ?, ?, ?, ?)",
                     (event.session_id, event.event_type, event.tool_name, event.content, json.dumps(event.metadata), event.timestamp))
    await db.commit()
    return {"status": "ok"}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
