/* A complete driver in C: the Dummy device, a flag and a text.
 *
 *     amber mediator --driver 'dummy:0=./dummy_driver'
 */
#include <stdio.h>
#include <string.h>

#include "amber.h"

/* The field numbers, from proto/dummy.proto. */
enum { ENABLE = 50, MESSAGE = 51, GET_STATUS = 52 };

/* The device itself. All clients share it. */
static bool enable;
static char text[4096] = "Message";
static unsigned responses;

static bool request(amber_bytes message, int32_t client, amber_buffer *answer) {
    amber_field field;
    if (amber_find(message, ENABLE, &field)) {
        enable = field.value != 0;
    } else if (amber_find(message, MESSAGE, &field)) {
        size_t length = field.bytes.length < sizeof text - 1 ? field.bytes.length : sizeof text - 1;
        memcpy(text, field.bytes.data, length);
        text[length] = '\0';
    } else if (amber_find(message, GET_STATUS, &field)) {
        amber_put_number(answer, ENABLE, enable);
        amber_put_text(answer, MESSAGE, text);
        return true;
    } else {
        amber_log("not a request for the dummy, from client %d", client);
    }
    return false;
}

static bool publish(amber_buffer *message) {
    char line[32];
    snprintf(line, sizeof line, "Response %u", ++responses);
    amber_put_text(message, MESSAGE, line);
    return true;
}

int main(void) {
    amber_driver dummy = {.period_ms = 100, .request = request, .publish = publish};
    return amber_serve(&dummy);
}
