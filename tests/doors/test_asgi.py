"""The words of ASGI that the doors use."""

import pytest

from app.doors.asgi import Message, header_values, send_whole


def test_every_value_of_a_header_is_returned_in_order() -> None:
    scope = {"headers": [(b"host", b"a"), (b"x", b"1"), (b"host", b"b")]}
    assert header_values(scope, b"host") == [b"a", b"b"]
    assert header_values(scope, b"origin") == []


@pytest.mark.spec("agui")
async def test_a_whole_answer_says_its_length_and_is_stored_by_nobody() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await send_whole(send, 201, b"{}", headers=[(b"x", b"1")])
    assert sent == [
        {
            "type": "http.response.start",
            "status": 201,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", b"2"),
                (b"cache-control", b"no-store"),
                (b"x", b"1"),
            ],
        },
        {"type": "http.response.body", "body": b"{}"},
    ]
