"""Which OTEL_* variables ask for traces, and what is said where they ask in vain."""

import pytest

from app.observe.export_settings import export_warning, exports_traces, header_secrets

pytestmark = pytest.mark.spec("observe")

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:4318"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "  "}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "True"}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "no"}, True),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "console, otlp"}, True),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
        (
            {
                **ENDPOINT,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            True,
        ),
    ],
)
def test_traces_are_exported_where_the_variables_say_so(
    environment: dict[str, str], *, expected: bool
) -> None:
    assert exports_traces(environment) is expected


def test_what_is_asked_for_in_vain_is_said() -> None:
    assert export_warning({}, {}) is None
    assert export_warning(ENDPOINT, ENDPOINT) is None
    assert "http/protobuf" in (export_warning({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, {}) or "")
    assert ".env" in (export_warning({}, ENDPOINT) or "")
    assert export_warning({"OTEL_SDK_DISABLED": "true", **ENDPOINT}, {"OTEL_SDK_DISABLED": "true"}) is None


def test_the_headers_of_the_collector_are_secret_whole_and_each() -> None:
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=s%20ecret,x=two"}
    assert header_secrets(given) == ["api-key=s%20ecret,x=two", "s%20ecret", "two", "s ecret", "two"]
    assert header_secrets({"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "nameless"}) == ["nameless"] * 3
    assert header_secrets({}) == []
