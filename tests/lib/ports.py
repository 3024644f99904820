#!/usr/bin/env python3
"""
A port of 127.0.0.1 that stays ours: for programs that must be told one, or that come back on the same.

A port that was free a moment ago may belong to somebody else when it is used. This one stays bound: servers take it all the same, since
they ask with SO_REUSEADDR and nobody listens there, but the system gives it to nobody who takes any.

    tests/lib/ports.py          prints one, and keeps it until nobody reads any more
"""
import select
import socket


def reserve():
    """A socket; it is kept while the port is needed."""
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
