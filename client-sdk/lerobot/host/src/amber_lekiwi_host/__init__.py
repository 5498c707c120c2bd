"""Lets LeRobot's LeKiwiClient use a robot of Amber, over ZeroMQ.

::

    LeKiwiClient --5555: commands-----> messages, seat (PURE) --> hands --> base and arm of Amber
                 <-5556: observations-- messages (PURE) <------- senses <-- base, arm and cameras

``host`` joins them in one loop, and ``sockets`` has the two ports. Nothing here imports LeRobot.
"""
