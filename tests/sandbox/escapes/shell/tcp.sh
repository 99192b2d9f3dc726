# Connect to a service on the machine.
#
# family: shell
# canary: network
# stops: full, container
# root: no

bash -c "echo $CLAIM > /dev/tcp/127.0.0.1/$TCP_PORT"
