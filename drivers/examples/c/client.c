/* A client in C: queries a Dummy and a thermometer, if they are available.
 *
 *     ./client [HOST [PORT]]
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
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

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) {
        fprintf(stderr, "error: %s: %s\n", host, gai_strerror(error));
        return -1;
    }
    int s = socket(found->ai_family, SOCK_DGRAM, 0);
    struct timeval patience = {.tv_sec = 1};
    if (s < 0 || connect(s, found->ai_addr, found->ai_addrlen) != 0 ||
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        perror("error");
        s = -1;
    }
    freeaddrinfo(found);
    return s;
}

static void send_message(int s, int32_t device_type, const amber_buffer *message) {
    uint8_t frame[256];
    size_t length = amber_client_frame(frame, sizeof frame, device_type, 0, message);
    if (length > 0 && send(s, frame, length, 0) < 0) perror("error");
}

/* Sends the mediator a type, and a number unless its field is 0. */
static void tell_mediator(int s, uint32_t type, uint32_t field, uint64_t number) {
    static amber_buffer message;
    message.length = 0;
    amber_put_number(&message, AMBER_TYPE, type);
    if (field != 0) amber_put_number(&message, field, number);
    send_message(s, MEDIATOR, &message);
}

/* Sends a request with a flag, and waits for the answer with the same number. */
static bool request(int s, int32_t device_type, uint32_t flag, amber_bytes *answer) {
    static amber_buffer question;
    static uint8_t datagram[65536];
    static uint32_t last_number;
    question.length = 0;
    amber_put_number(&question, AMBER_TYPE, AMBER_DATA);
    amber_put_number(&question, AMBER_SYN_NUM, ++last_number);
    amber_put_number(&question, flag, true);
    send_message(s, device_type, &question);
    ssize_t length;
    while ((length = recv(s, datagram, sizeof datagram, 0)) >= 0) {
        amber_field type, number = {0};
        if (!amber_open_datagram(datagram, (size_t)length, answer)) continue;
        if (!amber_find(*answer, AMBER_TYPE, &type)) continue;
        if (type.value == AMBER_PING) { /* the mediator checks that this client is alive */
            bool numbered = amber_find(*answer, AMBER_SYN_NUM, &number);
            tell_mediator(s, AMBER_PONG, numbered ? AMBER_ACK_NUM : 0, number.value);
        } else if (amber_find(*answer, AMBER_ACK_NUM, &number) && number.value == last_number) {
            return type.value == AMBER_DATA; /* or DRIVER_DIED: the device is not available */
        }
    }
    return false; /* no reply: UDP may lose a packet, or no mediator is running */
}

int main(int count, char **arguments) {
    static char local[] = "127.0.0.1";
    char *host = count > 1 ? arguments[1] : getenv("AMBER_MEDIATOR");
    if (host == NULL || *host == '\0') host = local;
    const char *port = cut_port(&host);
    int s = connect_to(host, count > 2 ? arguments[2] : port);
    if (s < 0) return 1;
    int answers = 0;
    amber_bytes answer;
    amber_field field;

    /* After this, the mediator reports missing devices at once, without a timeout. */
    tell_mediator(s, AMBER_PING, 0, 0);
    if (request(s, DUMMY, 52, &answer)) { /* get_status */
        answers++;
        if (amber_find(answer, 51, &field))
            printf("the dummy says: %.*s\n", (int)field.bytes.length, (const char *)field.bytes.data);
    }
    if (request(s, THERMOMETER, 110, &answer)) { /* get_temperature */
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
    tell_mediator(s, AMBER_CLIENT_DIED, 0, 0); /* tells all devices that this client leaves */
    close(s);
    if (answers == 0) fprintf(stderr, "error: no answer; is a mediator with a dummy or a thermometer running there?\n");
    return answers > 0 ? 0 : 1;
}
