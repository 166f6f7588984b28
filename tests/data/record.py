#!/usr/bin/env python3
"""Records the corpora in tests/data: one program in a pty of a given size, scripted keys, raw output.

Run from this folder: python3 record.py. Times only pace the keys; nothing in the tests depends on them.
"""
import fcntl, os, pty, select, struct, subprocess, sys, termios, time

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = "/tmp/demo"
LIMIT = 56 * 1024

SETUP = r'''
rm -rf /tmp/demo; mkdir -p /tmp/demo/docs /tmp/demo/src; cd /tmp/demo
for i in 1 2 3 4 5 6 7 8; do seq 1 $((i*7)) > docs/part$i.txt; done
cat > src/main.c <<'C'
#include <stdio.h>
/* A small program with enough to colour. */
static const char *names[] = { "one", "two", "three" };
int main(int argc, char **argv)
{
    for (int i = 0; i < 3; i++) {
        printf("%d: %s\n", i, names[i]); // print it
    }
    return argc > 1 ? 1 : 0;
}
C
python3 - <<'P'
with open('/tmp/demo/long.txt', 'w') as out:
    for i in range(200):
        out.write(f'{i:04d} ' + 'the quick brown fox jumps over the lazy dog ' * (i % 5) + '\n')
P
'''

def record(name, argv, keys, cols, rows, env=None):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))
    full = {'TERM': 'xterm-256color', 'HOME': DEMO, 'PATH': os.environ['PATH'], 'LANG': 'C.UTF-8',
            'LC_ALL': 'C.UTF-8', 'PS1': '$ ', 'USER': 'demo', 'LOGNAME': 'demo', 'HISTFILE': '', 'MC_HOME': DEMO}
    full.update(env or {})
    def child():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, cwd=DEMO, env=full,
                               preexec_fn=child, close_fds=True)
    os.close(slave)
    data = b''
    def drain(seconds):
        nonlocal data
        end = time.time() + seconds
        while time.time() < end:
            ready, _, _ = select.select([master], [], [], 0.05)
            if ready:
                try:
                    more = os.read(master, 65536)
                except OSError:
                    return
                if not more:
                    return
                data += more
    drain(0.8)
    for key in keys:
        if isinstance(key, float):
            drain(key)
            continue
        try:
            os.write(master, key.encode())
        except OSError:
            break
        drain(0.25)
    process.kill()
    process.wait()
    os.close(master)
    # Same length, so that nothing moves: the corpora name no real user or machine.
    data = data[:LIMIT].replace(b'root', b'demo').replace(b'@vm', b'@pc')
    path = os.path.join(HERE, f'{name}.{cols}x{rows}.raw')
    with open(path, 'wb') as out:
        out.write(data)
    print(os.path.basename(path), len(data))

UNICODE = r'''
import sys
w = sys.stdout.write
w('\x1b[2J\x1b[H中文字符測試 日本語テスト 한국어\r\n')
w('combining e\u0301 a\u0308 n\u0303 o\u0302\u0323 ok\r\n')
w('emoji 😀 😃 🚀 🎉 x\r\n')
w('┌────┬────┐\r\n│ ab │ 中 │\r\n├────┼────┤\r\n│ ██ │ ▒▒ │\r\n└────┴────┘\r\n')
w('x' * 79 + '中\r\n' + 'y' * 78 + '文z\r\n')
w('\u2500' * 200 + '\r\n')
for i in range(30):
    w(f'{i:03d} ' + '漢字かな交じり文' * (i % 9) + ' end\r\n')
w('Ελληνικά Кириллица עברית العربية ไทยภาษา\r\n')
w('\x1b[5;5H\x1b[31m中\x1b[44m文\x1b[0m\x1b[5;21H\x1b[Kshort\x1b[24;1H')
'''
COLOURS = r'''
import sys
w = sys.stdout.write
w('\x1b[2J\x1b[H')
for i in range(256):
    w(f'\x1b[48;5;{i}m{i:4d}\x1b[0m' + ('\r\n' if i % 16 == 15 else ''))
w('\r\n')
for i in range(0, 256, 8):
    w(f'\x1b[38;2;{i};{255-i};128m#\x1b[48:2::{255-i}:{i}:64m#\x1b[0m')
w('\r\n')
for code in list(range(0, 10)) + [21] + list(range(30, 38)) + list(range(40, 48)) + list(range(90, 98)) + list(range(100, 108)):
    w(f'\x1b[{code}m{code:3d}\x1b[0m')
w('\r\n')
w('\x1b[4:3mcurly\x1b[4:0m \x1b[58;5;1mnot bold\x1b[59m \x1b[58:2::1:2:3mul\x1b[0m \x1b[1;3;4;7mall\x1b[22;23;24;27mnone\r\n')
w('\x1b[38:5:200mcolon\x1b[39m \x1b[1mbold\x1b[2mdim\x1b[22m \x1b[7m inv \x1b[K\x1b[27m\r\n\x1b[44mbg\x1b[K\x1b[0m\r\n')
for i in range(40):
    w(f'\x1b[32m12:00:{i:02d}\x1b[0m \x1b[1;34mINFO\x1b[0m line \x1b[33m{i}\x1b[0m of colour log\r\n')
'''
REGION = r'''
import sys
w = sys.stdout.write
w('\x1b[2J\x1b[H')
for i in range(1, 21): w(f'\x1b[{i};1Hrow {i}')
w('\x1b[5;15r\x1b[44m\x1b[15;1H')
for i in range(5): w(f'\r\nblue {i}')
w('\x1b[0m\x1b[5;1H\x1bM\x1bMup\x1b[41m\x1bMred\x1b[10;3H\x1b[2Lil\x1b[42m\x1b[12;1H\x1b[1Mdl\x1b[0m')
w('\x1b[7;4H\x1b[45m\x1b[3@ich\x1b[8;4H\x1b[2P\x1b[9;1H\x1b[46m\x1b[4X\x1b[0m')
w('\x1b[?6h\x1b[2;2Horigin\x1b[3dvpa\x1b[99;99Hz\x1b[?6l')
w('\x1b[43m\x1b[2S\x1b[1T\x1b[0m\x1b[r')
w('\x1b[22;1H\x1b(0lqqqk\x1b(B \x1b)0\x0eabc\x0f \x1b[4hins\x1b[4l')
w('\x1b[23;1Hab\x1b[5bx\ty\tz\x1b[Zq')
w('\x1b[3;70H\x1b[?7lno wrap beyond this\x1b[?7h')
w('\x1b[4;60H\x1b7\x1b[31mred\x1b8same\x1b[s\x1b[20;1H\x1b[uback')
w('\x1b[18;1H\x1b[1mwide\x1b[0K\x1b[1K\x1b[19;10H\x1b[7m\x1b[K\x1b[0m\x1b[21;1Hlast\x1bD\x1bEnel\x1b[1;1H')
w('\x1b[?1047h\x1b[2;2Halt47\x1b[?1047lmain\x1b[?1049h\x1b[42m\x1b[2J\x1b[Halt49\x1b[0m\x1b[?1049lend')
w('\x1bkwindow\x1b\\\x1b]0;title\x07\x1bPq#1\x1b\\\x1b_apc\x1b\\ok\x1b[24;1H')
for i in range(6): w(f'\r\ntail {i}' + 'w' * i * 30)
'''

