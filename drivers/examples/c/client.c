/* A client in C: queries a Dummy and a thermometer, if they are available.
 *
 *     ./client [HOST [PORT [TIMES]]]
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connection.h"

enum { DUMMY = 5, THERMOMETER = 201, PATIENCE_MS = 1000 };

/* Sends a request with a flag, and waits for the answer with the same number. */
static bool request(connection *mediator, int32_t device_type, uint32_t flag, amber_bytes *answer) {
    static amber_buffer question;
    static uint32_t last_number;
    question.length = 0;
    amber_put_number(&question, AMBER_TYPE, AMBER_DATA);
    amber_put_number(&question, AMBER_SYN_NUM, ++last_number);
    amber_put_number(&question, flag, true);
    if (!send_message(mediator, device_type, &question)) return false;
    while (receive_message(mediator, PATIENCE_MS, answer)) {
        amber_field type, number;
        if (!amber_find(*answer, AMBER_TYPE, &type) || answer_ping(mediator, *answer)) continue;
        if (amber_find(*answer, AMBER_ACK_NUM, &number) && number.value == last_number)
            return type.value == AMBER_DATA; /* or DRIVER_DIED: the device is not available */
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
    connection mediator =
        mediator_at(count > 1 ? arguments[1] : NULL, count > 2 ? arguments[2] : NULL);
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
