/* A client in C: queries a Dummy and a thermometer, if they are available.
 *
 *     ./client [HOST [PORT [TIMES]]]
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "amber.h"

enum { MEDIATOR = 0, DUMMY = 5, THERMOMETER = 201 };

/* Cuts HOST, HOST:PORT or [IPV6]:PORT into its parts; returns the port, or the default one. */
static const char *cut_port(char **address) {
    char *end = strchr(*address, ':');
    if (**address == '[') {
        *address += 1;
        end = strchr(*address, ']');
        if (end != NULL) *end++ = '\0';
    } else if (end != NULL && strchr(end + 1, ':') != NULL) {
        end = NULL; /* an IPv6 address without brackets */
    }
    if (end == NULL || *end != ':') return "26233";
    *end = '\0';
    return end + 1;
}

/* The mediator, by its name, and the socket that is connected to it. */
typedef struct {
    const char *host, *port;
    int socket;
} connection;

static bool open_connection(connection *mediator) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    int error = getaddrinfo(mediator->host, mediator->port, &hints, &found);
    if (error != 0) {
        fprintf(stderr, "error: %s: %s\n", mediator->host, gai_strerror(error));
        return false;
    }
    int s = socket(found->ai_family, SOCK_DGRAM, 0);
    struct timeval patience = {.tv_sec = 1};
    bool is_open = s >= 0 && connect(s, found->ai_addr, found->ai_addrlen) == 0 &&
                   setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
    if (!is_open) perror("error");
    if (is_open && mediator->socket >= 0) close(mediator->socket);
    if (is_open) mediator->socket = s;
    if (!is_open && s >= 0) close(s);
    freeaddrinfo(found);
    return is_open;
}

static bool send_once(const connection *mediator, int32_t device_type, const amber_buffer *message) {
    uint8_t frame[256];
    size_t length = amber_client_frame(frame, sizeof frame, device_type, 0, message);
    if (length == 0 || mediator->socket < 0) return false;
    ssize_t sent = send(mediator->socket, frame, length, 0);
    /* The system reports the refusal of an earlier message instead of sending this one. */
    if (sent < 0 && errno == ECONNREFUSED) sent = send(mediator->socket, frame, length, 0);
    return sent >= 0;
}

/* Sends the mediator a type, and a number unless its field is 0. */
static bool tell_mediator(const connection *mediator, uint32_t type, uint32_t field, uint64_t number) {
    static amber_buffer message;
    message.length = 0;
    amber_put_number(&message, AMBER_TYPE, type);
    if (field != 0) amber_put_number(&message, field, number);
    return send_once(mediator, MEDIATOR, &message);
}

/* A connected socket keeps the local address that it got first. When this computer gets another one
 * (Wi-Fi, DHCP, a VPN), or the name of the mediator does, only another socket helps. It makes this
 * program another client, so it must announce itself; one with subscriptions also subscribes again. */
static bool connect_again(connection *mediator) {
    /* After this, the mediator reports missing devices at once, without a timeout. */
    return open_connection(mediator) && tell_mediator(mediator, AMBER_PING, 0, 0);
}

/* Sends a message. False if it could not be sent. */
static bool send_message(connection *mediator, int32_t device_type, const amber_buffer *message) {
    return send_once(mediator, device_type, message) ||
           (connect_again(mediator) && send_once(mediator, device_type, message));
}

/* Sends a request with a flag, and waits for the answer with the same number. */
static bool request(connection *mediator, int32_t device_type, uint32_t flag, amber_bytes *answer) {
    static amber_buffer question;
    static uint8_t datagram[65536];
    static uint32_t last_number;
    question.length = 0;
    amber_put_number(&question, AMBER_TYPE, AMBER_DATA);
    amber_put_number(&question, AMBER_SYN_NUM, ++last_number);
    amber_put_number(&question, flag, true);
    if (!send_message(mediator, device_type, &question)) return false;
    ssize_t length;
    while ((length = recv(mediator->socket, datagram, sizeof datagram, 0)) >= 0) {
        amber_field type, number = {0};
        if (!amber_open_datagram(datagram, (size_t)length, answer)) continue;
        if (!amber_find(*answer, AMBER_TYPE, &type)) continue;
        if (type.value == AMBER_PING) { /* the mediator checks that this client is alive */
            bool numbered = amber_find(*answer, AMBER_SYN_NUM, &number);
            tell_mediator(mediator, AMBER_PONG, numbered ? AMBER_ACK_NUM : 0, number.value);
        } else if (amber_find(*answer, AMBER_ACK_NUM, &number) && number.value == last_number) {
            return type.value == AMBER_DATA; /* or DRIVER_DIED: the device is not available */
        }
    }
    /* No reply: UDP may lose a packet, no mediator is running, or the way to it has changed. */
    connect_again(mediator);
    return false;
}

/* Queries both devices, and prints the answers. Returns their number. */
static int query(connection *mediator) {
    int answers = 0;
    amber_bytes answer;
    amber_field field;
    if (request(mediator, DUMMY, 52, &answer)) { /* get_status */
        answers++;
        if (amber_find(answer, 51, &field))
            printf("the dummy says: %.*s\n", (int)field.bytes.length, (const char *)field.bytes.data);
    }
    if (request(mediator, THERMOMETER, 110, &answer)) { /* get_temperature */
        answers++;
        if (amber_find(answer, 111, &field)) {
            amber_field celsius;
            double degrees;
            if (amber_find(field.bytes, 1, &celsius)) {
                memcpy(&degrees, &celsius.value, sizeof degrees);
                printf("the thermometer says: %.1f degrees\n", degrees);
            } else {
                printf("the thermometer has no sensor\n");
            }
        }
    }
    fflush(stdout);
    return answers;
}

int main(int count, char **arguments) {
    static char local[] = "127.0.0.1";
    char *host = count > 1 ? arguments[1] : getenv("AMBER_MEDIATOR");
    if (host == NULL || *host == '\0') host = local;
    const char *port = cut_port(&host);
    connection mediator = {host, count > 2 ? arguments[2] : port, -1};
    int times = count > 3 ? atoi(arguments[3]) : 1;
    if (!connect_again(&mediator)) return 1;
    int answers = query(&mediator);
    while (--times > 0) {
        sleep(1);
        answers += query(&mediator);
    }
    tell_mediator(&mediator, AMBER_CLIENT_DIED, 0, 0); /* tells all devices that this client leaves */
    close(mediator.socket);
    if (answers == 0) fprintf(stderr, "error: no answer; is a mediator with a dummy or a thermometer running there?\n");
    return answers > 0 ? 0 : 1;
}
