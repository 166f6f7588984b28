# Driver of a persistent python interpreter: calls come in on fd 3, answers go out on fd 4.
import sys
__builtins__ = dict(vars(sys.modules["builtins"]))  # user code may patch builtins: the driver keeps its own copy
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the driver's folder is nothing to import from
import os, atexit, _signal, _thread
from os import read, write, dup2, getpid, getcwd, _exit  # user code may patch os
from os import open as open_fd, close as close_fd
try:
    from _json import encode_basestring_ascii as quote  # json itself costs milliseconds
except ImportError:
    from json.encoder import py_encode_basestring_ascii as quote

from sys import settrace, setprofile, getrecursionlimit, setrecursionlimit
RECURSION = getrecursionlimit()
LIB_PATH = list(sys.path)
CALLS, ANSWERS, KEEP, LATE = 200, 203, (204, 205, 206), (None, 207, 208)  # high: user code that opens files gets 3, 4, ...
ONLY_AST, TOP_AWAIT, ANNOTATIONS, COROUTINE = 0x400, 0x2000, 0x1000000, 0x80
MAX_VALUE, MAX_STATE, MAX_NAMES = 100000, 256 << 10, 500
PID = getpid()
READ_ONLY, WRITE_ONLY = os.O_RDONLY, os.O_WRONLY
current_frames, get_ident, MAIN_THREAD = sys._current_frames, _thread.get_ident, _thread.get_ident()
late_threads = ()   # threads of earlier execs, while another one runs
is_switched = False # LATE is open
MAIN = type(sys)("__main__")
running = False     # user code is on the stack
pending = False     # SIGINT came while a driver frame was on top of user work (compile, repr)
task = loop = None  # the awaited call and the one loop
cancelled = False
sources = {}        # file name -> source of recent calls, for tracebacks
sources_size = 0
imported = set()
future_flags = 0
count = 0
cwd = "/"
inbox = b""
nonce = b""         # of the exec under way: an answer without it is not believed
LOST = 70           # exit code: the driver cannot go on (EX_SOFTWARE)


def on_int(signum, frame):
    global pending, cancelled
    if not running:
        return
    name = frame.f_code.co_filename if frame else HERE
    if name == HERE:  # never raise within the driver
        pending = True
    elif task is not None and ("asyncio" in name or "selectors" in name) and not task.done():
        cancelled = True  # raising inside the loop's own code could lose its callbacks
        task.cancel()
        loop.call_soon_threadsafe(int)
    else:
        raise KeyboardInterrupt


HERE = on_int.__code__.co_filename


def check_pending():
    if pending:
        raise KeyboardInterrupt


def load(name):
    """Import for the driver's own use: never a same-named file of the user."""
    if name not in sys.modules:
        mine = sys.path[:]
        sys.path[:] = LIB_PATH
        try:
            __import__(name)
        finally:
            sys.path[:] = mine
    return sys.modules[name]


def text(s):
    """JSON string; lone surrogates are no valid JSON for everybody."""
    return quote(s if s.isascii() else s.encode("utf-8", "backslashreplace").decode())


def send(kind, payload):
    data = b"%s%s %010d\n%s" % (nonce, kind, len(payload), payload)
    while data:
        data = data[write(ANSWERS, data):]


def take(n):
    global inbox
    while len(inbox) < n:
        more = read(CALLS, 1 << 16 if n < 1 << 16 else n)
        if not more:
            return None
        inbox += more
    data, inbox = inbox[:n], inbox[n:]
    return data


def env_now():
    try:
        return dict(os.environ._data)
    except Exception:
        return {}


def send_state(env):
    pairs = []
    for k, v in env.items():
        try:
            pairs.append(quote(k.decode()) + ":" + quote(v.decode()))
        except Exception:
            pass  # not UTF-8: a changed value would be worse than none
    payload = ("{" + ",".join(pairs) + "}").encode()
    if len(payload) <= MAX_STATE:
        send(b"s", payload)


def new_stream(fd):
    if fd == 0:
        return open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    return open(fd, "w", 1, "utf-8", "backslashreplace", closefd=False)


