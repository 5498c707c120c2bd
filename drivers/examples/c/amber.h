/* Frames and messages for drivers and clients of Amber, in C without any library.
 *
 * A frame is   u16 length | DriverHdr | u16 length | DriverMsg   (big-endian lengths)
 * on stdin, on stdout and in a datagram alike. Both parts are protobuf messages:
 * fields one after the other, each a key (number * 8 + wire type) and a value.
 */
#ifndef AMBER_H
#define AMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AMBER_MAX_PART = 32767, AMBER_MAX_CLIENTS = 1024 };

/* DriverMsg.type */
enum {
    AMBER_DATA = 1,
    AMBER_PING,
    AMBER_PONG,
    AMBER_CLIENT_DIED,
    AMBER_DRIVER_DIED,
    AMBER_SUBSCRIBE,
    AMBER_UNSUBSCRIBE
};

/* Field numbers of DriverMsg. */
enum { AMBER_TYPE = 2, AMBER_SYN_NUM = 3, AMBER_ACK_NUM = 4 };

/* Borrowed bytes. */
typedef struct {
    const uint8_t *data;
    size_t length;
} amber_bytes;

/* A message under construction. */
typedef struct {
    uint8_t data[AMBER_MAX_PART];
    size_t length;
    bool overflow; /* it did not fit */
} amber_buffer;

/* One field of a message. */
typedef struct {
    uint32_t number;
    uint64_t value;    /* a number or a flag, or the bits of a double or float */
    amber_bytes bytes; /* a text, bytes, or an embedded message */
} amber_field;

/* Takes the next field off `rest`. Returns false at the end, or if the bytes are not
 * protobuf; in that case `rest->length` is not 0. */
bool amber_next(amber_bytes *rest, amber_field *field);

/* Finds the last field with a number, as protobuf requires. Returns false if there is
 * none, or if the message is not protobuf. */
bool amber_find(amber_bytes message, uint32_t number, amber_field *field);

void amber_put_number(amber_buffer *to, uint32_t number, uint64_t value);
void amber_put_double(amber_buffer *to, uint32_t number, double value);
void amber_put_bytes(amber_buffer *to, uint32_t number, const void *data, size_t length);
void amber_put_text(amber_buffer *to, uint32_t number, const char *text);

/* Writes a line to stderr, which goes to the mediator's log. */
void amber_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A driver. Every function may be NULL. Calls never overlap. */
typedef struct {
    /* Milliseconds between two publications; 0 = none. */
    int period_ms;
    /* A request or command of a client. Put the fields of the answer and return true,
     * or return false for no answer. Type and ackNum are already set. */
    bool (*request)(amber_bytes message, int32_t client, amber_buffer *answer);
    /* Put the fields for subscribers; return false to skip this publication. */
    bool (*publish)(amber_buffer *message);
    /* A client left or was lost. Stop all motion that it started. */
    void (*client_gone)(int32_t client);
    /* The driver ends. Bring the device to a safe state. */
    void (*stop)(void);
} amber_driver;

/* Serves stdin and stdout until stdin ends or SIGTERM arrives. Returns the exit code. */
int amber_serve(const amber_driver *driver);

/* Builds a client's frame from a device and a message. Returns its length; 0 if too long. */
size_t amber_client_frame(uint8_t *frame, size_t size, int32_t device_type, int32_t device_id,
                          const amber_buffer *message);

/* Finds the message in a datagram. Returns false if the bytes are not a frame. */
bool amber_open_datagram(const uint8_t *datagram, size_t length, amber_bytes *message);

#endif
