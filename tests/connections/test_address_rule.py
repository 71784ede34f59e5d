"""address_rule.py: which addresses pass, in every spelling; the judged address is the one that is used."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override

from app.connections.address_rule import (
    AddressNotAllowedError,
    AddressRule,
    JudgedResolver,
    Reach,
    is_legacy_number,
    reach_of,
)

PUBLIC = [
    "93.184.215.14",
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
    "::ffff:93.184.215.14",
    "64:ff9b::5db8:d70e",
]
PRIVATE = [
    "127.0.0.1",
    "::1",
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "fd12::1",
    "fec0::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
    "2001::1",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.0.9",
    "192.88.99.1",
    "3fff::1",
    "5f00::1",
    "2001:db8::1",
    "64:ff9b:1::7f00:1",
]
GUARDED = [
    "169.254.169.254",
    "169.254.0.1",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "64:ff9b:1::a9fe:a9fe",
    "fd00:ec2::23",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "fd00:a9fe:a9fe::1",
]

LISTED = ["169.254.0.0/16", "fe80::/10", "100.100.100.200", "168.63.129.16", *GUARDED[-4:], "fd00:ec2::254"]


@pytest.mark.spec("security")
@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass_under_any_and_public(address: str) -> None:
    assert AddressRule("any").allows("a.example", address)
    assert AddressRule("public").allows("a.example", address)


@pytest.mark.spec("security")
@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_pass_under_any_only(address: str) -> None:
    assert AddressRule("any").allows("a.example", address)
    assert not AddressRule("public").allows("a.example", address)


@pytest.mark.spec("security")
@pytest.mark.parametrize("address", GUARDED)
def test_link_local_and_metadata_addresses_pass_only_where_an_address_pattern_lists_them(
    address: str,
) -> None:
    assert not AddressRule("any").allows("a.example", address)
    assert not AddressRule("public").allows("a.example", address)
    assert not AddressRule(["a.example", "*"]).allows("a.example", address)
    listed = AddressRule(LISTED)
    assert listed.allows("a.example", address)


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "host, address, is_allowed",
    [
        ("api.example.com", "10.0.0.1", True),
        ("API.Example.COM.", "10.0.0.1", True),
        ("example.com", "10.0.0.1", False),
        ("api.example.com.evil.example", "10.0.0.1", False),
        ("localhost", "127.0.0.1", True),
        ("other.example", "10.1.2.3", True),
        ("other.example", "10.2.2.3", False),
        ("other.example", "::ffff:10.1.2.3", True),
        ("::1", "::1", True),
    ],
)
def test_patterns_are_names_addresses_and_networks(host: str, address: str, is_allowed: bool) -> None:
    rule = AddressRule(["*.example.com", "localhost", "10.1.0.0/16", "[::1]"])
    assert rule.allows(host, address) is is_allowed


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "host", ["2130706433", "017700000001", "0x7f000001", "127.1", "0x7f.0.0.1", "0177.0.0.1", "0"]
)
def test_number_forms_of_addresses_never_pass(host: str) -> None:
    assert not AddressRule("any").allows_host(host)


@pytest.mark.parametrize(
    "host, under_any, under_public",
    [
        ("127.0.0.1", True, False),
        ("[::1]", True, False),
        ("[::ffff:127.0.0.1]", True, False),
        ("93.184.215.14", True, True),
        ("169.254.169.254", False, False),
        ("metadata.example", True, True),
        ("3com.example", True, True),
    ],
)
def test_literal_addresses_are_judged_before_connecting(
    host: str, under_any: bool, under_public: bool
) -> None:
    assert AddressRule("any").allows_host(host) is under_any
    assert AddressRule("public").allows_host(host) is under_public


LOOPBACK = [
    "64:ff9b:1::7f00:1",
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "0.0.0.0",
    "::",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
]


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    ("address", "reach"),
    [(address, Reach.PUBLIC) for address in PUBLIC]
    + [(address, Reach.LOOPBACK) for address in LOOPBACK]
    + [(address, Reach.PRIVATE) for address in sorted({*PRIVATE, *GUARDED} - {*LOOPBACK})]
    + [("no address", Reach.LOOPBACK)],
)
def test_a_url_that_a_server_names_leads_to_nothing_more_private_than_itself(
    address: str, reach: Reach
) -> None:
    assert reach_of(address) is reach
    is_guarded = address in GUARDED or address == "no address"
    for home in Reach:
        assert AddressRule("any").allows_named(address, home) is (reach <= home and not is_guarded)
        assert AddressRule(["10.0.0.0/8"]).allows_named(address, home) is (reach <= home and not is_guarded)


@pytest.mark.spec("security")
@pytest.mark.parametrize("address", GUARDED)
def test_a_server_that_is_private_itself_may_name_a_guarded_address_that_is_listed(address: str) -> None:
    listed = AddressRule(LISTED)
    assert [home for home in Reach if listed.allows_named(address, home)] == [Reach.PRIVATE, Reach.LOOPBACK]


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    ("host", "is_number"),
    [
        *((number, True) for number in ("2130706433", "0x7f.1", "127.1", "0177.0.0.1")),
        *((host, False) for host in ("127.0.0.1", "::1", "1.example", "localhost")),
    ],
)
def test_a_number_that_only_some_resolvers_read_is_told_from_an_address(host: str, is_number: bool) -> None:
    assert is_legacy_number(host) is is_number


class Names(AbstractResolver):
    """Gives a name other addresses each time it is asked, as a rebinding attacker does."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.is_closed = False

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.answers.pop(0)
        ]

    @override
    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.spec("security")
async def test_only_the_allowed_of_several_addresses_are_connected_to() -> None:
    names = Names(["127.0.0.1", "93.184.215.14"], ["127.0.0.1"], [])
    resolver = JudgedResolver(AddressRule("public"), names)
    assert [result["host"] for result in await resolver.resolve("a.example", 80)] == ["93.184.215.14"]
    with pytest.raises(AddressNotAllowedError):
        await resolver.resolve("a.example", 80)
    assert await resolver.resolve("a.example", 80) == []
    await resolver.close()
    assert names.is_closed
