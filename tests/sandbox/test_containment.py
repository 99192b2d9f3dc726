"""Containment: what a contained process can't do, each shown to work without; as root and not, and in each tier."""

import os

import pytest
from contained import Way, needs_linux, run, ways
from containment_attempts import ATTEMPTS, REFUSALS

pytestmark = needs_linux

SOURCES = {name: source for name, (source, _) in ATTEMPTS.items()}
WAYS = ways()
FULL = [way for way in WAYS if way.tier == "full"]


def test_without_containment_each_attempt_succeeds():
    body = f"""
        outcomes = each({SOURCES!r})
        blocks = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
        return outcomes, [block for block in blocks if int(block[4]) == os.getpid()]
    """
    outcomes, left_on_the_machine = run(body, Way(None))
    assert outcomes == {name: plainly for name, (_, plainly) in ATTEMPTS.items()}
    assert left_on_the_machine == []


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_contained_each_attempt_is_refused(way):
    outcomes = run(f"return each({SOURCES!r})", way)
    got_through = {name: outcome for name, outcome in outcomes.items() if outcome not in REFUSALS}
    assert got_through == {}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_honest_programs_work(way):
    body = """
        import asyncio, collections, decimal, tempfile
        done = []
        threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        os.makedirs("a/b"), Path("a/b/c").write_text("text"), os.rename("a/b/c", "a/c"), os.truncate("a/c", 2)
        os.link("a/c", "a/d"), os.unlink("a/d")
        pair = socket.socketpair()
        pair[0].send(b"x")
        return {
            "threads": sorted(done),
            "file": Path("a/c").read_text(),
            "viewed": Path(VIEWED).read_text(),
            "loop": asyncio.run(asyncio.sleep(0.01, "slept")),
            "pair": pair[1].recv(9).decode(),
            "null": Path("/dev/null").write_text("x"),
            "random": len(os.urandom(9)) + len(Path("/dev/urandom").open("rb").read(1)),
            "signal": attempt(os.kill, os.getpid(), 0),
            "terminal": os.isatty(0),
            "limits": resource.getrlimit(resource.RLIMIT_CORE),
            "empty at first": os.listdir("."),
        }
    """
    assert run(body, way) == {
        "threads": list(range(8)),
        "file": "te",
        "viewed": "seen",
        "loop": "slept",
        "pair": "x",
        "null": 1,
        "random": 10,
        "signal": None,
        "terminal": False,
        "limits": [0, 0],
        "empty at first": ["a"],
    }


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_memory_descriptors_and_file_sizes_are_limited(way):
    body = """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        def opened():
            held = []
            try:
                while True:
                    held.append(os.open(".", os.O_RDONLY))
            except OSError as error:
                return len(held) < 64 and errno.errorcode[error.errno]
            finally:
                [os.close(each) for each in held]
        return [
            attempt(lambda: mmap.mmap(-1, 80 << 20).close()),
            attempt(lambda: mmap.mmap(-1, 200 << 20).close()),
            attempt(lambda: Path("f").write_bytes(bytes(900_000))),
            attempt(lambda: Path("g").write_bytes(bytes(1_200_000))),
            opened(),
        ]
    """
    limits = {"memory": 100 << 20, "file_size": 1_000_000, "files": 64}
    assert run(body, way, limits=limits) == [None, "ENOMEM", 900_000, "EFBIG", "EMFILE"]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_processor_time_is_limited(way):
    with pytest.raises(pytest.fail.Exception, match="status 9"):
        run("while True: pass", way, limits={"cpu": 1}, timeout=30)


@pytest.mark.parametrize("way", FULL, ids=str)
def test_scratch_and_threads_are_limited(way):
    body = """
        def files():
            for number in range(10_000):
                open(str(number), "w").close()
        def threads():
            stop = threading.Event()
            made = []
            try:
                for _ in range(100):
                    made.append(threading.Thread(target=stop.wait))
                    made[-1].start()
            except RuntimeError:
                return len(made)
            finally:
                stop.set()
        return [
            attempt(lambda: Path("a").write_bytes(bytes(900_000))),
            attempt(lambda: Path("b").write_bytes(bytes(900_000))),
            attempt(files),
            threads() <= 20,
        ]
    """
    limits = {"scratch": 1 << 20, "entries": 100, "threads": 20}
    outcomes = run(body, way, limits=limits)
    assert outcomes == [900_000, "ENOSPC", "ENOSPC", True]


@pytest.mark.parametrize("way", FULL, ids=str)
def test_the_view_is_all_there_is(way):
    body = """
        viewed = {path.parts[1] for path in VIEW.readable}
        followed = {Path(os.path.realpath(path)).parts[1] for path in VIEW.readable}
        found = set(os.listdir("/"))
        return sorted(found - viewed - followed), sorted(viewed - found), os.getuid(), os.getpid(), os.uname().nodename
    """
    more, less, *who = run(body, way)
    assert set(more) <= {"dev", "scratch", "tmp"}
    assert less == []
    assert who == [65534, 1, "sandbox"]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_memory_that_runs_would_share_is_found(way):
    body = """
        from ferrule.sandbox.containment import list_shared_mappings
        tier = Tier({tier!r})
        entered = enter(find_python_paths(), tier, folder=None if tier is Tier.FULL else Path.cwd())
        before = len(list_shared_mappings(entered))
        private, shared = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE), mmap.mmap(-1, 4096)
        answer = [before, len(list_shared_mappings(entered))]
        os.write(1, json.dumps(answer).encode())
        os._exit(0)
    """
    plain = Way(None, way.user, way.refused)  # the body itself enters the tier
    assert run(body.format(tier=way.tier), plain) == [0, 1]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_descriptor_is_inherited(way):
    body = "return [each for each in range(1000) if attempt(os.fstat, each) != 'EBADF' or each < 3]"
    assert run(body, way) == [0, 1, 2]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("code", ["b8270000400f05", "b814000000cd80"], ids=["x32", "int80"])
def test_other_tables_of_calls_end_the_process(way, code):
    """getpid by the x32 table and by the 32-bit one: numbers there mean other calls than the filter knows."""
    if os.uname().machine != "x86_64":
        pytest.skip("x86_64 alone has them")
    body = f"""
        code = bytes.fromhex({code!r} + "c3")
        room = mmap.mmap(-1, 4096, prot=7)
        room.write(code)
        where = ctypes.addressof(ctypes.c_char.from_buffer(room))
        return ctypes.CFUNCTYPE(ctypes.c_long)(where)()
    """
    with pytest.raises(pytest.fail.Exception, match="status 31"):  # SIGSYS
        run(body, way)
