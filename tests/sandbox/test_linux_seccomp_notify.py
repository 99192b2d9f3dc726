"""Forks that are asked about: allowed, refused, and given a descriptor; in a contained session."""

import tempfile

import pytest
from contained import needs_linux, run, started, ways

pytestmark = needs_linux

# A session's process is contained with a listener; here its parent answers, in the program that is `started`.
SESSION = """
    from ferrule.sandbox.linux.seccomp_notify import add_descriptor, allow, receive_call, refuse
    ours, theirs = socket.socketpair()
    tier = Tier({tier!r})
    folder = None if tier is Tier.FULL else Path.cwd()
    entered = enter(find_python_paths(), tier, folder=folder)
    prepared, forker = prepare(entered, RunLimits()), os.getpid()
    answers, write = os.pipe()
    child = os.fork()
    if child == 0:
        confine(prepared, keep=(0, 1, 2, write), parent=forker, forks_through=theirs.fileno())
        outcomes = []
        for number in range(3):
            process = attempt(os.fork)
            if process == 0:
                os.write(20, b"given") if number == 2 else None
                os._exit(number)
            was_made = not isinstance(process, str)
            outcomes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) if was_made else process)
        outcomes.append(attempt(os.kill, os.getpid(), 0))
        outcomes.append(attempt(call, "ioctl", 3, 0xC0502100, 0))
        thread = threading.Thread(target=outcomes.append, args=("thread",))
        thread.start(), thread.join()
        os.write(write, json.dumps(outcomes).encode())
        os._exit(0)
    prepared.release()
    os.close(write)
    said, [listener], _, _ = socket.recv_fds(ours, 9, 1)
    number = syscalls.NUMBERS["clone"]
    first = receive_call(listener)
    assert (said, first.number, first.arguments[0] & 0xFF) == (b"L", number, signal.SIGCHLD)
    allow(listener, first)
    refuse(listener, receive_call(listener), errno.EAGAIN)
    read, given = os.pipe()
    third = receive_call(listener)
    add_descriptor(listener, third, given, 20)
    allow(listener, third)
    outcomes = json.loads(os.read(answers, 999))
    return [outcomes, os.read(read, 9).decode()]
"""


@pytest.mark.parametrize("way", ways(), ids=str)
def test_each_fork_is_the_listener_s_to_allow(way):
    plain = type(way)(None, way.user, way.refused)  # the body itself enters the tier
    assert run(SESSION.format(tier=way.tier), plain) == [[0, "EAGAIN", 2, "EPERM", "ENOTTY", "thread"], "given"]


@pytest.mark.parametrize("way", [way for way in ways() if way.tier == "full"], ids=str)
def test_a_zygote_ends_with_its_process_and_takes_its_runs_along(way):
    body = "os.write(1, b'x'); time.sleep(60)"
    with tempfile.TemporaryDirectory() as folder, started(body, way, folder) as process:
        assert process.stdout.read(1) == b"x"
        process.kill()
        assert process.stdout.read() == b""  # the end of the file: nobody has it open any more
