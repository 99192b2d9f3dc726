# Leave a process behind that has its own session and no terminal.
#
# family: shell
# canary: running
# stops: full, container
# root: no
# alone: yes

setsid -f sleep 3 > /dev/null 2>&1 < /dev/null
