"""Programs that attack the sandbox or the grader, one idea each; where it can, each adds up right."""
# ruff: noqa: E501 (a program is one line)

SUM = "print(sum(map(int, input().split())))"
"""Right by itself: an attack that is not stopped ends with it and passes."""

ATTACKS = {
    "write_outside": "open({victim!r}, 'w').write('broken')\n" + SUM,
    "write_beside": "open('/program.py', 'w').write('broken')\n" + SUM,
    "write_root": "open('/x', 'w').write('broken')\n" + SUM,
    "append_runner": "open('/runner.py', 'a').write('broken')\n" + SUM,
    "read_outside": "assert open({victim!r}).read()\n" + SUM,
    "read_passwords": "assert open('/etc/passwd').read()\n" + SUM,
    "read_processes": "import os\nassert os.listdir('/proc')\n" + SUM,
    "read_environment": "import os\nassert 'STP_SECRET' in os.environ\n" + SUM,
    "read_parents_environment": "assert open('/proc/1/environ').read()\n" + SUM,
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)\n" + SUM,
    "udp_socket": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))\n"
    + SUM,
    "unix_socket": "import socket\nsocket.socketpair()\n" + SUM,
    "fork": "import os\nos.fork()\n" + SUM,
    "fork_bomb": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "thread_bomb": "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(99,)).start()",
    "memory_bomb": "x = []\nwhile True:\n    x.append(bytearray(1 << 26))",
    "memory_at_once": "x = bytearray(1 << 40)\n" + SUM,
    "shared_memory": "import os\nos.memfd_create('x')\n" + SUM,
    "endless_output": "while True:\n    print('x' * 65536)",
    "endless_errors": "import sys\nwhile True:\n    sys.stderr.write('x' * 65536)",
    "endless_loop": "while True:\n    pass",
    "endless_loop_that_catches": "import signal\nfor n in range(1, 32):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n        pass\nwhile True:\n    pass",
    "sleep": "import time\ntime.sleep(1000)",
    "waits_for_input": "import sys\nsys.stdin.read()\ninput()",
    "large_file": "with open('/tmp/x', 'wb') as f:\n    f.write(bytes(1 << 28))\n" + SUM,
    "many_files": "for n in range(100):\n    with open(f'/tmp/{{n}}', 'wb') as f:\n        f.write(bytes(1 << 23))\n"
    + SUM,
    "many_open_files": "x = [open('/program.py') for _ in range(1000)]\n" + SUM,
    "child_that_outlives": "import subprocess\nsubprocess.Popen(['/bin/sleep', '1000'])\n" + SUM,
    "daemon_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nprint(3)",
    "kill_parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + SUM,
    "kill_grader": "import os, signal\nos.kill({grader}, signal.SIGKILL)\n" + SUM,
    "kill_all": "import os, signal\nos.kill(-1, signal.SIGKILL)\ninput()",
    "symbolic_link": "import os\nos.symlink({victim!r}, '/tmp/l')\nassert open('/tmp/l').read()\n"
    + SUM,
    "hard_link": "import os\nos.link({victim!r}, '/tmp/l')\n" + SUM,
    "leave_before": "import os\nos._exit(0)",
    "exit_before": "raise SystemExit",
    "raise_limits": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 45, 1 << 45))\n"
    + SUM,
    "new_user_namespace": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0\n"
    + SUM,
    "trace": "import ctypes\nassert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0\n" + SUM,
    "mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0\n"
    + SUM,
    "crash": "import ctypes\nctypes.string_at(0)",
    "expected_in_memory": "import gc\nassert any('34' in str(o) for o in gc.get_objects() if isinstance(o, (str, list, tuple)))\nprint(34)",
    "expected_in_arguments": "import sys\nassert '34' in ' '.join(sys.orig_argv)\nprint(34)",
    "write_to_all_descriptors": "import os\nfor n in range(1, 64):\n    try:\n        os.write(n, b's34')\n    except OSError:\n        pass",
    "terminal_injection": "import fcntl\nfcntl.ioctl(0, 0x5412, b'x')\n" + SUM,
    "deep_recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "null_bytes": "x = '\0'",
}