def flush(stream):
    try:
        stream.flush()
        return True
    except BaseException:
        return False


def restore_streams(own_stdin):
    """Whatever the code did to 0, 1, 2 and sys.std*: as at the start again, all output written."""
    global streams
    sin, out, err = streams
    for s in {id(s): s for s in (getattr(sys, "stdout", None), getattr(sys, "stderr", None), out, err)}.values():
        flush(s)
    for fd in (0, 1, 2):
        dup2(KEEP[fd], fd)
    for s in streams:
        for name in [name for name in s.__dict__ if name != "mode"]:
            del s.__dict__[name]  # methods that the code has replaced
    if own_stdin or getattr(sys, "stdin", None) is not sin or sin.closed:
        sin = new_stream(0)
    # A flush that failed on a closed descriptor kept its text: it goes out now.
    if not flush(out):
        out = new_stream(1)
    if not flush(err):
        err = new_stream(2)
    streams = sin, out, err
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams


class Apart:
    """A stream for an exec beside which threads of earlier ones run: what those print goes where it went before."""

    def __init__(self, stream, fd):
        self.__dict__.update(_stream=stream, _fd=fd)

    def write(self, s):
        if get_ident() not in late_threads:
            return self._stream.write(s)
        data = s.encode("utf-8", "backslashreplace")
        while data:
            data = data[write(LATE[self._fd], data):]
        return len(s)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __setattr__(self, name, value):
        setattr(self._stream, name, value)


def switch(places):
    """Prints into other pipes from now on: something that code left running still prints into these."""
    global is_switched
    try:
        new = [open_fd(place, WRITE_ONLY) for place in places.decode().split(" ")]
    except OSError:
        return send(b"o", b"0")
    for fd, opened in zip((1, 2), new):
        dup2(KEEP[fd], LATE[fd], False)
        dup2(opened, KEEP[fd], False)
        dup2(opened, fd)
        close_fd(opened)
    is_switched = True
    send(b"o", b"1")


def part_from_threads():
    global late_threads
    late_threads = ()
    if not is_switched:
        return
    threads = current_frames()
    if len(threads) > 1:
        late_threads = set(threads) - {MAIN_THREAD}
        sys.stdout, sys.stderr = Apart(streams[1], 1), Apart(streams[2], 2)


def remember(name, source):
    global sources_size
    sources[name] = source
    sources_size += len(source)
    cache = sys.modules.get("linecache")
    while len(sources) > 500 or (sources_size > 4 << 20 and len(sources) > 1):
        old = next(iter(sources))
        sources_size -= len(sources.pop(old))
        if cache:
            cache.cache.pop(old, None)
    if cache:
        cache.cache[name] = (len(source), None, source.splitlines(True), name)
    elif "import" in source:  # the code may bring in traceback, inspect, logging ...
        show_sources()


def show_sources():
    cache = load("linecache").cache
    for name, source in sources.items():
        if name not in cache:
            cache[name] = (len(source), None, source.splitlines(True), name)


def note_imports(tree):
    todo = [tree]
    while todo:
        node = todo.pop()
        kind = type(node).__name__
        if kind == "Import":
            imported.update(a.name.split(".")[0] for a in node.names)
        elif kind == "ImportFrom":
            if node.module and not node.level:
                imported.add(node.module.split(".")[0])
        else:
            for f in node._fields:
                v = getattr(node, f, None)
                if type(v) is list:
                    todo.extend(x for x in v if hasattr(x, "_fields"))
                elif hasattr(v, "_fields"):
                    todo.append(v)


def run(code):
    check_pending()
    result = eval(code, MAIN.__dict__)
    if code.co_flags & COROUTINE:
        result = run_await(result)
    return result


def run_await(coro):
    global loop, task, cancelled
    asyncio = load("asyncio")
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    cancelled = False
    task = loop.create_task(coro)
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        if cancelled:
            raise KeyboardInterrupt from None
        raise
    finally:
        if not task.done():  # KeyboardInterrupt left it hanging: let it clean up, for a while
            task.cancel()
            loop.run_until_complete(asyncio.wait([task], timeout=1))
        if not task.cancelled() and task.done():
            task.exception()  # seen
        task = None


