"""Groups by number and identity. SPEC §connection."""

import os
import signal

import pytest

from app.connections.process_group import (
    _ps_start_time,
    end_groups,
    has_members,
    is_left_behind,
    is_ours,
    signal_group,
    start_time,
)
from tests.support.children import DEAF, ORPHAN, SLEEP, leaders
from tests.support.processes import is_alive

pytestmark = pytest.mark.spec("connection")

NOBODY = 2**22 + 1


def test_a_start_time_identifies_a_process() -> None:
    own = start_time(os.getpid())
    assert own
    assert own == start_time(os.getpid()) != start_time(1)
    assert start_time(NOBODY) is None


def test_ps_tells_a_start_time_where_proc_does_not() -> None:
    assert _ps_start_time(os.getpid()) == _ps_start_time(os.getpid()) is not None
    assert _ps_start_time(NOBODY) is None


def test_a_name_with_parentheses_does_not_confuse_the_fields() -> None:
    odd = f"open('/proc/self/comm', 'w').write('a) R 1 1 1'); {SLEEP}"
    with leaders(odd, SLEEP) as (first, second):
        ticks = [int((start_time(each.pid) or "").rpartition("/")[2]) for each in (first, second)]
        assert ticks[0] <= ticks[1] < ticks[0] + 6000, "hundredths of a second from boot to start"
        assert has_members(first.pid)


def test_ending_is_polite_first_and_then_certain() -> None:
    with leaders(SLEEP, DEAF, SLEEP) as (polite, deaf, spared):
        groups = {polite.pid: start_time(polite.pid), deaf.pid: None}
        assert end_groups(groups, trusts_a_missing_leader=True, grace_s=0.1) == [polite.pid, deaf.pid]
        assert [each.wait(5) for each in (polite, deaf)] == [-signal.SIGTERM, -signal.SIGKILL]
        assert is_alive(spared.pid)


def test_a_number_that_somebody_else_has_now_is_left_alone() -> None:
    with leaders(SLEEP) as (stranger,):
        groups: dict[int, str | None] = {stranger.pid: "another boot/1"}
        assert end_groups(groups, trusts_a_missing_leader=True, grace_s=1) == []
        assert is_alive(stranger.pid)
        assert is_left_behind(stranger.pid) is False, "it leads, so our leader did not leave it behind"


def test_members_that_outlive_their_leader_are_ours_only_for_who_saw_the_leader() -> None:
    with leaders(ORPHAN) as (leader,):
        leader.wait(20)
        group = leader.pid
        groups: dict[int, str | None] = {group: "boot/1"}
        assert (has_members(group), is_left_behind(group)) == (True, True)
        assert is_ours(group, "boot/1", trusts_a_missing_leader=False) is False
        assert end_groups(groups, trusts_a_missing_leader=False, grace_s=0) == []
        assert end_groups(groups, trusts_a_missing_leader=True, grace_s=5) == [group]
        assert (has_members(group), is_left_behind(group)) == (False, False)


def test_a_group_of_zombies_has_no_members() -> None:
    with leaders(SLEEP) as (leader,):
        leader.kill()
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        assert has_members(leader.pid) is False


def test_a_group_that_is_gone_is_signalled_in_vain() -> None:
    assert (has_members(NOBODY), signal_group(NOBODY, signal.SIGTERM)) == (False, False)
