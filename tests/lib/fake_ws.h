/*
 * fake_ws: a WebSocket server that the test controls, valid or not. On the test's loop, on an
 * ephemeral port of 127.0.0.1.
 */
#ifndef TESTS_FAKE_WS_H
#define TESTS_FAKE_WS_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

struct fake_ws;
struct fake_ws_conn;

struct fake_ws_handlers {
        void (*on_open)(void *arg, struct fake_ws_conn *c);
        void (*on_message)(void *arg, struct fake_ws_conn *c, const char *bytes, size_t n);
        /* the connection is about to be freed */
        void (*on_gone)(void *arg, struct fake_ws_conn *c);
};

struct fake_ws *fake_ws_new(struct loop *l, const struct fake_ws_handlers *handlers, void *arg);
void fake_ws_free(struct fake_ws *s);
int fake_ws_port(const struct fake_ws *s);
/* "ws://127.0.0.1:PORT" and path, yours to free. */
char *fake_ws_url(const struct fake_ws *s, const char *path);
/*
 * Answers further requests with these bytes instead of a handshake; "": not at all, NULL: with a
 * handshake again. Borrowed.
 */
void fake_ws_answer(struct fake_ws *s, const char *bytes);
/* Sends the bytes in the same write as the handshake. Borrowed; NULL: none. */
void fake_ws_greet(struct fake_ws *s, const char *bytes, size_t n);
/* How many connections were accepted, how many are open. */
unsigned fake_ws_accepted(const struct fake_ws *s);
unsigned fake_ws_open(const struct fake_ws *s);
/* The head of the last request; borrowed, "" when there was none. */
const char *fake_ws_request(const struct fake_ws *s);
/* The code the last client closed with; 0: none. */
int fake_ws_last_close(const struct fake_ws *s);
unsigned fake_ws_pongs(const struct fake_ws *s);

const char *fake_ws_path(const struct fake_ws_conn *c);
void fake_ws_text(struct fake_ws_conn *c, const char *text);
void fake_ws_binary(struct fake_ws_conn *c, const void *bytes, size_t n);
void fake_ws_ping(struct fake_ws_conn *c);
void fake_ws_raw(struct fake_ws_conn *c, const void *bytes, size_t n);
void fake_ws_close(struct fake_ws_conn *c, int code, const char *reason);
/* Without a close frame. */
void fake_ws_cut(struct fake_ws_conn *c);
/* Stops reading. */
void fake_ws_deaf(struct fake_ws_conn *c);

#endif