def main():
    subprocess.run(['bash', '-c', SETUP], check=True)
    os.makedirs(HERE, exist_ok=True)
    for cols, rows in ((80, 24), (120, 40)):
        def go(name, argv, keys, env=None):
            record(name, argv, keys, cols, rows, env)
        vim = ['vim', '-u', 'NONE', '-N', '-i', 'NONE', '--cmd', 'set ttimeoutlen=10 | syntax on']
        go('vim', vim + ['-c', 'syntax on', 'src/main.c'],
           ['G', 'o', 'int x = 42; // new', '\x1b', 'gg', 'ddp', ':set number\r', ':split long.txt\r', 'G', '\x15', 'ciwword', '\x1b',
            '/fox\r', 'n', ':q!\r', 'yyp', 'u', ':set list\r'])
        go('vim-quit', ['bash', '--norc', '-i'],
           ['echo before\r', 'vim -u NONE -N -i NONE src/main.c\r', 1.0, 'jjA!', '\x1b', ':q!\r', 0.5, 'echo after\r'])
        go('less', ['bash', '--norc', '-i'], ['less -N long.txt\r', 0.5, ' ', ' ', 'b', '/lazy\r', 'n', 'G', '5k', 'k', 'k', 'j', 'q', 'echo done\r'])
        go('htop', ['unshare', '-p', '--mount-proc', '-f', 'htop', '-d', '5'], [0.7, '\x1b[B', 't', 0.7, '\x1b[A', 'h', 0.7])
        go('dialog', ['dialog', '--title', 'Demo', '--menu', 'Choose one of these', '15', '50', '5', '1', 'first entry', '2', 'second entry', '3', 'third'],
           ['\x1b[B', '\x1b[B', '\t', '\x1b[A'])
        go('dialog-check', ['dialog', '--backtitle', 'Back', '--checklist', 'Pick', '14', '40', '4', 'a', 'alpha', 'on', 'b', 'beta', 'off'], [' ', '\x1b[B', ' ', '\t'])
        go('mc', ['mc', '-u', '-c', '/tmp/demo', '/tmp/demo/docs'], [1.0, '\x1b[B', '\x1b[B', '\t', '\x1bOP' , 0.5, '\x1b\x1b', '\x1b[B', '\x1b[21~', 0.4])
        go('bash', ['bash', '--norc', '-i'],
           ['echo one two three\r', 'for i in $(seq 1 40); do echo line $i; done\r',
            'echo ' + 'a long command line that wraps around the right margin of the terminal ' * 2, '\x01', '\x1bf', '\x1bf', 'INSERTED ', '\x17', '\x05', '!', '\r',
            'printf "%s\\t%s\\n" a b c d\r', 'ls --color=always -la docs | cut -c1-10\r', 'ec\t\t', '\x03', 'cat long.txt | tail -20\r', 'clear\r', 'echo cleared\r'])
        go('python', ['python3', '-q', '-i', '-I'], ['x = [1,2,3]\r', 'for i in range(12): print(i, "*" * i * 9)\r', '\r', 'print("é 中文")\r', 'x\x1b[D\x1b[Dprint(\x05)\r', '1/0\r'],
           {'PYTHON_BASIC_REPL': '1'})
        go('fish', ['fish', '--no-config', '-C', 'function fish_prompt; echo -n "> "; end'], ['echo hello\r', 'ls do', '\t', '\r', 'for i in (seq 3); echo $i; end\r', 'git sta', '\x15'], {'XDG_CONFIG_HOME': DEMO, 'XDG_DATA_HOME': DEMO})
        go('colours', ['python3', '-c', COLOURS], [])
        go('unicode', ['python3', '-c', UNICODE], [])
        go('region', ['python3', '-c', REGION], [])

if __name__ == '__main__':
    main()
