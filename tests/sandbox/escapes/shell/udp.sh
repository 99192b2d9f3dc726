# Send a datagram.
#
# family: shell
# canary: network
# stops: full, container
# root: no

bash -c "echo $CLAIM > /dev/udp/127.0.0.1/$UDP_PORT"
