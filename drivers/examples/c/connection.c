#include "connection.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

connection mediator_at(char *address, const char *port) {
    static char local[] = "127.0.0.1";
    if (address == NULL) address = getenv("AMBER_MEDIATOR");
    if (address == NULL || *address == '\0') address = local;
    char *end = strchr(address, ':');
    if (*address == '[') {
        address += 1;
        end = strchr(address, ']');
        if (end != NULL) *end++ = '\0';
    } else if (end != NULL && strchr(end + 1, ':') != NULL) {
        end = NULL; /* an IPv6 address without brackets */
    }
    const char *given = "26233";
    if (end != NULL && *end == ':') {
        *end = '\0';
        given = end + 1;
    }
    return (connection){address, port != NULL ? port : given, -1};
}

static bool open_connection(connection *mediator) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    int error = getaddrinfo(mediator->host, mediator->port, &hints, &found);
    if (error != 0) {
        fprintf(stderr, "error: %s: %s\n", mediator->host, gai_strerror(error));
        return false;
    }
    int s = socket(found->ai_family, SOCK_DGRAM, 0);
    bool is_open = s >= 0 && connect(s, found->ai_addr, found->ai_addrlen) == 0;
    if (!is_open) perror("error");
    if (is_open && mediator->socket >= 0) close(mediator->socket);
    if (is_open) mediator->socket = s;
    if (!is_open && s >= 0) close(s);
    freeaddrinfo(found);
    return is_open;
}

bool connect_again(connection *mediator) {
    /* After this, the mediator reports missing devices at once, without a timeout. */
    return open_connection(mediator) && tell_mediator(mediator, AMBER_PING, 0, 0);
}

static bool send_once(const connection *mediator, int32_t device_type, const amber_buffer *message) {
    static uint8_t frame[2048];
    size_t length = amber_client_frame(frame, sizeof frame, device_type, 0, message);
    if (length == 0 || mediator->socket < 0) return false;
    ssize_t sent = send(mediator->socket, frame, length, 0);
    /* The system reports the refusal of an earlier message instead of sending this one. */
    if (sent < 0 && errno == ECONNREFUSED) sent = send(mediator->socket, frame, length, 0);
    return sent >= 0;
}

bool tell_mediator(const connection *mediator, uint32_t type, uint32_t field, uint64_t number) {
    static amber_buffer message;
    message.length = 0;
    amber_put_number(&message, AMBER_TYPE, type);
    if (field != 0) amber_put_number(&message, field, number);
    return send_once(mediator, 0, &message); /* 0 is the device type of the mediator */
}

bool answer_ping(const connection *mediator, amber_bytes message) {
    amber_field type, number = {0};
    if (!amber_find(message, AMBER_TYPE, &type) || type.value != AMBER_PING) return false;
    bool numbered = amber_find(message, AMBER_SYN_NUM, &number);
    tell_mediator(mediator, AMBER_PONG, numbered ? AMBER_ACK_NUM : 0, number.value);
    return true;
}

bool send_message(connection *mediator, int32_t device_type, const amber_buffer *message) {
    return send_once(mediator, device_type, message) ||
           (connect_again(mediator) && send_once(mediator, device_type, message));
}

bool receive_message(const connection *mediator, int timeout_ms, amber_bytes *message) {
    static uint8_t datagram[65536];
    int64_t end = now_ms() + timeout_ms;
    for (;;) {
        int64_t left = end - now_ms();
        struct pollfd in = {.fd = mediator->socket, .events = POLLIN};
        int ready = poll(&in, 1, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        ssize_t length = recv(mediator->socket, datagram, sizeof datagram, MSG_DONTWAIT);
        if (length < 0 && errno != EAGAIN && errno != EINTR) return false; /* nobody listens there */
        /* Any program can send to this port, so what is no frame is ignored. */
        if (length >= 0 && amber_open_datagram(datagram, (size_t)length, message)) return true;
    }
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
