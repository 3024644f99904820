/*
 * What the files of the daemon share: daemon.c starts and stops everything, daemon_config.c makes
 * the running program equal to its configuration, at the start and at every SIGHUP.
 */
#ifndef DAEMON_PRIVATE_H
#define DAEMON_PRIVATE_H

#include <sys/stat.h>
#include <uv.h>

#include "api/api.h"
#include "config/config.h"
#include "daemon.h"
#include "dispatch/runtime_policy.h"

/* Which file a path named, and which contents it had. */
struct file_mark {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec changed;
};

struct daemon {
        const struct daemon_options *options;
        int64_t started_ms;
        struct config *config;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct http_client *http;
        struct agents *agents;
        struct adapters *adapters;
        struct runtime_policy *policy;
        struct dispatch *dispatch;
        struct road *road;
        struct api *api;
        struct file_mark tls_cert, tls_key; /* as the server read them */
        uv_signal_t term, interrupt, hangup;
        bool stopping;
        bool reloading, reload_again;
        struct timer *trim;
        uint64_t work_seen,
                /* what had been done at the last look, and when memory was last given back */
                work_trimmed;
};

/* daemon_config.c */
/* Makes the running program equal to the configuration. The registries take their parts over. */
int daemon_apply(struct daemon *d, struct config *c, struct error *err);
/* Where agents find the API. After it is open. */
void daemon_set_reply_base(struct daemon *d, const struct http_conf *http);
void daemon_log_warnings(const struct config *c);
/* The certificate that the server is about to read. */
void daemon_mark_certificate(struct daemon *d);
/*
 * Reads the file again, on a pool thread, and applies it. What is asked for meanwhile is done
 * afterwards.
 */
void daemon_reload(struct daemon *d);

#endif
