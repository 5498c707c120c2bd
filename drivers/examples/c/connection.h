/* The connection of a client to its mediator: a UDP socket that finds its way again. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "amber.h"

/* The mediator, by its name, and the socket that is connected to it. */
typedef struct {
    const char *host, *port;
    int socket; /* -1: none yet */
} connection;

/* The address of the mediator: HOST, HOST:PORT or [IPV6]:PORT, which this cuts into its parts; NULL is
 * AMBER_MEDIATOR, or this computer. `port`, if it is not NULL, is the port. */
connection mediator_at(char *address, const char *port);

/* Connects, or connects again: a connected socket keeps the local address that it got first. When this
 * computer gets another one (Wi-Fi, DHCP, a VPN), or the name of the mediator does, only another socket
 * helps. It makes this program another client, so it announces itself; one with subscriptions also
 * subscribes again. */
bool connect_again(connection *mediator);

/* Sends the mediator a type, and a number unless its field is 0. */
bool tell_mediator(const connection *mediator, uint32_t type, uint32_t field, uint64_t number);

/* Answers a PING: the mediator checks that this client is alive. Returns whether the message is one. */
bool answer_ping(const connection *mediator, amber_bytes message);

/* Sends a message. False if it could not be sent. */
bool send_message(connection *mediator, int32_t device_type, const amber_buffer *message);

/* Waits for a message for so many milliseconds. It is valid until the next call. False if none came. */
bool receive_message(const connection *mediator, int timeout_ms, amber_bytes *message);

/* Milliseconds of a clock that is never set. */
int64_t now_ms(void);

#endif
