/* A client in C: saves a picture of a camera, which is usually longer than a frame.
 *
 *     ./picture FILE [HOST [PORT]]
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
#include <stdio.h>
#include <unistd.h>

#include "connection.h"
#include "pieces.h"

enum {
    CAMERA = 17,
    GET_PICTURE = 260,
    PICTURE = 261,
    REFUSED = 262,
    TRIES = 3,
    PATIENCE_MS = 6000, /* a camera that nobody uses is switched on first */
    PAUSE_MS = 50,      /* so long after a piece, the missing ones are called for */
    CALLS = 3
};

static bool ask_for_picture(connection *mediator, uint32_t number) {
    static amber_buffer question;
    question.length = 0;
    amber_put_number(&question, AMBER_TYPE, AMBER_DATA);
    amber_put_number(&question, AMBER_SYN_NUM, number);
    amber_put_bytes(&question, AMBER_JOINS, "", 0); /* this client joins pieces of the usual length */
    amber_put_bytes(&question, GET_PICTURE, "", 0); /* as the camera makes it */
    return send_message(mediator, CAMERA, &question);
}

static bool call_for_missing(connection *mediator, const amber_joiner *joiner) {
    static amber_buffer call;
    call.length = 0;
    amber_put_number(&call, AMBER_TYPE, AMBER_DATA);
    amber_put_missing(&call, joiner);
    return send_message(mediator, CAMERA, &call);
}

/* The answer with this number: a short message, or the joined one. False if none came. */
static bool receive_answer(connection *mediator, uint32_t number, amber_joiner *joiner, amber_bytes *answer) {
    int64_t end = now_ms() + PATIENCE_MS;
    int calls = 0;
    while (now_ms() < end) {
        bool may_call = joiner->received > 0 && calls < CALLS;
        if (!receive_message(mediator, may_call ? PAUSE_MS : (int)(end - now_ms()), answer)) {
            if (!may_call || !call_for_missing(mediator, joiner)) return false;
            calls++;
            continue;
        }
        amber_field piece, ack;
        if (answer_ping(mediator, *answer)) continue;
        if (amber_find(*answer, AMBER_PIECE, &piece)) {
            if (!amber_join(joiner, piece.bytes)) continue;
            *answer = (amber_bytes){joiner->data, joiner->total};
        }
        if (amber_find(*answer, AMBER_ACK_NUM, &ack) && ack.value == number) return true;
    }
    return false;
}

static bool save(const char *path, amber_bytes answer) {
    amber_field picture, data, refused;
    if (amber_find(answer, REFUSED, &refused)) {
        fprintf(stderr, "error: no picture: %.*s\n", (int)refused.bytes.length, (const char *)refused.bytes.data);
        return false;
    }
    if (!amber_find(answer, PICTURE, &picture) || !amber_find(picture.bytes, 1, &data)) {
        fprintf(stderr, "error: the camera is not available; `amber status camera` shows the reason\n");
        return false;
    }
    FILE *file = fopen(path, "wb");
    bool is_saved = file != NULL && fwrite(data.bytes.data, 1, data.bytes.length, file) == data.bytes.length;
    if (file != NULL && fclose(file) != 0) is_saved = false;
    if (is_saved) printf("%s: %zu bytes\n", path, data.bytes.length);
    if (!is_saved) perror(path);
    return is_saved;
}

int main(int count, char **arguments) {
    static amber_joiner joiner;
    if (count < 2) {
        fprintf(stderr, "usage: picture FILE [HOST [PORT]]\n");
        return 2;
    }
    connection mediator =
        mediator_at(count > 2 ? arguments[2] : NULL, count > 3 ? arguments[3] : NULL);
    if (!connect_again(&mediator)) return 1;
    bool is_answered = false, is_saved = false;
    amber_bytes answer;
    for (uint32_t number = 1; number <= TRIES && !is_answered; number++) {
        amber_join_anew(&joiner);
        is_answered = ask_for_picture(&mediator, number) &&
                      receive_answer(&mediator, number, &joiner, &answer);
    }
    if (is_answered) is_saved = save(arguments[1], answer);
    if (!is_answered) fprintf(stderr, "error: no answer; is a mediator with a camera running there?\n");
    amber_join_anew(&joiner);
    tell_mediator(&mediator, AMBER_CLIENT_DIED, 0, 0); /* tells all devices that this client leaves */
    close(mediator.socket);
    return is_saved ? 0 : 1;
}
