/*
 * egress: the only way from a sandbox to the network, an HTTP proxy for listed hosts.
 *
 * The box listens on 127.0.0.1:3128 in the sandbox's own network and hands the listening socket to
 * the daemon, so the daemon accepts connections from inside although it is outside. Nothing is
 * mounted for it and no byte passes through the box. The proxy resolves names itself and checks the
 * address it connects to: a listed name that leads to this machine or its network is refused.
 */
#ifndef AGENT_SANDBOX_EGRESS_H
#define AGENT_SANDBOX_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "agent/sandbox/sandbox.h"
#include "base/settings.h"
#include "net/loop.h"

/* ---- rules ---- */

/*
 * Is it listed? Entries: "example.org" (ports 80 and 443), "*.example.org" (names below it),
 * "example.org:8080", "*" (every name), or an address such as "192.0.2.7:80". *literal: the entry
 * is that address itself, so it may be a private one.
 */
bool egress_lists(const struct setting_list *hosts, const char *host, int port, bool *literal);
/* -1: an entry that egress_lists would never match. */
int egress_check_entry(const char *entry, struct error *err);

/* ---- requests ---- */

struct egress_target {
        char host[256]; /* lower case, without brackets */
        int port;
        bool tunnel;       /* CONNECT */
        size_t head;       /* bytes of the request's head */
        size_t line, path; /* of the request line; where its path begins, 0: it has none */
};

/* 1: *to is filled; 0: more bytes are needed; -1: not a request to a proxy. */
int egress_read(const char *bytes, size_t n, struct egress_target *to);

/* ---- the proxy ---- */

struct egress;
typedef void egress_report_fn(void *arg, const struct sandbox_request *request);

/* channel: where the box sends its listening socket; taken. conf is borrowed. */
struct egress *egress_new(struct loop *l, const struct sandbox_conf *conf, int channel,
                          egress_report_fn *report, void *arg);
/* Closes all connections; no report follows. */
void egress_free(struct egress *e);

#endif
