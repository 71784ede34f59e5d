"""What of the cases is not run yet, and where a case is read otherwise than it is written. SPEC §status.

Whoever builds one of these sections deletes its lines here, and the cases run.
"""

from typing import Any

NOT_YET: dict[str, str] = {}

_OBJECT = {"type": "object"}
AMENDED: dict[str, dict[str, Any]] = {
    # The case is about names; a tool without a schema would be withheld (C2-g1 has that).
    "R3-g2": {
        "peer": {
            "t": "http",
            "tools": [
                {"name": name, "inputSchema": _OBJECT}
                for name in ("=?base64?dGVzdA==?=", "\u691c\u7d22", " pad ")
            ],
        }
    },
    # The program that shows its environment is the fake server: it notes what it was started with.
    "S7-g1": {
        "steps": [
            {
                "attach": "w1",
                "server": {"name": "p", "transport": "stdio", "command": "$FAKE", "env": {"K": "v"}},
            }
        ]
    },
    # A refresh that is under way and never answered, while the call comes: the fake server does one thing at a time.
    "C7-g2": {
        "peer": {
            "t": "stdio",
            "listen": "ack",
            "on": {
                "tools/list": [
                    {"nth": 1, "result": {"tools": [{"name": "echo", "inputSchema": _OBJECT}]}},
                    {"nth": 2, "sleep": 60_000},
                ]
            },
        },
        "steps": [
            {
                "attach": "w1",
                "server": {"name": "p", "transport": "stdio", "command": "$FAKE"},
            },
            {"peer_notify": "tools/list_changed"},
            {"peer_waits": {"tools/list": 2}},
            {"call": ["w1", "p", "echo", {}]},
        ],
    },
    # The tools are those that are listed afterwards, not those of the attach.
    "L7-g2": {"expect": [{"tools_become": ["w1", ["new"]]}, {"open_listens": 1}]},
    # The variants bring the environment.
    "C4-g2": {"env": "$variant.env"},
    # A URL with userinfo is refused before anything is sent: once as it stands, once so that the peer answers.
    "E2-g2": {
        "variants": ["user:canary-pw@", ""],
        "steps": [
            {
                "attach": "w1",
                "server": {
                    "name": "p",
                    "transport": "http",
                    "url": "http://$variant$HOSTPORT/mcp?key=canary-q",
                    "headers": {"X-K": "${T}"},
                },
            }
        ],
    },
}

_O13_URL = "http://169.254.169.254/latest/meta-data/"
AMENDED["O13-g2"] = {
    # A peer of a test is on loopback, from where every address but the link-local ones may be named (SPEC §security);
    # what a public server may name is shown in tests/connections/test_address_rule.py.
    "variants": [f'Bearer resource_metadata="{_O13_URL}"']
}

MORE: dict[str, list[dict[str, Any]]] = {
    # What the sentence of the case says beside its expectations.
    "Q2-g1": [{"ok": "attach#2"}],
    "L2-g2": [{"sooner": ["call fast", "c1"]}],
    "S5-g1": [{"problem": 502, "mentions": ["setting missing", '"exitStatus": 1']}],
    "S5-g3": [{"problem_by_field": "command or cwd"}],
    "H3-g1": [{"peer_rpc_lacks": "notifications/cancelled"}],
    "P4-g1": [{"problem_on": ["detach", "attach#2"], "status": 503, "type": "store-unavailable"}],
    "L5-g1": [
        {"peer_param": ["tools/call", "name", "echo"]},
        {"peer_param": ["tools/call", "arguments", {"x": 1}]},
        {
            "peer_param": [
                "tools/call#2",
                "inputResponses",
                {"q1": {"action": "accept", "content": {"n": "v"}}},
            ]
        },
        {"peer_rpc_count": {"tools/call": 2}},
    ],
    "L7-g1": [{"peer_rpc_seen": "subscriptions/listen"}],
    "L5-g2": [{"problem_on": "call", "status": 502, "type": "input-rounds-exceeded"}],
}
