"""The whole configuration, judged before anything starts. SPEC §defaults, §security."""

from pathlib import Path

import pytest

from app.configuration import ConfigurationFaults, read
from app.settings import Settings

EXPOSED = "must be set, because PLURNK_HOST is not a loopback address"
SAFE = {"PLURNK_TOKEN": "t", "PLURNK_STDIO_POLICY": "off", "PLURNK_REFERENCES": "[]"}


def lines(process: dict[str, str], directory: Path) -> list[str]:
    with pytest.raises(ConfigurationFaults) as caught:
        read(process, directory)
    assert str(caught.value) == "\n".join(caught.value.lines)
    return caught.value.lines


@pytest.mark.spec("defaults")
def test_an_empty_environment_is_the_shipped_defaults(tmp_path: Path) -> None:
    configuration = read({"PATH": "/bin"}, tmp_path)
    assert (configuration.settings, configuration.defaults, configuration.warnings) == (Settings(), {}, ())
    assert configuration.environment.values["PATH"] == "/bin"


@pytest.mark.spec("observe")
def test_traces_are_asked_for_by_the_process_and_not_by_the_file(tmp_path: Path) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    configuration = read(endpoint, tmp_path)
    assert (configuration.exports_traces, configuration.warnings) == (True, ())
    (tmp_path / ".env").write_text("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318\n")
    configuration = read({}, tmp_path)
    assert (configuration.exports_traces, len(configuration.warnings)) == (False, 1)


@pytest.mark.spec("defaults")
def test_settings_defaults_and_references_read_one_mapping(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("T=secret-token\nPLURNK_MCP_A=http://h/mcp\nPLURNK_MCP_A_BEARER=${T}\n")
    configuration = read({"PLURNK_PORT": "0", "PLURNK_REFERENCES": "[]"}, tmp_path)
    assert (configuration.settings.port, list(configuration.defaults)) == (0, ["a"])


@pytest.mark.spec("defaults")
def test_every_fault_is_listed_at_once_without_values(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("canary line\nPLURNK_HOST=0.0.0.0\n")
    assert lines(
        {
            "PLURNK_PORT": "canary",
            "PLURNK_CA_FILE": str(tmp_path / "canary.pem"),
            "PLURNK_MCP_a": "/x",
            "PLURNK_MCP_a_ARGS": '["canary"',
            "PLURNK_MCP_b_CWD": "/canary",
        },
        tmp_path,
    ) == [
        ".env: line 1 is no NAME=value",
        "PLURNK_PORT: must be a whole number in decimal digits",
        f"PLURNK_TOKEN: {EXPOSED}",
        f"PLURNK_STDIO_POLICY: {EXPOSED}",
        f"PLURNK_REFERENCES: {EXPOSED}",
        "PLURNK_CA_FILE: is no readable file of PEM certificates",
        "PLURNK_MCP_a_ARGS: is not valid JSON",
        "PLURNK_MCP_b_CWD: belongs to a server 'b', and no PLURNK_MCP_b is set",
    ]


@pytest.mark.spec("security")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "h.example"])
@pytest.mark.parametrize("missing", [*SAFE, None])
def test_other_machines_reach_the_daemon_only_once_the_operator_has_decided(
    tmp_path: Path, host: str, missing: str | None
) -> None:
    process = {"PLURNK_HOST": host} | {name: value for name, value in SAFE.items() if name != missing}
    if missing is None:
        assert not read(process, tmp_path).settings.is_loopback
    else:
        assert lines(process, tmp_path) == [f"{missing}: {EXPOSED}"]


@pytest.mark.spec("security")
def test_no_token_is_possible_on_loopback_only(tmp_path: Path) -> None:
    assert read({"PLURNK_TOKEN": "none"}, tmp_path).settings.is_open
    assert lines(SAFE | {"PLURNK_HOST": "0.0.0.0", "PLURNK_TOKEN": "none"}, tmp_path) == [
        "PLURNK_TOKEN: 'none' is possible only where PLURNK_HOST is a loopback address"
    ]


@pytest.mark.spec("settings")
def test_a_setting_that_is_not_text_is_a_fault(tmp_path: Path) -> None:
    assert lines({"PLURNK_HOME": "/x\udcff"}, tmp_path) == ["PLURNK_HOME: is not UTF-8 text"]
    assert lines({"PLURNK_HOME": "/x\0"}, tmp_path) == ["PLURNK_HOME: contains a NUL character"]


@pytest.mark.spec("settings")
def test_a_certificate_file_without_certificates_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    assert lines({"PLURNK_CA_FILE": str(tmp_path / "ca.pem")}, tmp_path) == [
        "PLURNK_CA_FILE: is no readable file of PEM certificates"
    ]


@pytest.mark.spec("settings")
def test_a_misspelt_setting_is_a_warning_with_the_likely_name(tmp_path: Path) -> None:
    configuration = read({"PLURNK_HOSTS": "canary", "PLURNK_\n": "canary", "PLURNKX": "1"}, tmp_path)
    assert configuration.warnings == (
        "PLURNK_\\n: is not a setting",
        "PLURNK_HOSTS: is not a setting; did you mean PLURNK_HOST?",
    )
