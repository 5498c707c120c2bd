#include "pieces.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number_of(amber_bytes piece, uint32_t field) {
    amber_field found;
    return amber_find(piece, field, &found) ? found.value : 0;
}

bool amber_join(amber_joiner *joiner, amber_bytes piece) {
    amber_field data, stream;
    uint32_t number = (uint32_t)number_of(piece, 1);
    uint64_t index = number_of(piece, 2), count = number_of(piece, 3);
    if (!amber_find(piece, 4, &data)) return false;
    if (amber_find(piece, 5, &stream)) return false; /* published data, not an answer */

    /* A piece that contradicts itself. */
    size_t length = data.bytes.length;
    bool is_last = index + 1 == count;
    if (count < 2 || count > AMBER_MAX_PIECES || index >= count) return false;
    if (length == 0 || length > AMBER_MAX_PART) return false;

    bool is_newer = joiner->data == NULL || (int32_t)(number - joiner->number) > 0;
    if (is_newer) {
        /* The place of the last piece is known only with the length of another: it is called for. */
        if (is_last || (count - 1) * length >= AMBER_MAX_LONG) return false;
        amber_join_anew(joiner);
        joiner->data = malloc(count * length);
        if (joiner->data == NULL) return false;
        joiner->number = number;
        joiner->count = (uint32_t)count;
        joiner->length = length;
    }
    /* A piece of an older message, or one that contradicts the others. */
    if (number != joiner->number || count != joiner->count) return false;
    if (is_last ? length > joiner->length : length != joiner->length) return false;

    if (joiner->has[index]) return false; /* it came twice */
    joiner->has[index] = true;
    memcpy(joiner->data + index * joiner->length, data.bytes.data, length);
    if (is_last) joiner->total = index * joiner->length + length;
    return ++joiner->received == joiner->count;
}

void amber_put_missing(amber_buffer *to, const amber_joiner *joiner) {
    static amber_buffer missing;
    missing.length = 0;
    amber_put_number(&missing, 1, joiner->number);
    size_t called = 0;
    for (uint32_t index = 0; index < joiner->count && called < AMBER_MAX_MISSING; index++) {
        if (joiner->has[index]) continue;
        amber_put_number(&missing, 2, index);
        called++;
    }
    amber_put_bytes(to, AMBER_MISSING, missing.data, missing.length);
}

void amber_join_anew(amber_joiner *joiner) {
    free(joiner->data);
    memset(joiner, 0, sizeof *joiner);
}
