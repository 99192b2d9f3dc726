"""Every payload of `escapes` hits its canary in a plain subprocess, and none does in a tier that promises so.

Each test runs the whole corpus in processes of its own (`escaping.corpus`): as root and as an ordinary user, and for
the container tier under a filter that really refuses unshare, mount and setns.
"""

import asyncio
import os
from pathlib import Path

import pytest
from escaping.circumstances import TIERS, USERS, namespaces, run_corpus, tries
from escaping.payloads import CANARIES, files, header, payloads

from ferrule.sandbox.python import PythonSandbox

PAYLOADS = {payload.name: payload for payload in payloads()}


def gone_through(found, tier):
    """What hit although this tier promises to stop it, or hit something that the payload doesn't aim at."""
    through = {}
    for name, result in found.items():
        payload = PAYLOADS[name]
        hits = {
            canary: detail
            for canary, detail in result["hits"].items()
            if tier in payload.tiers or canary not in payload.canaries
        }
        if hits:
            through[name] = hits
    return through


def test_there_are_at_least_150_payloads():
    assert len(PAYLOADS) >= 150
    assert len({payload.code for payload in PAYLOADS.values()}) == len(PAYLOADS)


def test_each_payload_says_what_it_is():
    wrong = [f"{path.parent.name}/{path.stem}" for path in files() if not says_what_it_is(path)]
    assert wrong == []


def says_what_it_is(path):
    payload = PAYLOADS.get(f"{path.parent.name}/{path.stem}")
    if payload is None:
        return bool(header(path).keys() & {"machine", "protocol"})
    return (
        payload.family == path.parent.name.replace("_", " ")
        and payload.canaries <= CANARIES.keys()
        and bool(payload.tiers)
        and payload.tiers <= set(TIERS)
        and bool(payload.next_code) == ("next" in payload.canaries)
    )


# Some of the payloads; all of them take minutes and are left to `make test-slow`.
SAMPLE = tuple(sorted(PAYLOADS))[::20]
SHELL_SAMPLE = tuple(sorted(name for name, payload in PAYLOADS.items() if payload.is_shell))[::3]
WAYS = [
    *(("python", tier, user, SAMPLE) for tier in TIERS for user in USERS),
    *(("shell", tier, USERS[0], SHELL_SAMPLE) for tier in TIERS),
    *(
        pytest.param(where, tier, user, (), marks=pytest.mark.slow)
        for where in ("shell", "python", "session")
        for tier in TIERS
        for user in USERS
    ),
]


def chosen(names, where="plain"):
    """The payloads that a run of the corpus tries there: those named, or all."""
    return {
        name
        for name, payload in PAYLOADS.items()
        if (not names or name in names) and (where == "plain" or payload.is_shell == (where == "shell"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_payloads_hit_their_canaries_in_a_plain_subprocess(user):
    found = run_corpus("plain", user=user, names=())
    missed = {
        name: f"{result['hits']} {result['end_of_output']}"
        for name, result in found.items()
        if not PAYLOADS[name].canaries & result["hits"].keys() and (user == "root" or not PAYLOADS[name].needs_root)
    }
    assert missed == {}
    assert found.keys() == chosen(())


@pytest.mark.parametrize(("where", "tier", "user", "names"), WAYS)
def test_no_payload_gets_out(where, tier, user, names):
    found = run_corpus(where, user=user, tier=tier, names=names)
    assert gone_through(found, tier) == {}
    assert found.keys() == chosen(names, where)


@pytest.mark.parametrize("user", USERS)
def test_what_root_changes_uncontained_is_not_the_machine_s(user):
    """An ordinary user can change none of it, and can't enter a namespace of its own as root does."""
    own = namespaces(user=user)
    for kind in ("ipc", "mnt", "uts"):
        assert (own[kind] != str(Path(f"/proc/self/ns/{kind}").readlink())) == (os.geteuid() == 0)


@pytest.mark.parametrize("user", USERS)
def test_the_container_really_refuses_namespaces(user):
    """With the filter, and else the same, none of the calls works that root may make without it."""
    for works in tries(user=user, filtered=True).values():
        assert works == "EPERM"
    if user == "root":
        assert set(tries(user=user, filtered=False).values()) == {"works"}


SIBLING = """
import os
seen = []
own = os.getpid()
for pid in {*range(1, 1000), *range(max(own - 1000, 1), own + 1000)}:
    try:
        if pid != own:
            os.kill(pid, 0)
            seen.append(pid)
    except OSError:
        pass
for where, _, files in os.walk(os.path.dirname(os.getcwd())):
    if "kept.txt" in files:
        seen.append(where)
seen
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_runs_at_the_same_time_do_not_see_each_other(tier):
    async with PythonSandbox(tier=tier, packages=()) as sandbox:
        waiting = sandbox.run("open('kept.txt', 'w').close()\nimport time\ntime.sleep(3)\n'undisturbed'")
        one = asyncio.create_task(waiting)
        await asyncio.sleep(0.3)
        assert (await sandbox.run(SIBLING)).value == []
        assert not one.done()
        assert (await one).value == "undisturbed"
