"""The sample server over HTTP: a small library. Run it with ``python -m app.cli.samples.library``."""

import time
from collections.abc import Mapping

from app.cli.samples.http_transport import serve_http
from app.cli.samples.server import (
    JsonObject,
    Prompt,
    Report,
    Resource,
    ResourceTemplate,
    SampleServer,
    Tool,
    ToolError,
)

BOOKS = {
    "walden": "Henry David Thoreau: Walden (1854)",
    "middlemarch": "George Eliot: Middlemarch (1871)",
    "flatland": "Edwin A. Abbott: Flatland (1884)",
    "dracula": "Bram Stoker: Dracula (1897)",
}
SHELF_SECONDS = 0.1
SHELVES = 6

SEARCH: JsonObject = {
    "name": "search",
    "title": "Search the catalogue",
    "description": "Find books whose author or title contains the words.",
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string", "minLength": 1}},
        "required": ["words"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}
TAKE_STOCK: JsonObject = {
    "name": "take_stock",
    "title": "Take stock",
    "description": "Walk along every shelf and count the books, reporting each shelf.",
    "inputSchema": {"type": "object", "additionalProperties": False},
    "outputSchema": {
        "type": "object",
        "properties": {"books": {"type": "integer"}, "shelves": {"type": "integer"}},
        "required": ["books", "shelves"],
    },
}


def search(arguments: JsonObject, _report: Report) -> str:
    """Return the matching books, one a line."""
    words = str(arguments.get("words", "")).lower()
    found = [book for book in BOOKS.values() if words and words in book.lower()]
    if not found:
        raise ToolError("No book matches.")
    return "\n".join(found)


def take_stock(_arguments: JsonObject, report: Report) -> JsonObject:
    """Return the counts, after each shelf was reported."""
    for shelf in range(1, SHELVES + 1):
        time.sleep(SHELF_SECONDS)
        report(shelf, SHELVES, f"shelf {shelf}")
    return {"books": len(BOOKS), "shelves": SHELVES}


def recommend(arguments: Mapping[str, str]) -> str:
    """Return the filled-in prompt."""
    return f"Which book should somebody read who liked {arguments['book']}? Give one reason."


SERVER = SampleServer(
    name="library",
    instructions="Search before you recommend.",
    tools=(Tool(SEARCH, search), Tool(TAKE_STOCK, take_stock)),
    resources=(
        Resource(
            {
                "uri": "library://catalogue",
                "name": "catalogue",
                "description": "Every book.",
                "mimeType": "text/plain",
            },
            "\n".join(BOOKS.values()),
        ),
    ),
    templates=(
        ResourceTemplate(
            {
                "uriTemplate": "library://books/{id}",
                "name": "book",
                "description": "One book by its id.",
                "mimeType": "text/plain",
            },
            "library://books/",
            BOOKS,
        ),
    ),
    prompts=(
        Prompt(
            {
                "name": "recommend",
                "title": "Recommend a book",
                "description": "Ask for a recommendation.",
                "arguments": [{"name": "book", "description": "A book that was liked.", "required": True}],
            },
            recommend,
            choices={"book": tuple(BOOKS)},
        ),
    ),
)

if __name__ == "__main__":
    serve_http(SERVER)