def execute(op, source, name):
    """Runs the code; returns (has a value, value)."""
    global future_flags
    if op == b"v":
        remember(name, source)
        code = compile(source.lstrip(" \t"), name, "eval", TOP_AWAIT | future_flags, True)
        return True, run(code)
    tree = compile(source, name, "exec", ONLY_AST | TOP_AWAIT | future_flags, True)
    body = tree.body
    if not body:
        return False, None
    remember(name, source)
    if "import" in source:
        note_imports(tree)
    last = None
    if type(body[-1]).__name__ == "Expr":
        last = body.pop()
    if body:
        code = compile(tree, name, "exec", TOP_AWAIT | future_flags, True)
        future_flags |= code.co_flags & ANNOTATIONS
    if last is not None:
        # Both parts are compiled before either runs: an error in the last line must not come late.
        expr = EXPRESSION(last.value)
        expr = compile(expr, name, "eval", TOP_AWAIT | future_flags, True)
    if body:
        run(code)
    if last is None:
        return False, None
    value = run(expr)
    return value is not None, value


EXPRESSION = type(compile("0", "", "eval", ONLY_AST))  # ast.Expression without importing ast


def as_json(value):
    """JSON text if it says exactly the value, else None."""
    left = MAX_VALUE
    todo = [value]
    while todo:
        v = todo.pop()
        left -= 1
        if v is None or isinstance(v, float):
            pass
        elif isinstance(v, int):
            if not -(1 << 63) <= v < 1 << 64:
                return None  # many readers would make a float of it
        elif isinstance(v, str):
            left -= len(v)
        elif isinstance(v, (list, tuple)):
            left -= len(v)
            if left > 0:
                todo.extend(v)
        elif isinstance(v, dict):
            left -= 2 * len(v)
            if left > 0:
                if not all(type(k) is str for k in v):
                    return None
                todo.extend(v.keys())
                todo.extend(v.values())
        else:
            return None
        if left < 0:
            return None
    try:
        out = load("json").dumps(value, allow_nan=False, ensure_ascii=False)
        return out if len(out.encode()) <= MAX_VALUE else None
    except (ValueError, TypeError, RecursionError):
        return None


def report(e):
    """Traceback on stderr, from the first frame of user code on."""
    tb = e.__traceback__
    while tb and tb.tb_frame.f_code.co_filename not in sources:
        tb = tb.tb_next
    try:
        show_sources()
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(e), e, tb)
        else:
            load("traceback").print_exception(type(e), e, tb)
    except BaseException:
        try:
            write(2, ("%s: %s\n" % (type(e).__name__, message(e))).encode("utf-8", "backslashreplace"))
        except OSError:
            pass


def message(e):
    try:
        return str(e)
    except BaseException:
        return "<unprintable>"


def exit_code(e):
    c = e.code
    if c is None:
        return 0
    if isinstance(c, int):
        return c & 255
    try:
        print(c, file=sys.stderr)
    except BaseException:
        pass
    return 1


def call(op, source, stdin):
    global running, pending, count
    count += 1
    pending = False
    result = ""
    code = 0
    error = None
    try:
        if stdin:
            fd = open_fd(stdin, READ_ONLY)
            if fd:
                dup2(fd, 0)
                close_fd(fd)
            sys.stdin = new_stream(0)
        part_from_threads()
        running = True
        has, value = execute(op, source, "<call %d>" % count)
        if has and getpid() == PID:
            shown = repr(value)
            check_pending()
            result = ',"value":' + text(shown[:MAX_VALUE])
            if len(shown) > MAX_VALUE:
                result += ',"value_truncated":true'
            if op == b"v":
                j = as_json(value)
                if j is not None:
                    result += ',"json":' + j
        check_pending()
        running = False
    except BaseException as e:
        running = False
        error = e
    has = value = None
    if error is not None:
        result = ""
        if isinstance(error, KeyboardInterrupt):
            code, result = 130, ',"interrupted":true'
        elif isinstance(error, SystemExit):
            code, result = exit_code(error), ',"exited":true'
        else:
            code = 1
            report(error)
            result = ',"error":{"type":%s,"message":%s}' % (text(type(error).__name__), text(message(error)[:MAX_VALUE]))
    if getpid() != PID:  # a forked child fell out of the user's code
        flush(sys.stdout), flush(sys.stderr)
        _exit(code)
    return code, result


