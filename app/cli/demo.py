"""The command ``demo``: a whole round on a temporary daemon, which leaves nothing behind. SPEC §cli."""

import sys
import tempfile
from pathlib import Path

import typer
from rich.text import Text

from app.cli.call import KIND
from app.cli.client import DaemonClient
from app.cli.conversation import converse
from app.cli.demo_parts import DemoFailed, TemporaryDaemon, sample_over_http, terminated_like_interrupted
from app.cli.exit_status import ExitStatus
from app.cli.failures import CommandFailure
from app.cli.progress import CallProgress
from app.cli.questions import ACCEPT
from app.cli.safe_console import console
from app.cli.screen import Screen
from app.core.json_value import JsonObject

WORKSPACE = "demo"


def demo() -> None:
    """Play a whole round on a daemon that leaves nothing behind."""
    screen = Screen(console(), console(stderr=True))
    try:
        with terminated_like_interrupted(), tempfile.TemporaryDirectory(prefix="plurnk-demo-") as directory:
            _play(Demo(screen, TemporaryDaemon(Path(directory))))
    except CommandFailure as failure:
        screen.show_failure(failure)
        raise typer.Exit(failure.exit_status) from None
    except DemoFailed as failure:
        screen.note(Text(f"✗ {failure}", style="red"))
        raise typer.Exit(ExitStatus.PROBLEM_5XX) from None
    except KeyboardInterrupt:
        screen.note("Interrupted; everything is cleaned up.")
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


class Demo:
    """The stage directions: each method shows one thing."""

    def __init__(self, screen: Screen, daemon: TemporaryDaemon) -> None:
        self.daemon = daemon
        self._screen = screen
        self._step = 0

    def heading(self, text: str) -> None:
        """Number and show the next step."""
        self._step += 1
        self._screen.say(Text(f"\n{self._step}. {text}", style="bold"))

    def show_daemon(self) -> None:
        """Say which process serves which home."""
        self._screen.say(f"   process {self.daemon.pid}, home {self.daemon.home}")

    def attach(self, client: DaemonClient, definition: JsonObject) -> None:
        """Attach a server and show what it offers."""
        result = client.act(WORKSPACE, {"kind": "workspace.mcp.attach", "server": definition})
        if isinstance(server := result.get("server"), dict):
            self._screen.show_server("attached", WORKSPACE, server)

    def show_servers(self, client: DaemonClient) -> list[str]:
        """Show the table of servers and return the names of the connected ones."""
        result = client.act(WORKSPACE, {"kind": "workspace.mcp.list"})
        self._screen.show_servers(WORKSPACE, result)
        servers = result.get("servers")
        return [
            str(server["name"])
            for server in (servers if isinstance(servers, list) else [])
            if isinstance(server, dict) and server.get("state") == "connected"
        ]

    def call(self, client: DaemonClient, server: str, tool: str, arguments: JsonObject) -> None:
        """Call a tool with a progress bar, accept its proposal, and show what it answers."""
        words = [server, tool, *(f"{name}={value}" for name, value in arguments.items()), "--yes"]
        self._screen.say(Text(f"   $ plurnk-mcpd call {' '.join(words)}", style="dim"))
        action: JsonObject = {"kind": KIND, "server": server, "tool": tool, "arguments": arguments}
        result = converse(
            client,
            WORKSPACE,
            action,
            on_event=lambda: CallProgress(self._screen.out, f"   {server} · {tool}", writes_lines=True),
            on_questions=self._accept,
        )
        self._screen.show_call_result(result)
        if result.get("isError") or result.get("rejected"):
            raise DemoFailed(f"The tool '{tool}' of server '{server}' said no.")

    def _accept(self, interrupts: list[JsonObject]) -> list[JsonObject]:
        for interrupt in interrupts:
            self._screen.say(Text(f"   proposal accepted: {interrupt.get('message')}", style="yellow"))
        return [{"interruptId": each["id"], "status": "resolved", "payload": ACCEPT} for each in interrupts]


def _play(demo: Demo) -> None:
    """Play the whole round; no process is left afterwards, however it ends."""
    with sample_over_http() as url:
        try:
            _first_life(demo, url)
            _second_life(demo)
        finally:
            demo.daemon.discard()
    demo.heading("That was all. The daemon, the servers and the home are gone again.")


def _first_life(demo: Demo, url: str) -> None:
    demo.heading("A daemon starts on a temporary home, with its own SQLite file.")
    demo.daemon.start()
    demo.show_daemon()
    with demo.daemon.client() as client:
        demo.heading("One server is attached over stdio, one over HTTP.")
        demo.attach(client, _workshop())
        demo.attach(
            client, {"name": "library", "transport": "http", "url": url, "read": ["search", "take_stock"]}
        )
        demo.heading("The workspace lists them.")
        demo.show_servers(client)
        demo.heading("A tool is called; it asks first, then reports its progress.")
        demo.call(client, "workshop", "build", {"thing": "table", "wood": "walnut"})


def _second_life(demo: Demo) -> None:
    demo.heading("The daemon stops and starts again on the same home.")
    demo.daemon.stop()
    demo.daemon.start()
    demo.show_daemon()
    with demo.daemon.client() as client:
        demo.heading("Everything came back.")
        connected = demo.show_servers(client)
        if connected != ["library", "workshop"]:
            raise DemoFailed(f"Only these servers came back: {', '.join(connected) or 'none'}.")
        demo.call(client, "library", "take_stock", {})
        demo.call(client, "workshop", "measure", {"thing": "shelf"})
    demo.daemon.stop()


def _workshop() -> JsonObject:
    return {
        "name": "workshop",
        "transport": "stdio",
        "command": sys.executable,
        "args": ["-P", "-m", "app.cli.samples.workshop"],
        "read": ["measure"],
    }
