"""A conversation with a program on the lead: messages and replies, each a JSON object on a line."""

import json
import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from minicluster import lines, tool
from minicluster.errors import MiniClusterError
from minicluster.kube.port import Channel

Message = Mapping[str, Any]
#: Seconds without a sign of life after which a connection is dead
SILENCE_SECONDS = 30.0


class BrokenError(MiniClusterError):
    """The program on the lead has ended, or is silent."""


class Conversation:
    """Messages and replies over a channel, where BOOT runs. Each method raises BrokenError, or the channel's error."""

    def __init__(self, channel: Channel, program: str) -> None:
        """Send the program: a line that `first_line` returns."""
        self.channel, self._cutter = channel, lines.Cutter()
        channel.write(program.encode())

    def begin(self, wake: socket.socket | None, stop: threading.Event) -> None:
        """Return when the program can be asked, or ``stop`` is set."""
        while not stop.is_set() and not any("ready" in reply for reply in self.replies(wake)):
            pass

    def say(self, messages: Iterable[Message]) -> None:
        """Send messages."""
        self.channel.write("".join(json.dumps(message) + "\n" for message in messages).encode())

    def replies(self, wake: socket.socket | None = None, seconds: float | None = None) -> list[dict[str, Any]]:
        """Wait for replies, or for data on ``wake``, which is emptied; return the replies."""
        seconds = SILENCE_SECONDS if seconds is None else seconds
        if not self.channel.wait(wake, seconds):
            raise BrokenError(f"the lead was silent for {seconds:g} s")
        if wake:
            with suppress(BlockingIOError):
                wake.recv(4096)
        came: list[bytes] = []
        while self.channel.wait(None, 0):
            data = self.channel.read()
            if data is None:
                if came:
                    break  # the next call raises
                why = tool.reason(tool.text(self.channel.stderr)) or f"exit code {self.channel.exit_code}"
                raise BrokenError(f"the lead's program ended: {why}")
            came += self._cutter.take(data)
        return [json.loads(line) for line in came if line != b"\n"]
