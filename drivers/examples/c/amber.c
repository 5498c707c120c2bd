#include "amber.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

/* Protobuf: reading */

static bool take_varint(amber_bytes *rest, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < rest->length && i < 10; i++) {
        *value |= (uint64_t)(rest->data[i] & 0x7f) << (7 * i);
        if (rest->data[i] < 0x80) {
            rest->data += i + 1;
            rest->length -= i + 1;
            return true;
        }
    }
    return false;
}

static bool take_bytes(amber_bytes *rest, uint64_t length, amber_bytes *bytes) {
    if (length > rest->length) return false;
    bytes->data = rest->data;
    bytes->length = (size_t)length;
    rest->data += length;
    rest->length -= (size_t)length;
    return true;
}

static bool next(amber_bytes *rest, amber_field *field, int depth);

/* Groups are a deprecated kind of embedded message. Amber has none, but a message
 * with unknown fields may. Skips to the end of the group with this number. */
static bool skip_group(amber_bytes *rest, uint64_t number, int depth) {
    amber_field inside;
    while (depth < 32 && rest->length > 0) {
        amber_bytes left = *rest;
        uint64_t key;
        if (!take_varint(&left, &key)) return false;
        if ((key & 7) == 4) {
            *rest = left;
            return key >> 3 == number;
        }
        if (!next(rest, &inside, depth + 1)) return false;
    }
    return false;
}

bool amber_next(amber_bytes *rest, amber_field *field) {
    return next(rest, field, 0);
}

static bool next(amber_bytes *rest, amber_field *field, int depth) {
    amber_bytes left = *rest;
    uint64_t key, length;
    *field = (amber_field){0};
    if (left.length == 0 || !take_varint(&left, &key) || key >> 3 == 0 || key >> 32 != 0) return false;
    field->number = (uint32_t)(key >> 3);
    switch (key & 7) {
    case 0: /* a number */
        if (!take_varint(&left, &field->value)) return false;
        break;
    case 2: /* bytes of any kind */
        if (!take_varint(&left, &length) || !take_bytes(&left, length, &field->bytes)) return false;
        break;
    case 1: /* eight or four bytes, the low one first */
    case 5:
        if (!take_bytes(&left, (key & 7) == 1 ? 8 : 4, &field->bytes)) return false;
        for (size_t i = field->bytes.length; i-- > 0;)
            field->value = field->value << 8 | field->bytes.data[i];
        break;
    case 3:
        if (!skip_group(&left, key >> 3, depth)) return false;
        break;
    default:
        return false;
    }
    *rest = left;
    return true;
}

bool amber_find(amber_bytes message, uint32_t number, amber_field *field) {
    bool found = false;
    amber_field next;
    while (amber_next(&message, &next)) {
        if (next.number == number) {
            *field = next;
            found = true;
        }
    }
    return found && message.length == 0;
}

/* Protobuf: writing */

static void put(amber_buffer *to, const void *data, size_t length) {
    if (length > sizeof to->data - to->length) {
        to->overflow = true;
        return;
    }
    memcpy(to->data + to->length, data, length);
    to->length += length;
}

