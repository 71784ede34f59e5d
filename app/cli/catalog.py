"""The commands about what servers offer: ``tools``, ``read``, ``complete``. SPEC §cli, §addresses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from app.cli import completion
from app.cli.catalog_view import show_completion, show_read, show_tools
from app.cli.client_command import client_command
from app.cli.conversation import hold
from app.cli.failures import UsageFault
from app.cli.session import Session
from app.core.addresses import document_address, prompt_address, resource_address
from app.core.json_value import JsonObject

PromptOption: TypeAlias = Annotated[
    str | None, typer.Option("--prompt", metavar="NAME", help="A prompt of the server.")
]
PAIR = "Write it as KEY=VALUE."


@client_command("workspace.mcp.tools")
def tools(
    session: Session,
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="SERVER",
            help="Its tools alone, with their signatures.",
            autocompletion=completion.servers,
        ),
    ] = None,
    schemas: Annotated[bool, typer.Option("--schemas", help="With their exact schemas; for --json.")] = False,
) -> None:
    """Show the enabled tools and whether they ask first."""
    wanted: JsonObject = {} if server is None else {"server": server}
    result = session.act(**wanted, **({"schemas": True} if schemas else {}))
    session.end(result, lambda: show_tools(session.screen, result, is_detailed=server is not None))


@dataclass(frozen=True, slots=True)
class ReadWords:
    """What was said on the command line about what to read, unread."""

    what: str
    """An address, or the name of a server."""
    words: Sequence[str] = ()
    """A resource's URI, or the arguments of the prompt."""
    prompt: str | None = None
    wants_prompts: bool = False
    wants_document: bool = False


@client_command("workspace.mcp.read")
def read(
    session: Session,
    *,
    what: Annotated[
        str,
        typer.Argument(
            metavar="SERVER | ADDRESS",
            help="Whose; alone, the index of its resources.",
            autocompletion=completion.servers,
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="URI | KEY=VALUE…", help="The resource, or the prompt's arguments."),
    ] = None,
    prompt: PromptOption = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="The index of its prompts.")] = False,
    document: Annotated[bool, typer.Option("--document", help="The document of its tools.")] = False,
) -> None:
    """Read a resource, a prompt, an index or a server's document."""
    given = ReadWords(what, words or (), prompt, prompts, document)
    address = address_of(given)
    action: JsonObject = {"kind": session.kind, "uri": address}
    with session.client() as client:
        result = hold(session, client, action, title=address)
    session.end(result, lambda: show_read(session.screen, result))


def address_of(given: ReadWords) -> str:
    """Return the address that is meant.

    Raises:
        UsageFault: the words contradict each other.
    """
    server = given.what
    ways = sum((given.prompt is not None, given.wants_prompts, given.wants_document))
    if "://" in server:
        ways += 1
    if ways > 1 or (given.words and given.prompt is None and (ways or len(given.words) > 1)):
        raise UsageFault(
            "Only one thing is read at once.",
            "Give a server and one of: a URI, --prompt NAME, --prompts, --document; or one address.",
        )
    if given.prompt is not None:
        return prompt_address(server, given.prompt, pairs(given.words))
    if given.wants_document:
        return document_address(server)
    if given.words:
        return resource_address(server, given.words[0])
    if given.wants_prompts:
        return f"{server}:///prompts"
    return server if "://" in server else f"{server}:///resources"


@client_command("workspace.mcp.complete")
def complete(
    session: Session,
    *,
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="The attached server.", autocompletion=completion.servers)
    ],
    argument: Annotated[
        str,
        typer.Argument(metavar="ARGUMENT[=BEGINNING]", help="What is being typed, and what of it is there."),
    ],
    known: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="What was chosen before.")
    ] = None,
    prompt: PromptOption = None,
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="URI", help="A resource template of the server.")
    ] = None,
) -> None:
    """Complete an argument of a prompt or resource template."""
    result = session.act(server=server, **_asked(prompt, resource, argument, known or ()))
    session.end(result, lambda: show_completion(session.screen, result))


def _asked(prompt: str | None, resource: str | None, argument: str, known: Sequence[str]) -> JsonObject:
    name, _, value = argument.partition("=")
    if (prompt is None) == (resource is None) or not name:
        raise UsageFault(
            "Say what the argument belongs to.",
            "For example: plurnk-mcpd complete docs --prompt review language=py",
        )
    reference: JsonObject = (
        {"type": "ref/resource", "uri": resource}
        if prompt is None
        else {"type": "ref/prompt", "name": prompt}
    )
    asked: JsonObject = {"ref": reference, "argument": {"name": name, "value": value}}
    if known:
        asked["context"] = {"arguments": {**pairs(known)}}
    return asked


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Return what ``KEY=VALUE`` words say.

    Raises:
        UsageFault: one of them is none, or comes twice.
    """
    said: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise UsageFault(f"'{word}' is no argument.", PAIR)
        if key in said:
            raise UsageFault(f"'{key}' is given more than once.", "Leave one of them out.")
        said[key] = value
    return said
