#!/usr/bin/env python3
"""
Reserves a port of 127.0.0.1, for programs that need a given port or must restart on the same one.

The reserving socket stays bound without listening. Servers can still bind the port with SO_REUSEADDR, but the system
assigns it to no one else, as could happen to a port that was merely free a moment ago.

    tests/lib/ports.py          prints a port and keeps it until its output is closed
"""
import select
import socket


def reserve():
    """A socket; keep it open while the port is needed."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s


def port_of(reserved):
    return reserved.getsockname()[1]


if __name__ == "__main__":
    kept = reserve()
    print(port_of(kept), flush=True)
    reader = select.poll()
    reader.register(1, 0)
    reader.poll()