static void put_varint(amber_buffer *to, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        put(to, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

void amber_put_number(amber_buffer *to, uint32_t number, uint64_t value) {
    put_varint(to, (uint64_t)number << 3);
    put_varint(to, value);
}

void amber_put_double(amber_buffer *to, uint32_t number, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_varint(to, (uint64_t)number << 3 | 1);
    for (int i = 0; i < 8; i++, bits >>= 8) put(to, &(uint8_t){(uint8_t)bits}, 1);
}

void amber_put_bytes(amber_buffer *to, uint32_t number, const void *data, size_t length) {
    put_varint(to, (uint64_t)number << 3 | 2);
    put_varint(to, length);
    put(to, data, length);
}

void amber_put_text(amber_buffer *to, uint32_t number, const char *text) {
    amber_put_bytes(to, number, text, strlen(text));
}

/* Frames */

static void put_length(uint8_t *to, size_t length) {
    to[0] = (uint8_t)(length >> 8);
    to[1] = (uint8_t)length;
}

/* Returns the end of the frame at the start of `data`; 0 if it is incomplete. */
static size_t split(const uint8_t *data, size_t length, amber_bytes *header, amber_bytes *message) {
    size_t end = 0;
    amber_bytes *parts[] = {header, message};
    for (int i = 0; i < 2; i++) {
        if (length < end + 2) return 0;
        size_t part = (size_t)data[end] << 8 | data[end + 1];
        if (length < end + 2 + part) return 0;
        *parts[i] = (amber_bytes){data + end + 2, part};
        end += 2 + part;
    }
    return end;
}

size_t amber_client_frame(uint8_t *frame, size_t size, int32_t device_type, int32_t device_id,
                          const amber_buffer *message) {
    static amber_buffer header;
    header.length = 0;
    amber_put_number(&header, 1, (uint64_t)(int64_t)device_type);
    amber_put_number(&header, 2, (uint64_t)(int64_t)device_id); /* written even if it is 0 */
    size_t length = 4 + header.length + message->length;
    if (message->overflow || length > size) return 0;
    put_length(frame, header.length);
    memcpy(frame + 2, header.data, header.length);
    put_length(frame + 2 + header.length, message->length);
    memcpy(frame + 4 + header.length, message->data, message->length);
    return length;
}

bool amber_open_datagram(const uint8_t *datagram, size_t length, amber_bytes *message) {
    amber_bytes header;
    return length > 0 && split(datagram, length, &header, message) == length;
}

/* The driver */

void amber_log(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static const amber_driver *driver;
static int32_t subscribers[AMBER_MAX_CLIENTS];
static size_t subscriber_count;
static volatile sig_atomic_t asked_to_end;

static void on_signal(int number) {
    (void)number;
    asked_to_end = 1;
}

static void write_all(const uint8_t *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, data, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) { /* the mediator is gone */
            asked_to_end = 1;
            return;
        }
        data += written;
        length -= (size_t)written;
    }
}

/* Writes a frame in one call, because some readers expect that. */
static void send_frame(amber_bytes header, const amber_buffer *message) {
    static uint8_t frame[4 + 2 * AMBER_MAX_PART];
    if (message->overflow || header.length > AMBER_MAX_PART) {
        amber_log("message not sent: it is longer than %d bytes", AMBER_MAX_PART);
        return;
    }
    put_length(frame, header.length);
    memcpy(frame + 2, header.data, header.length);
    put_length(frame + 2 + header.length, message->length);
    memcpy(frame + 4 + header.length, message->data, message->length);
    write_all(frame, 4 + header.length + message->length);
}

static void subscribe(int32_t client) {
    for (size_t i = 0; i < subscriber_count; i++)
        if (subscribers[i] == client) return;
    if (subscriber_count == AMBER_MAX_CLIENTS) {
        amber_log("client %d cannot subscribe: there are already %d subscribers", client, AMBER_MAX_CLIENTS);
        return;
    }
    subscribers[subscriber_count++] = client;
}

static void unsubscribe(int32_t client) {
    for (size_t i = 0; i < subscriber_count; i++)
        if (subscribers[i] == client) subscribers[i--] = subscribers[--subscriber_count];
}

/* clientIDs: one packed field, or one field per id. */
static size_t clients_of(amber_bytes header, int32_t *clients) {
    size_t count = 0;
    amber_field field;
    while (amber_next(&header, &field)) {
        if (field.number != 3) continue;
        uint64_t value = field.value;
        if (field.bytes.data == NULL) {
            if (count < AMBER_MAX_CLIENTS) clients[count++] = (int32_t)value;
        } else {
            while (field.bytes.length > 0 && take_varint(&field.bytes, &value))
                if (count < AMBER_MAX_CLIENTS) clients[count++] = (int32_t)value;
        }
    }
    return count;
}

static void publish(void) {
    static amber_buffer header, message, packed;
    header.length = packed.length = message.length = 0;
    message.overflow = false;
    amber_put_number(&message, AMBER_TYPE, AMBER_DATA);
    amber_put_number(&message, AMBER_ACK_NUM, 0); /* an ackNum of 0 marks published data */
    if (subscriber_count == 0 || driver->publish == NULL || !driver->publish(&message)) return;
    for (size_t i = 0; i < subscriber_count; i++) put_varint(&packed, (uint64_t)subscribers[i]);
    amber_put_bytes(&header, 3, packed.data, packed.length);
    send_frame((amber_bytes){header.data, header.length}, &message);
}

static void handle(amber_bytes header, amber_bytes message) {
    static int32_t clients[AMBER_MAX_CLIENTS];
    static amber_buffer answer;
    amber_field type = {0}, number = {0};
    size_t count = clients_of(header, clients);
    bool numbered = amber_find(message, AMBER_SYN_NUM, &number);
    if (!amber_find(message, AMBER_TYPE, &type)) {
        amber_log("ignored a message that is not a DriverMsg (%zu bytes)", message.length);
        return;
    }
    answer.length = 0;
    answer.overflow = false;
    switch (type.value) {
    case AMBER_PING:
        amber_put_number(&answer, AMBER_TYPE, AMBER_PONG);
        if (numbered) amber_put_number(&answer, AMBER_ACK_NUM, (uint32_t)number.value);
        send_frame(header, &answer); /* the header of the request names the client */
        break;
    case AMBER_DATA:
        if (driver->request == NULL) break;
        amber_put_number(&answer, AMBER_TYPE, AMBER_DATA);
        if (numbered) amber_put_number(&answer, AMBER_ACK_NUM, (uint32_t)number.value);
        if (driver->request(message, count > 0 ? clients[0] : 0, &answer) && numbered)
            send_frame(header, &answer);
        break;
    case AMBER_SUBSCRIBE:
        for (size_t i = 0; i < count; i++) subscribe(clients[i]);
        break;
    case AMBER_UNSUBSCRIBE:
    case AMBER_CLIENT_DIED:
        for (size_t i = 0; i < count; i++) {
            unsubscribe(clients[i]);
            if (type.value == AMBER_CLIENT_DIED && driver->client_gone != NULL)
                driver->client_gone(clients[i]);
        }
        break;
    default: /* other types do not concern this driver */
        break;
    }
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for input, for so long at most unless that is negative. A signal that comes just before is not
 * missed: it is blocked until pselect() waits. */
static bool wait_for_input(int64_t ms) {
    sigset_t ends, usual;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, &usual);
    int ready = 0;
    if (!asked_to_end) {
        struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
        fd_set in;
        FD_ZERO(&in);
        FD_SET(STDIN_FILENO, &in);
        ready = pselect(STDIN_FILENO + 1, &in, NULL, NULL, ms < 0 ? NULL : &limit, &usual);
    }
    sigprocmask(SIG_SETMASK, &usual, NULL);
    return ready > 0;
}

int amber_serve(const amber_driver *what) {
    static uint8_t input[2 * (4 + 2 * 65535)];
    size_t have = 0;
    driver = what;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    int64_t due = now_ms() + driver->period_ms;

    while (!asked_to_end) {
        int64_t wait = -1;
        if (driver->period_ms > 0 && subscriber_count > 0) {
            wait = due - now_ms();
            if (wait <= 0) {
                publish();
                due += driver->period_ms;
                if (due < now_ms()) due = now_ms() + driver->period_ms; /* late: do not catch up */
                continue;
            }
        }
        if (!wait_for_input(wait)) continue;
        ssize_t got = read(STDIN_FILENO, input + have, sizeof input - have);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) break; /* the end of stdin is the end of the driver */
        have += (size_t)got;

        /* A read may return part of a frame, or several frames. */
        size_t start = 0, length;
        amber_bytes header, message;
        while ((length = split(input + start, have - start, &header, &message)) > 0) {
            handle(header, message);
            start += length;
        }
        memmove(input, input + start, have - start);
        have -= start;
    }
    if (driver->stop != NULL) driver->stop();
    return 0;
}
