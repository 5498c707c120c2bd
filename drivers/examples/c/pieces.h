/* Joins the pieces of an answer that is longer than a frame: see docs/PROTOCOL.md. */
#ifndef PIECES_H
#define PIECES_H

#include "amber.h"

enum {
    AMBER_MAX_LONG = 8 << 20, /* bytes of a long message */
    AMBER_MAX_PIECES = 8192,
    AMBER_MAX_MISSING = 400 /* pieces in one call for missing ones */
};

/* Fields of DriverMsg. A client that joins pieces puts `joins` into each request. */
enum { AMBER_PIECE = 6, AMBER_MISSING = 7, AMBER_JOINS = 9 };

/* One long message. All 0 before the first piece. */
typedef struct {
    uint32_t number; /* of the message, among those of its sender */
    uint32_t count;  /* of its pieces */
    uint32_t received;
    size_t length; /* of each piece but the last */
    size_t total;  /* of the message, once the last piece has come */
    uint8_t *data;
    bool has[AMBER_MAX_PIECES];
} amber_joiner;

/* Takes the bytes of a field `piece`. Returns true if it was the last missing one: then `data` has
 * `total` bytes, which are a complete DriverMsg. */
bool amber_join(amber_joiner *joiner, amber_bytes piece);

/* Puts the call for the pieces that have not come. */
void amber_put_missing(amber_buffer *to, const amber_joiner *joiner);

/* Frees the memory, for the next answer. */
void amber_join_anew(amber_joiner *joiner);

#endif
