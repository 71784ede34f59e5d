"""The sample server over stdio: it builds things. Run it with ``python -m app.cli.samples.workshop``."""

import time
from collections.abc import Mapping

from app.cli.samples.server import JsonObject, Prompt, Report, Resource, SampleServer, Tool, ToolError
from app.cli.samples.stdio_transport import serve_stdio

STEPS = ("measuring", "sawing", "planing", "drilling", "gluing", "clamping", "sanding", "oiling")
STEP_SECONDS = 0.15
WOODS = ("ash", "beech", "birch", "oak", "walnut")
THINGS = {"box": 0.4, "shelf": 1.2, "table": 3.5}

BUILD: JsonObject = {
    "name": "build",
    "title": "Build a thing",
    "description": "Build a box, a shelf or a table, reporting each step.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "thing": {"type": "string", "enum": list(THINGS)},
            "wood": {"type": "string", "description": "The wood to use; oak if you do not care."},
        },
        "required": ["thing"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": False},
}
MEASURE: JsonObject = {
    "name": "measure",
    "title": "Measure a thing",
    "description": "Say how much wood a thing takes.",
    "inputSchema": {
        "type": "object",
        "properties": {"thing": {"type": "string", "enum": list(THINGS)}},
        "required": ["thing"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"thing": {"type": "string"}, "square_metres": {"type": "number"}},
        "required": ["thing", "square_metres"],
    },
    "annotations": {"readOnlyHint": True},
}


def build(arguments: JsonObject, report: Report) -> str:
    """Return what was built, after each step was reported."""
    thing, wood = arguments.get("thing"), arguments.get("wood", "oak")
    if thing not in THINGS:
        raise ToolError("This workshop builds a box, a shelf or a table.")
    for number, step in enumerate(STEPS, start=1):
        time.sleep(STEP_SECONDS)
        report(number, len(STEPS), f"{step} the {thing}")
    return f"One {thing} of {wood}, ready to carry home."


def measure(arguments: JsonObject, _report: Report) -> JsonObject:
    """Return the wood that a thing takes."""
    thing = arguments.get("thing")
    if thing not in THINGS:
        raise ToolError("This workshop knows a box, a shelf and a table.")
    return {"thing": thing, "square_metres": THINGS[thing]}


def plan(arguments: Mapping[str, str]) -> str:
    """Return the filled-in prompt."""
    wood = arguments.get("wood", "oak")
    return f"Plan a {arguments['thing']} of {wood}: a list of cuts, then the order of work."


SERVER = SampleServer(
    name="workshop",
    instructions="Measure before you build.",
    tools=(Tool(BUILD, build), Tool(MEASURE, measure)),
    resources=(
        Resource(
            {
                "uri": "workshop://rules",
                "name": "rules",
                "title": "Rules of the workshop",
                "description": "What everybody minds.",
                "mimeType": "text/plain",
            },
            "Measure twice, cut once. Sweep before you leave.",
        ),
    ),
    prompts=(
        Prompt(
            {
                "name": "plan",
                "title": "Plan a piece of work",
                "description": "Ask for a cutting list and an order of work.",
                "arguments": [
                    {"name": "thing", "description": "What to build.", "required": True},
                    {"name": "wood", "description": "The wood to use."},
                ],
            },
            plan,
            choices={"thing": tuple(THINGS), "wood": WOODS},
        ),
    ),
)

if __name__ == "__main__":
    serve_stdio(SERVER)