def after(code, result, stdin):
    global cwd, env
    settrace(None), setprofile(None)  # a debugger left on would trace the driver
    if getrecursionlimit() < RECURSION:
        setrecursionlimit(RECURSION)  # the driver itself needs some
    restore_streams(stdin)
    if _signal.getsignal(_signal.SIGINT) is not on_int:
        _signal.signal(_signal.SIGINT, on_int)
    try:
        cwd = getcwd()
    except OSError:
        pass  # removed: the last one known
    if len(current_frames()) > 1:
        send(b"b", b"")  # threads: they may print while the next exec runs
    send(b"r", ('{"exit":%d,"cwd":%s%s}' % (code, text(cwd), result)).encode())
    now = env_now()
    if now != env:
        env = now
        send_state(env)


def names():
    found, mods = [], set(m for m in imported if m in sys.modules)
    for k, v in list(MAIN.__dict__.items()):
        if type(v) is type(sys) and k != "__builtins__":
            top = v.__name__.split(".")[0]
            mods.add(top)
            if k == top:
                continue
        if not (k[:2] == "__" and k[-2:] == "__"):
            found.append(k)
    out, left = [], 60000
    for group in (sorted(found), sorted(mods)):
        part = []
        for k in group[:MAX_NAMES]:
            q = text(k)
            left -= len(q) + 1
            if left > 0:
                part.append(q)
        out.append(",".join(part))
    send(b"n", ('{"names":[%s],"imports":[%s]}' % tuple(out)).encode())


def child_of_fork():
    for fd in (CALLS, ANSWERS) + KEEP + (LATE[1:] if is_switched else ()):
        try:
            os.close(fd)
        except OSError:
            pass


def main():
    global nonce
    while True:
        head = take(18)
        if head is None:
            break
        op, size, path_size = head[:1], int(head[2:12]), int(head[13:17])
        if op.isupper():  # asked with a nonce, and answered with it
            given = take(17)
            if given is None:
                break
            op, nonce = op.lower(), given[:16] + b" "
        stdin, source = take(path_size), take(size)
        if source is None:
            break
        if op == b"n":
            names()
        elif op == b"o":
            switch(stdin)
        else:
            code, result = call(b"x" if op == b"a" else op, source.decode("utf-8", "surrogateescape"), stdin)
            after(code, result, bool(stdin))
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass
    flush(sys.stdout), flush(sys.stderr)
    _exit(LOST)  # not held up by threads; should an exec be on its way, it was not run


_signal.signal(_signal.SIGINT, on_int)
for low, high in ((3, CALLS), (4, ANSWERS), (0, KEEP[0]), (1, KEEP[1]), (2, KEEP[2])):
    dup2(low, high, False)
os.close(3), os.close(4)
os.register_at_fork(after_in_child=child_of_fork)
sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
streams = sys.stdin, sys.stdout, sys.stderr
OLD_MAIN = sys.modules["__main__"]
MAIN.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
sys.modules["__main__"] = MAIN
sys.argv[:] = [""]
if not getattr(sys.flags, "safe_path", False):
    sys.path.insert(0, "")
env = env_now()
send_state(env)  # before the hello, which tells that no code of the user's has run yet
send(b"h", b'{"pid":%d,"version":"%d.%d.%d"}' % ((PID,) + sys.version_info[:3]))
try:
    main()
except BaseException:
    # The code broke what the driver needs (its descriptors, the interpreter itself): the exec is lost, which is better than
    # one that never ends. Not held up by threads.
    _exit(LOST)
