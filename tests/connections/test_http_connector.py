"""http_connector.py: heads of answers without end."""

import pytest

from app.connections.http_connector import HEADS_MAX
from app.core.answers import AnswerLost
from tests.support.http_way import OK, answer_to, value
from tests.support.scripted_http import HANG, Reply, json_reply

EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
BODY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}]}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)


@pytest.mark.spec("connection")
async def test_heads_that_come_before_the_answer_are_passed_over() -> None:
    assert value(await answer_to(json_reply({"jsonrpc": "2.0", "id": 1, "result": OK}))) == OK
    few = EARLY * (HEADS_MAX // 2)
    assert value(await answer_to(Reply(raw=(few + HEAD + BODY,)))) == {
        "content": [{"type": "text", "text": "ok"}]
    }


@pytest.mark.spec("connection")
async def test_a_peer_that_sends_heads_without_end_is_given_up() -> None:
    with pytest.raises(AnswerLost):
        await answer_to(Reply(raw=(*(EARLY * 1000,) * 100, HANG)))
