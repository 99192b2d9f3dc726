"""Connect from an event loop.

family: network
canary: network
stops: full, container
root: no
"""

import asyncio


async def send():
    _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", TCP_PORT), 2)
    writer.write(CLAIM.encode())
    await writer.drain()


asyncio.run(send())
