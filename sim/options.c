#include "sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LISTEN_HELP "listen on this address; :PORT replaces --port"
#define LAX_HELP    "accept parameters the official description lacks, as the server does"

enum kind { TEXT, NUMBER, FLAG, TOKEN, LISTEN, HELP };

struct row {
        const char *name, *value;
        enum kind kind;
        size_t at;
        const char *help;
};

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct row rows[] = {
        { "port",      "N",       TEXT,   AT(port),      "listen on this port; 0: a free one" },
        { "listen",    "ADDRESS", LISTEN, 0,             LISTEN_HELP },
        { "token",     "T",       TOKEN,  0,             "add a bot; may be repeated" },
        { "tls-cert",  "FILE",    TEXT,   AT(tls_cert),  "use TLS with this certificate ..." },
        { "tls-key",   "FILE",    TEXT,   AT(tls_key),   "... and this key" },
        { "ca",        "FILE",    TEXT,   AT(ca_file),   "trust these certificates for webhooks" },
        { "no-limits", NULL,      FLAG,   AT(no_limits), "no rate limits" },
        { "lax",       NULL,      FLAG,   AT(lax),       LAX_HELP },
        { "keep",      "N",       NUMBER, AT(keep),      "messages kept per chat" },
        { "seed",      "N",       NUMBER, AT(seed),      "seed of random faults" },
        { "quiet",     NULL,      FLAG,   AT(quiet),     "print only the address" },
        { "help",      NULL,      HELP,   0,             "this text" },
};
/* clang-format on */

static int usage_error(const struct options_about *about, const char *what)
{
        fprintf(stderr, "dragoman-sim %s: %s\nTry 'dragoman-sim %s --help'.\n", about->name, what,
                about->name);
        return 64;
}

static void print_option(const char *name, const char *value, const char *help)
{
        char left[40];

        snprintf(left, sizeof(left), "--%s%s%s", name, value ? " " : "", value ? value : "");
        printf("  %-18s %s\n", left, help);
}

static void print_help(const struct options_about *about)
{
        printf("usage: dragoman-sim %s [options]\n\n%s\n", about->name, about->about);
        for (size_t i = 0; i < COUNT(rows); i++)
                print_option(rows[i].name, rows[i].value, rows[i].help);
        for (const struct own_option *own = about->own; own->name; own++)
                print_option(own->name, own->value, own->help);
        printf("\nDefaults: port %s, bot token %s.\n\nControl API, all JSON:\n%s", about->port,
               about->token, about->controls);
}

/* "0.0.0.0", "0.0.0.0:8081" or "[::]:8081". */
static int set_listen(struct options *o, const char *value)
{
        const char *colon = strrchr(value, ':'),
                   *port = colon && !strchr(colon, ']') ? colon + 1 : NULL;
        size_t n = port ? (size_t)(colon - value) : strlen(value);

        if (n == 0 || n >= sizeof(o->host))
                return -1;
        snprintf(o->host, sizeof(o->host), "%.*s", (int)n, value);
        if (port)
                o->port = port;
        return 0;
}

/* 0, -1 for help, or the exit code. */
static int set(struct options *o, const struct options_about *about, const struct row *row,
               const char *value)
{
        void *at = (char *)o + row->at;
        char *end;

        switch (row->kind) {
        case TEXT:
                *(const char **)at = value;
                return 0;
        case NUMBER:
                errno = 0;
                *(uint64_t *)at = strtoull(value, &end, 10);
                if (errno != 0 || !*value || *value == '-' || *end)
                        return usage_error(about, "--keep and --seed take a number");
                return 0;
        case FLAG:
                *(bool *)at = true;
                return 0;
        case TOKEN:
                if (o->token_count == COUNT(o->tokens))
                        return usage_error(about, "too many tokens; add more by POST /sim/bots");
                o->tokens[o->token_count++] = value;
                return 0;
        case LISTEN:
                return set_listen(o, value) == 0 ? 0
                                                 : usage_error(about, "--listen takes an address");
        case HELP:
                break;
        }
        print_help(about);
        return -1;
}

/* All options in getopt's form: the shared ones, then the simulator's own. */
static void make_longs(const struct options_about *about,
                       struct option longs[COUNT(rows) + OPTIONS_OWN + 1])
{
        size_t n = 0;

        for (; n < COUNT(rows); n++)
                longs[n] =
                        (struct option){ rows[n].name,
                                         rows[n].value ? required_argument : no_argument, NULL, 0 };
        for (size_t i = 0; i < OPTIONS_OWN && about->own[i].name; i++)
                longs[n++] = (struct option){ about->own[i].name, required_argument, NULL, 0 };
        longs[n] = (struct option){ 0 };
}

static int check(struct options *o, const struct options_about *about, bool rest)
{
        if (rest)
                return usage_error(about, "unexpected argument");
        if (!o->tls_cert != !o->tls_key)
                return usage_error(about, "--tls-cert and --tls-key belong together");
        if (o->keep > 0 && o->keep < OPTIONS_KEEP_MIN)
                return usage_error(about, "--keep takes 8 or more");
        if (o->token_count == 0)
                o->tokens[o->token_count++] = about->token;
        return 0;
}

int options_read(struct options *o, const struct options_about *about, int argc, char **argv)
{
        struct option longs[COUNT(rows) + OPTIONS_OWN + 1];
        int c, at = 0, rc = 0;

        *o = (struct options){ .host = "127.0.0.1", .port = about->port };
        make_longs(about, longs);
        optind = 1;
        while (rc == 0 && (c = getopt_long(argc, argv, "hq", longs, &at)) != -1) {
                if (c == 'q')
                        o->quiet = true;
                else if (c == 'h')
                        rc = set(o, about, &rows[COUNT(rows) - 1], "");
                else if (c != 0)
                        return 64; /* getopt printed the error */
                else if ((size_t)at < COUNT(rows))
                        rc = set(o, about, &rows[at], optarg ? optarg : "");
                else
                        o->own[(size_t)at - COUNT(rows)] = optarg;
        }
        return rc != 0 ? rc : check(o, about, optind < argc);
}

char *options_address(const struct options *o, const char *port)
{
        return mem_printf("%s:%s", o->host, port);
}
