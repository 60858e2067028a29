"""Messages between the referee and the process of a candidate: JSON, and bytes besides. Nothing in them is code."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

_HEAD = struct.Struct("<IQ")

MAX_MESSAGE = 64 << 20
"""Bytes of a message's JSON."""


class Closed(Exception):
    """The other process has ended."""


class Late(Exception):
    """There was no message in time."""


class Malformed(Exception):
    """What came is no message."""


class Wire:
    """One end."""

    def __init__(self, end: socket.socket, max_payload: int = 1 << 40) -> None:
        self._end, self._max_payload = end, max_payload

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        """Sends a message. Closed if nobody is there."""
        text = json.dumps(message).encode()
        try:
            self._end.settimeout(None)
            self._end.sendall(_HEAD.pack(len(text), len(payload)) + text + payload)
        except OSError:
            raise Closed from None

    def receive(self, deadline: float | None = None) -> tuple[dict[str, Any], bytes]:
        """The next message. Closed if there will be none, Late after the deadline (of `time.monotonic`), Malformed."""
        text_size, payload_size = _HEAD.unpack(self._bytes(_HEAD.size, deadline))
        if text_size > MAX_MESSAGE or payload_size > self._max_payload:
            raise Malformed(f"a message of {text_size} and {payload_size} bytes")
        text = self._bytes(text_size, deadline)
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            raise Malformed("a message that is not JSON") from None
        if not isinstance(message, dict):
            raise Malformed("a message that is no object")
        return message, self._bytes(payload_size, deadline)

    def _bytes(self, count: int, deadline: float | None) -> bytes:
        got = bytearray()
        while len(got) < count:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Late
                self._end.settimeout(left)
            try:
                part = self._end.recv(min(count - len(got), 1 << 20))
            except TimeoutError:
                raise Late from None
            except OSError:
                raise Closed from None
            if not part:
                raise Closed
            got += part
        return bytes(got)

    def close(self) -> None:
        """No more messages."""
        self._end.close()
