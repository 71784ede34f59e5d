"""The rules of the house, as tests: documents agree with the code, files stay small, every file has its mirror."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from dotenv import dotenv_values

from app.actions.table import ACTIONS
from app.core import door_problems, oauth_problems, operation_problems, problems
from app.core.problem import Problem
from app.doors.gauges import gauges
from app.settings import VARIABLES, Settings
from tests.support.doors_house import doors_house

ROOT = Path(__file__).resolve().parent.parent
SPEC = (ROOT / "SPEC.md").read_text()
APP_FILES = sorted(path for path in (ROOT / "app").rglob("*.py") if path.name != "__init__.py")
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))
FILE_LINES_MAX = 400

# Files that only the journeys through the whole daemon run, and files of bare shapes.
WITHOUT_MIRROR = {
    "app/__main__.py",
    "app/main.py",
    "app/ports.py",
    "app/connections/terms.py",
    "app/core/answers.py",
    "app/core/json_value.py",
}
SECTIONS_WITHOUT_BEHAVIOUR = {"status", "role"}


def spec_sections() -> set[str]:
    return set(re.findall(r"^## §(\w+)", SPEC, flags=re.MULTILINE))


def spec_table(section: str) -> list[list[str]]:
    text = SPEC.split(f"## §{section}", 1)[1].split("\n## §", 1)[0]
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def problem_classes() -> dict[str, type[Problem]]:
    found: dict[str, type[Problem]] = {}
    for module in (problems, operation_problems, oauth_problems, door_problems):
        for _, member in inspect.getmembers(module, inspect.isclass):
            if issubclass(member, Problem) and member is not Problem:
                found[member.code] = member
    return found


def marked_sections() -> set[str]:
    marks: set[str] = set()
    for path in TEST_FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "spec"
                and ast.unparse(node.func.value) == "pytest.mark"
            ):
                marks.update(ast.literal_eval(argument) for argument in node.args)
    return marks


@pytest.mark.parametrize("path", APP_FILES + TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_longer_than_a_person_reads(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= FILE_LINES_MAX


@pytest.mark.parametrize("path", APP_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_the_app_has_a_test_file_of_its_name(path: Path) -> None:
    relative = str(path.relative_to(ROOT))
    if relative in WITHOUT_MIRROR or "samples" in path.parts:
        return
    folder = ROOT / "tests" / path.relative_to(ROOT / "app").parent
    assert (folder / f"test_{path.stem}.py").exists(), (
        f"{relative} has no {folder.relative_to(ROOT)}/test_{path.stem}.py"
    )


@pytest.mark.parametrize("path", APP_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_the_app_says_what_lives_there(path: Path) -> None:
    first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    assert first.endswith((".", "§")) or "SPEC §" in first, first


def test_every_suppression_names_its_rule_and_its_reason() -> None:
    suppression = re.compile(r"# *(?:noqa|type: *ignore|pyright: *ignore)\b(.*)")
    named = re.compile(r"(?:: [A-Z]+\d+(?:, ?[A-Z]+\d+)*|\[\w+\])(?: #.*)? \w+")
    bare = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (
            *APP_FILES,
            *sorted((ROOT / "tests").rglob("*.py")),
            *(ROOT / "migrations").rglob("*.py"),
        )
        for line in path.read_text().splitlines()
        for after in suppression.findall(line)
        if not named.match(after)
    ]
    assert bare == []


def test_every_mark_names_a_section_and_every_section_is_proved() -> None:
    sections, marks = spec_sections(), marked_sections()
    assert marks - sections == set(), "marks that name no section of SPEC.md"
    assert sections - SECTIONS_WITHOUT_BEHAVIOUR - marks == set(), "sections of SPEC.md that no test marks"


@pytest.mark.spec("actions")
def test_the_action_table_of_the_specification_is_the_table_of_the_code() -> None:
    kinds = [row[0].strip("`") for row in spec_table("actions")]
    assert kinds == [kind for kind in kinds if kind in ACTIONS], "SPEC lists an action that is not there"
    assert set(kinds) == set(ACTIONS)


@pytest.mark.spec("actions")
def test_the_parameters_of_the_specification_are_those_of_the_code() -> None:
    for row in spec_table("actions"):
        kind, params = row[0].strip("`"), row[1]
        fields = ACTIONS[kind].params.model_fields
        listed = re.findall(r"(opt\. )?`(\w+)`", params)
        assert {name for _, name in listed} == set(fields), kind
        assert {name for optional, name in listed if not optional} == {
            name for name, field in fields.items() if field.is_required()
        }, kind


@pytest.mark.spec("problems")
def test_the_problem_table_of_the_specification_is_the_classes_of_the_code() -> None:
    listed: dict[str, tuple[str, str]] = {}
    for row in spec_table("problems"):
        for code, status in re.findall(r"`([a-z-]+)`(?: / `[a-z-]+`)?(?: (\d{3}))?", row[0]):
            listed[code] = (status or row[1], row[2])
        for first, second, status in re.findall(r"`([a-z-]+)` / `([a-z-]+)` (\d{3})", row[0]):
            listed[first] = listed[second] = (status, row[2])
    classes = problem_classes()
    assert set(classes) == set(listed)
    for code, cls in classes.items():
        status, retryable = listed[code]
        assert (str(cls.status), cls.retryable) == (status, retryable == "yes"), code


@pytest.mark.spec("settings")
def test_the_shipped_defaults_are_the_settings_with_their_defaults() -> None:
    text = (ROOT / ".env.defaults").read_text()
    shipped = {**dotenv_values(ROOT / ".env.defaults", interpolate=False)}
    mentioned = re.findall(r"^#? ?(PLURNK_[A-Z_]+)=", text, flags=re.MULTILINE)
    assert sorted(mentioned) == sorted(VARIABLES)
    assert Settings.from_environment({name: value for name, value in shipped.items() if value}) == Settings()


@pytest.mark.spec("settings")
def test_every_setting_is_read_somewhere() -> None:
    code = "\n".join(path.read_text() for path in APP_FILES if path.name != "settings.py")
    unread = {
        str(field.alias)
        for name, field in Settings.model_fields.items()
        if not re.search(rf"\.{name}\b", code)
    }
    assert not unread


@pytest.mark.spec("settings")
def test_every_setting_of_the_specification_exists() -> None:
    named = set(re.findall(r"`(PLURNK_[A-Z_]+[A-Z])[`=]", SPEC)) - {"PLURNK_MCP_"}
    assert {name for name in named if not name.startswith("PLURNK_MCP_")} <= set(VARIABLES)


@pytest.mark.spec("cli")
def test_every_command_of_the_makefile_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`", (ROOT / "README.md").read_text()))
    assert named <= targets


@pytest.mark.spec("security")
def test_no_validator_is_made_that_may_fetch() -> None:
    calls = [
        node
        for path in APP_FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("jsonschema_rs.")
    ]
    guards = {
        "jsonschema_rs.FancyRegexOptions": "",
        "jsonschema_rs.Registry": "retriever=_never_retrieved",
        "jsonschema_rs.validator_for": "offline=True",
    }
    assert {ast.unparse(each.func) for each in calls} == guards.keys()
    assert all(guards[ast.unparse(each.func)] in ast.unparse(each) for each in calls)


@pytest.mark.spec("security")
@pytest.mark.parametrize("document", ["docs/security.md", "docs/found.md"])
def test_every_attack_and_fault_of_the_documents_is_shown_by_a_test_that_exists(document: str) -> None:
    rows = [line for line in (ROOT / document).read_text().splitlines() if line.startswith("| ")]
    shown = [row for row in rows if not row.endswith("| Shown by |")]
    named = [re.findall(r"`([\w/]+)::(\w+)`", row) for row in shown]
    assert shown
    assert all(named), "a row that no test shows"
    for file, test in (each for tests in named for each in tests):
        assert re.search(rf"^(async )?def {test}\(", (ROOT / f"tests/{file}.py").read_text(), re.MULTILINE), (
            test
        )


def test_every_injected_fault_of_the_documents_is_in_a_file_that_exists() -> None:
    rows = [row for row in (ROOT / "docs/injection.md").read_text().splitlines() if row.startswith("| ")][1:]
    named = [re.findall(r"`([\w/]+\.py)`", row) for row in rows]
    assert rows
    assert all(named), "a fault that no test brings about"
    assert [file for files in named for file in files if not (ROOT / "tests" / file).exists()] == []


@pytest.mark.spec("observe")
async def test_the_metrics_of_the_specification_are_those_of_the_registry() -> None:
    async with doors_house() as doors:
        answer = await doors.get("/metrics")
        host = doors.app.serves
        measures = host.telemetry.measures
        shown = [
            *measures.counters,
            *measures.histograms,
            *measures.gauges,
            *gauges(host, doors.streams),
        ]
    listed = [(row[0].strip("`"), tuple(re.findall(r"`(\w+)`", row[1]))) for row in spec_table("observe")]
    assert sorted(listed) == sorted((measure.name, measure.labels) for measure in shown)
    described = re.findall(r"^# TYPE (\w+) ", answer.text, flags=re.MULTILINE)
    assert {name for name in described if not name.startswith("process_")} == {name for name, _ in listed}


def test_the_lock_holds_exactly_what_the_project_asks_for_and_says_nothing_of_where_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lock = (ROOT / "requirements.lock").read_text()
    asked = {
        re.split(r"[\[<>=]", wanted, maxsplit=1)[0].lower()
        for wanted in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    }
    entries = re.findall(r"^([a-z0-9.-]+)(?:\[[a-z,]+\])?==.*\n((?:    .*\n)*)", lock, flags=re.MULTILINE)
    assert {name for name, rest in entries if re.search(r"# .*plurnk-mcpd", rest)} == asked, "run `make lock`"
    assert "://" not in lock
