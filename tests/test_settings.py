"""Settings, typed and judged. SPEC §settings, §limits."""

import pytest
from pydantic import ValidationError

from app import shipped
from app.environment import load
from app.settings import VARIABLES, Settings, faults

CANARY = "canary value \x01"


def lines(environment: dict[str, str]) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Settings.from_environment(environment)
    assert "canary" not in str(caught.value)
    return faults(caught.value)


@pytest.mark.spec("settings")
def test_the_shipped_file_is_the_settings_in_their_order() -> None:
    path = shipped.path(".env.defaults")
    assert [
        line.partition("=")[0] for line in path.read_text("utf-8").splitlines() if line[:1].isalpha()
    ] == list(VARIABLES)
    merged = load({}, path.parent / "absent", path.read_text("utf-8"))
    assert Settings.from_environment(merged.values) == Settings()


@pytest.mark.spec("settings")
def test_settings_are_read_by_exact_name_and_anything_else_is_ignored() -> None:
    settings = Settings.from_environment(
        {
            "PLURNK_PORT": "0",
            "PLURNK_LOG_LEVEL": "INFO",
            "plurnk_host": "x",
            "PLURNK_MCP_a": "/x",
            "PATH": "/bin",
        }
    )
    assert settings == Settings(port=0)


@pytest.mark.spec("settings")
def test_every_faulty_variable_has_a_line_without_its_value() -> None:
    assert lines(
        {
            "PLURNK_PORT": "70000",
            "PLURNK_MCP_CONNECT_TIMEOUT": "0",
            "PLURNK_MAX_BODY": "4MiB canary",
            "PLURNK_LOG_FORMAT": CANARY,
            "PLURNK_REFERENCES": CANARY,
            "PLURNK_HTTP_HOSTS": CANARY,
            "PLURNK_ALLOWED_ORIGINS": '["https://h", "canary"]',
            "PLURNK_TOKEN": CANARY,
        }
    ) == [
        "PLURNK_PORT: must be at most 65535",
        "PLURNK_TOKEN: must consist of letters, digits and -._~+/ (RFC 6750)",
        "PLURNK_LOG_FORMAT: must be 'console' or 'json'",
        "PLURNK_ALLOWED_ORIGINS: /1: must be an origin such as https://app.example.com",
        'PLURNK_REFERENCES: must be a JSON array of strings, such as ["a", "b"]',
        "PLURNK_HTTP_HOSTS: must be any, public or a JSON array of patterns",
        "PLURNK_MCP_CONNECT_TIMEOUT: must be at least 1",
        "PLURNK_MAX_BODY: must be a whole number in decimal digits",
    ]


@pytest.mark.spec("settings")
@pytest.mark.parametrize("variable", VARIABLES)
def test_no_setting_quotes_a_bad_value(variable: str) -> None:
    takes_any_text = {"PLURNK_HOME", "PLURNK_DATABASE_URL", "PLURNK_CA_FILE"}
    if variable not in takes_any_text:
        (line,) = lines({variable: CANARY})
        assert line.startswith(f"{variable}: ")
        assert "canary" not in line


@pytest.mark.spec("references")
@pytest.mark.parametrize(
    "patterns, name, may",
    [
        ('["*"]', "ANY", True),
        ('["*"]', "PLURNK_TOKEN", False),
        ('["PLURNK_*", "PLURNK_TOKEN"]', "PLURNK_TOKEN", False),
        ("[]", "ANY", False),
        ('["GITHUB_*", "T"]', "GITHUB_TOKEN", True),
        ('["GITHUB_*", "T"]', "T", True),
        ('["GITHUB_*", "T"]', "T2", False),
        ('["GITHUB_*", "T"]', "github_token", False),
    ],
)
def test_the_operator_says_what_a_workspace_may_reference(patterns: str, name: str, may: bool) -> None:
    assert Settings.from_environment({"PLURNK_REFERENCES": patterns}).may_reference(name) == may


@pytest.mark.spec("security")
def test_secrets_are_not_printed_and_the_open_door_is_known() -> None:
    settings = Settings.from_environment({"PLURNK_TOKEN": "canary", "PLURNK_HTTP_PROXY": "http://u:canary@h"})
    assert "canary" not in repr(settings) + str(settings)
    assert (settings.is_open, Settings.from_environment({"PLURNK_TOKEN": "none"}).is_open) == (False, True)
    assert (settings.is_loopback, Settings.from_environment({"PLURNK_HOST": "::"}).is_loopback) == (
        True,
        False,
    )


@pytest.mark.spec("limits")
def test_the_limits_have_the_defaults_of_the_specification() -> None:
    settings = Settings()
    assert (settings.max_message, settings.max_result, settings.max_body) == (16 << 20, 4 << 20, 4 << 20)
    assert (settings.max_catalog_entries, settings.max_catalog_bytes) == (10_000, 32 << 20)
    assert (settings.max_schema_depth, settings.max_schema_nodes) == (64, 10_000)
    assert (settings.max_servers, settings.max_workspaces, settings.max_preparations) == (100, 10_000, 256)
    assert (settings.max_workspace_operations, settings.max_operations) == (64, 1000)
    assert (settings.max_pending, settings.max_streams) == (100, 1000)
