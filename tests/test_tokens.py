"""Bearer tokens. SPEC §security, RFC 6750."""

import re
import threading
import time
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.principal import Principal
from app.core.problems import WorkspaceInvalid
from app.home import Home, HomeRefused
from app.tokens import TokenRefused, Tokens, operator_token

OPERATOR = "canary-Operator_token.~+/=="
TOKENS = Tokens(OPERATOR)
WORKSPACES = st.from_regex(r"\A[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}\Z")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Make a home that nobody holds."""
    made = Home(tmp_path / "home")
    made.ensure()
    return made


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "header",
    [f"Bearer {OPERATOR}", f"bearer {OPERATOR}", f"BEARER   {OPERATOR}", f" bEaReR {OPERATOR}\t"],
)
def test_the_operators_token_is_known_whatever_the_case_of_the_scheme(header: str) -> None:
    assert TOKENS.principal(header) == Principal()


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        OPERATOR,
        f"Bearer{OPERATOR}",
        f"Basic {OPERATOR}",
        f"Bearer {OPERATOR.lower()}",
        f"Bearer {OPERATOR[:-1]}",
        f"Bearer {OPERATOR}=",
        f"Bearer {OPERATOR} x",
        f"Bearer {OPERATOR}, Bearer {OPERATOR}",
        f"Bearer {OPERATOR}\n",
        f"Bearer\t{OPERATOR}",
        f"Bearer \xe9{OPERATOR}",
        "Bearer \u0442\u043e\u043a\u0435\u043d",
        "Bearer \ud800",
        "Bearer \x00",
        "Bearer none",
        "Bearer plurnk",
        "Bearer plurnk.",
        "Bearer plurnk..",
        "Bearer plurnk.w",
        "Bearer plurnk.w.",
        "Bearer plurnk.w.mac",
        "Bearer " + "x" * 100_000,
        "Bearer plurnk." + "w" * 100_000 + ".mac",
        "\u017fearer " + OPERATOR,
    ],
)
def test_anything_else_is_nobody(header: str | None) -> None:
    assert TOKENS.principal(header) is None


@pytest.mark.spec("security")
@given(st.text())
def test_no_text_is_somebody_by_chance_or_breaks_the_check(text: str) -> None:
    assert TOKENS.principal(text) is None
    assert TOKENS.principal(f"Bearer {text}") is None


@pytest.mark.spec("security")
@given(workspace=WORKSPACES, other=WORKSPACES)
def test_a_workspace_token_is_valid_for_its_workspace_only_and_fits_a_header(
    workspace: str, other: str
) -> None:
    token = TOKENS.for_workspace(workspace)
    assert re.fullmatch(r"[A-Za-z0-9._~+/-]+", token)
    assert TOKENS.principal(f"Bearer {token}") == Principal(workspace)
    if other != workspace:
        forged = token.replace(f".{workspace}.", f".{other}.", 1)
        assert TOKENS.principal(f"Bearer {forged}") is None


@pytest.mark.spec("security")
@given(workspace=WORKSPACES, position=st.integers(0), character=st.sampled_from("aB0-_.="))
def test_a_workspace_token_changed_anywhere_is_nobodys(workspace: str, position: int, character: str) -> None:
    token = TOKENS.for_workspace(workspace)
    place = position % len(token)
    changed = token[:place] + character + token[place + 1 :]
    assert TOKENS.principal(f"Bearer {changed}") == (Principal(workspace) if changed == token else None)


@pytest.mark.spec("security")
def test_a_workspace_token_is_derived_and_ends_with_the_operators() -> None:
    token = TOKENS.for_workspace("team.one")
    assert token == Tokens(OPERATOR).for_workspace("team.one")
    assert token.startswith("plurnk.team.one.")
    assert OPERATOR not in token
    assert Tokens(OPERATOR + "x").principal(f"Bearer {token}") is None


@pytest.mark.spec("security")
def test_a_token_for_what_is_no_workspace_is_not_made() -> None:
    with pytest.raises(WorkspaceInvalid):
        TOKENS.for_workspace("../w")


@pytest.mark.spec("security")
def test_an_open_daemon_takes_everybody_for_the_operator_and_derives_nothing() -> None:
    tokens = Tokens(None)
    assert tokens.is_open
    assert not TOKENS.is_open
    for header in (None, "", "Bearer x", "nonsense"):
        assert tokens.principal(header) == Principal()
    with pytest.raises(TokenRefused, match="PLURNK_TOKEN"):
        tokens.for_workspace("w")


@pytest.mark.spec("security")
def test_a_token_of_the_environment_is_used_and_not_written(home: Home) -> None:
    assert operator_token(OPERATOR, home) == OPERATOR
    assert operator_token("none", home) is None
    assert list(home.path.iterdir()) == []


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "token", ["two words", "canary\u00e9", "canary\n", " canary", '"canary"', "=canary", "="]
)
def test_a_token_that_no_header_can_carry_is_refused_without_being_quoted(home: Home, token: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        operator_token(token, home)
    assert "canary" not in str(refused.value)
    assert "PLURNK_TOKEN" in str(refused.value)


@pytest.mark.spec("security")
@pytest.mark.parametrize("unset", [None, ""])
def test_without_one_a_token_is_generated_once_and_kept(home: Home, unset: str | None) -> None:
    token = operator_token(unset, home)
    assert token is not None
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert operator_token(unset, home) == token
    assert home.token.read_text() == f"{token}\n"
    assert home.token.stat().st_mode & 0o777 == 0o600
    home.token.unlink()
    assert operator_token(unset, home) != token


@pytest.mark.spec("security")
def test_two_that_generate_at_once_agree(home: Home) -> None:
    barrier = threading.Barrier(8)
    found: list[str | None] = []

    def generate() -> None:
        barrier.wait()
        found.append(operator_token(None, home))

    threads = [threading.Thread(target=generate) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [file.name for file in home.path.iterdir()] == ["token"]


@pytest.mark.spec("security")
@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff\xfe", b"a\nb"])
def test_a_token_file_without_a_token_is_refused_with_advice_and_kept(home: Home, content: bytes) -> None:
    home.token.write_bytes(content)
    with pytest.raises(TokenRefused, match="Remove it"):
        operator_token(None, home)
    assert home.token.read_bytes() == content


@pytest.mark.spec("security")
def test_a_token_file_that_is_a_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("planted")
    home.token.symlink_to(tmp_path / "theirs")
    with pytest.raises(HomeRefused, match="token"):
        operator_token(None, home)


@pytest.mark.spec("security")
@pytest.mark.parametrize("known", ["", "plurnk.w."], ids=["operator", "workspace"])
def test_a_guess_that_is_right_up_to_its_last_character_takes_as_long_as_one_that_is_wrong_from_the_first(
    known: str,
) -> None:
    """Medians of guesses made in turns; a comparison that stops at the first difference is several times as fast."""
    tokens = Tokens("s3cret_" * 40)
    token = tokens.for_workspace("w") if known else "s3cret_" * 40
    assert tokens.principal(f"Bearer {token}") is not None
    last = "A" if token[-1] != "A" else "B"
    guesses = [f"Bearer {known}{'-' * (len(token) - len(known))}", f"Bearer {token[:-1]}{last}"]
    took: list[list[int]] = [[], []]
    for turn in range(4000):
        begun = time.perf_counter_ns()
        principal = tokens.principal(guesses[turn % 2])
        took[turn % 2].append(time.perf_counter_ns() - begun)
        assert principal is None
    early, late = map(median, took)
    assert late < 2 * early
