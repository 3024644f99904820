/*
 * Shared by daemon.c, which starts and stops everything, and daemon_config.c, which applies the
 * configuration at start and at every SIGHUP.
 */
#ifndef DAEMON_PRIVATE_H
#define DAEMON_PRIVATE_H

#include <sys/stat.h>
#include <uv.h>

#include "api/api.h"
#include "config/config.h"
#include "daemon.h"
#include "dispatch/runtime_policy.h"

/* Identifies a file and its contents. */
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
        uint64_t work_seen;    /* at the last look */
        uint64_t work_trimmed; /* when memory was last trimmed */
};

/* Applies the configuration to the running program, which takes over its adapters and agents. */
int daemon_config_apply(struct daemon *d, struct config *c, struct error *err);
/* Sets the URL at which agents find the API, once it is open. */
void daemon_config_set_reply_base(struct daemon *d, const struct http_conf *http);
void daemon_config_log_warnings(const struct config *c);
/* Remembers the certificate that the server is about to read. */
void daemon_config_mark_certificate(struct daemon *d);
/*
 * Reads the file again, on a pool thread, and applies it. A request during a reload runs after it.
 */
void daemon_config_reload(struct daemon *d);

#endif
